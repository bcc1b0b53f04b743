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

// A thread four columns of y'.
template <bool kBf16>
__global__ void add_parts_of_half(HalfProduct product, Divider quads, int64_t count) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const int rows = product.phase[0].rows;
  const Divider::Result at = quads(static_cast<int>(i));
  const int row = at.quotient, column = at.rest * 4;
  const ColumnSpan span = span_of(product, column);
  if (span.count <= 0) return;
  const float* part = product.parts + int64_t{row} * product.parts_pitch + column;
  const int64_t pitch = int64_t{rows} * product.parts_pitch;
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
  uint16_t* const to = static_cast<uint16_t*>(product.y) + place_of(product.phase[0].places, row) + span.first;
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
  const int64_t quads = product.parts_pitch / 4, count = quads * product.phase[0].rows;
  launch_with(plan.element == HalfElement::kBf16 ? add_parts_of_half<true> : add_parts_of_half<false>,
              cuda::thread_each(count), {.early = true}, stream, product, Divider(quads), count);
}

}  // namespace gpunn::cuda_tiled
