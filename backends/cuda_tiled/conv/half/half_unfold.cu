#include "conv/half/half_unfold.hpp"
#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

// A thread eight numbers of a line. Neighbours of a warp read pixels that lie side by side, mostly from L1.
__global__ void unfold_kernel(HalfUnfold unfold, Divider chunks, int64_t count) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const Divider::Result at = chunks(static_cast<int>(i));
  const Divider::Result image = unfold.windows.image(at.quotient);
  const Divider::Result window = unfold.windows.columns(image.rest);
  const int top = unfold.windows.top + window.quotient * unfold.windows.row_stride;
  const int left = unfold.windows.left + window.rest * unfold.windows.column_stride;
  const int channels = static_cast<int>(unfold.channels.by);
  const uint16_t* const pixels = static_cast<const uint16_t*>(unfold.from) +
                                 int64_t{image.quotient} * unfold.pixel_rows * unfold.pixel_columns * channels;
  uint32_t words[4] = {};
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int number = at.rest * 8 + k;
    const Divider::Result tap = unfold.channels(number);
    const Divider::Result tap_row = unfold.filter_columns(tap.quotient);
    const int row = top + tap_row.quotient * unfold.row_step, column = left + tap_row.rest * unfold.column_step;
    const bool inside =
        number < unfold.line && row >= 0 && row < unfold.pixel_rows && column >= 0 && column < unfold.pixel_columns;
    const uint32_t value =
        inside ? pixels[(int64_t{row} * unfold.pixel_columns + column) * channels + tap.rest] : uint16_t{0};
    words[k / 2] |= value << (k % 2 * 16);
  }
  reinterpret_cast<uint4*>(unfold.to)[i] = make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace

void unfold_half(const HalfUnfold& unfold, cudaStream_t stream) {
  const int64_t chunks = unfold.pitch / 8;
  launch_with(unfold_kernel, cuda::thread_each(unfold.count * chunks), {.early = true}, stream, unfold, Divider(chunks),
              unfold.count * chunks);
}

}  // namespace gpunn::cuda_tiled
