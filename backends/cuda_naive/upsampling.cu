// UPSAMPLE2D: one thread computes one element of y. In its gradient one thread computes one element of dx.
//
// In the forward pass neighbouring threads read the same or neighbouring elements and write neighbours. The time is
// that of writing y. In the backward pass each element of dy could add to the four elements that it came from. But
// several of them add to the same element, and atomicAdd would add in a different order in each run. So each element of
// dx gathers its terms. With nearest these are the factor^2 elements that were copied from it. With bilinear the thread
// visits up to 3 factors of elements in each direction, some of which contribute nothing.
//
// The next version would split the backward pass into columns and then rows: 3 factor steps each instead of 9 factor^2
// in all.
#include "common/upsampling.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class T>
__device__ float along(const T* row, const Taps& taps) {
  const auto first = static_cast<float>(row[taps.first]);
  if (taps.second == 0.0F) return first;
  return (1.0F - taps.second) * first + taps.second * static_cast<float>(row[taps.first + 1]);
}

template <class T>
__global__ void upsample(const T* x, T* y, Upsample up) {
  const int64_t i = thread_index();
  if (i >= up.planes() * up.output_size()) return;
  const Taps column = up.columns.taps(i % up.columns.outputs());
  const Taps row = up.rows.taps(i / up.columns.outputs() % up.rows.outputs());
  const T* above = x + i / up.output_size() * up.input_size() + row.first * up.columns.inputs;
  const float first = along(above, column);
  const float sum =
      row.second == 0.0F ? first : (1.0F - row.second) * first + row.second * along(above + up.columns.inputs, column);
  y[i] = static_cast<T>(sum);
}

template <class T>
__global__ void upsample_backward(const T* dy, T* dx, Upsample up) {
  const int64_t i = thread_index();
  if (i >= up.planes() * up.input_size()) return;
  const int64_t column = i % up.columns.inputs;
  const int64_t row = i / up.columns.inputs % up.rows.inputs;
  const T* plane = dy + i / up.input_size() * up.output_size();
  const OutputSpan rows = up.rows.outputs_of(row);
  const OutputSpan columns = up.columns.outputs_of(column);
  float sum = 0.0F;
  for (int64_t p = rows.begin; p < rows.end; ++p) {
    const float of_row = up.rows.share(row, p);
    if (of_row == 0.0F) continue;
    for (int64_t q = columns.begin; q < columns.end; ++q) {
      const float of_column = up.columns.share(column, q);
      if (of_column != 0.0F) sum += of_row * of_column * static_cast<float>(plane[p * up.columns.outputs() + q]);
    }
  }
  dx[i] = static_cast<T>(sum);
}

template <class T>
void run_upsampling(const Upsample& up, cudaStream_t stream, const OpArgs& args) {
  launch(upsample<T>, thread_each(up.planes() * up.output_size()), stream, args.in<T>(0), args.out<T>(0), up);
}

template <class T>
void run_upsampling_backward(const Upsample& up, cudaStream_t stream, const OpArgs& args) {
  launch(upsample_backward<T>, thread_each(up.planes() * up.input_size()), stream, args.in<T>(0), args.out<T>(0), up);
}

}  // namespace

void add_upsampling_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_UPSAMPLE2D, "upsample2d", upsample_of,
         each_floating([](auto x) { return run_upsampling<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_UPSAMPLE2D_BACKWARD, "upsample2d_backward", upsample_backward_of,
         each_floating([](auto x) { return run_upsampling_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
