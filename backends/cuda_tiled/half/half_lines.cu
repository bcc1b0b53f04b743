// What runs beside half_product: the copy of lines that TMA can't read, and the sum of the parts of split sums.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "half/half_plan.hpp"
#include "half/half_store.cuh"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr uint64_t kAlignment = 256;

// A thread eight numbers of a line of the copy, with zeros behind the last.
__global__ void repitch_half(const uint16_t* from, Divider chunks, int line, int64_t count, uint16_t* to) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const Divider::Result at = chunks(static_cast<int>(i));
  const uint16_t* const source = from + int64_t{at.quotient} * line;
  uint32_t words[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int column = at.rest * 8 + k * 2;
    const uint32_t low = column < line ? source[column] : 0, high = column + 1 < line ? source[column + 1] : 0;
    words[k] = low | high << 16U;
  }
  reinterpret_cast<uint4*>(to)[i] = make_uint4(words[0], words[1], words[2], words[3]);
}

// A thread four columns of a split tile, of so many quads in a row and in a tile.
template <bool kBf16>
__global__ void add_parts_of_half(HalfProduct product, Divider tile_quads, Divider row_quads, int tile_rows,
                                  int64_t count) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const HalfPhase& phase = product.phase[0];
  const Divider::Result tile = tile_quads(static_cast<int>(i));
  const Divider::Result quad = row_quads(tile.rest);
  const int2 at = place_of_tile(phase, phase.whole_tiles + tile.quotient);
  const int row = at.x * tile_rows + quad.quotient;
  const int column = at.y * static_cast<int>(row_quads.by) * 4 + quad.rest * 4;
  if (row >= phase.rows || column >= product.columns) return;
  const ColumnSpan span = span_of(product, column);
  if (span.count <= 0) return;
  const int64_t pitch = int64_t{tile_quads.by} * 4;
  const float* const part = product.parts + tile.quotient * product.splits * pitch + int64_t{tile.rest} * 4;
  float4 sum = *reinterpret_cast<const float4*>(part);
#pragma unroll 8
  for (int split = 1; split < product.splits; ++split) {
    const float4 more = *reinterpret_cast<const float4*>(part + split * pitch);
    sum.x += more.x;
    sum.y += more.y;
    sum.z += more.z;
    sum.w += more.w;
  }
  float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < span.count) sums[k] = finish_at(product.epilogue, sums[k], span.first + k);
  }
  uint16_t* const to = static_cast<uint16_t*>(product.y) + place_of(phase.places, row) + span.first;
  if (product.vectors) {
    *reinterpret_cast<uint2*>(to) = make_uint2(half_pair<kBf16>(sums[0], sums[1]), half_pair<kBf16>(sums[2], sums[3]));
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < span.count) to[k] = half_bits<kBf16>(sums[k]);
  }
}

}  // namespace

uint64_t HalfLines::copy_bytes() const {
  if (!is_copied()) return 0;
  const uint64_t bytes = sizeof(uint16_t) * static_cast<uint64_t>(lines) * static_cast<uint64_t>(pitch());
  return cuda::divide_up(bytes, kAlignment) * kAlignment;
}

const void* place_lines(const HalfLines& lines, const void* data, void* room, cudaStream_t stream) {
  if (!lines.is_copied()) return data;
  const int64_t chunks = lines.pitch() / 8, count = lines.lines * chunks;
  launch_with(repitch_half, cuda::thread_each(count), {.early = true}, stream, static_cast<const uint16_t*>(data),
              Divider(chunks), static_cast<int>(lines.line), count, static_cast<uint16_t*>(room));
  return room;
}

void add_half_parts(const HalfPlan& plan, cudaStream_t stream) {
  const HalfProduct& product = plan.product;
  const HalfPhase& phase = product.phase[0];
  const HalfTile& tile = plan.tile_size();
  const int64_t tile_quads = int64_t{tile.rows} * tile.columns / 4;
  const int64_t tiles = int64_t{phase.row_tiles} * product.column_tiles - phase.whole_tiles;
  launch_with(plan.element == HalfElement::kBf16 ? add_parts_of_half<true> : add_parts_of_half<false>,
              cuda::thread_each(tiles * tile_quads), {.early = true}, stream, product, Divider(tile_quads),
              Divider(tile.columns / 4), tile.rows, tiles * tile_quads);
}

}  // namespace gpunn::cuda_tiled
