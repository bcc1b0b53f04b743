// CUMSUM: one thread adds up one line. TRIL: one thread copies one element.
//
// The threads of a warp read neighbouring lines. Along the last dimension these lie a line apart, so that each load
// takes a sector of its own and most of it is used by later loads, out of the cache.
#include "common/scan.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class T>
__global__ void cumsum(const T* x, T* y, CumulativeSum sum) {
  const int64_t line = thread_index();
  if (line >= sum.lines()) return;
  double total = 0.0;  // in f32 the rounding errors of a long line would add up
  int64_t place = sum.first(line);
  for (int64_t i = 0; i < sum.size; ++i, place += sum.step()) {
    const double before = total;
    total += static_cast<double>(static_cast<float>(x[place]));
    y[place] = static_cast<T>(static_cast<float>(sum.exclusive ? before : total));
  }
}

template <class T>
__global__ void tril(const T* x, T* y, Triangle triangle) {
  const int64_t i = thread_index();
  if (i >= triangle.elements()) return;
  y[i] = triangle.keeps(i / triangle.columns % triangle.rows, i % triangle.columns) ? x[i] : static_cast<T>(0.0F);
}

template <class T>
void run_cumsum(const CumulativeSum& sum, cudaStream_t stream, const OpArgs& args) {
  launch(cumsum<T>, thread_each(sum.lines()), stream, args.in<T>(0), args.out<T>(0), sum);
}

template <class T>
void run_tril(const Triangle& triangle, cudaStream_t stream, const OpArgs& args) {
  launch(tril<T>, thread_each(triangle.elements()), stream, args.in<T>(0), args.out<T>(0), triangle);
}

}  // namespace

void add_scan_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_CUMSUM, "cumsum", cumulative_sum_of,
         each_floating([](auto x) { return run_cumsum<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_TRIL, "tril", triangle_of, each_floating([](auto x) { return run_tril<decltype(x)>; }),
         Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
