// Runs before half_product: copies lines that TMA can't read.
#include <cstdint>

#include "cuda_common/launch.hpp"
#include "cuda_common/workspace.hpp"
#include "dependent_launch.cuh"
#include "half/half_plan.hpp"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

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

}  // namespace

uint64_t HalfLines::copy_bytes() const {
  if (!is_copied()) return 0;
  const uint64_t bytes = sizeof(uint16_t) * static_cast<uint64_t>(lines) * static_cast<uint64_t>(pitch());
  return cuda::workspace_aligned(bytes);
}

const void* place_lines(const HalfLines& lines, const void* data, void* room, cudaStream_t stream) {
  if (!lines.is_copied()) return data;
  const int64_t chunks = lines.pitch() / 8, count = lines.lines * chunks;
  launch_with(repitch_half, cuda::thread_each(count), {.early = true}, stream, static_cast<const uint16_t*>(data),
              Divider(chunks), static_cast<int>(lines.line), count, static_cast<uint16_t*>(room));
  return room;
}

}  // namespace gpunn::cuda_tiled
