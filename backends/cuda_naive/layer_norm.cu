// LAYER_NORM: one thread block computes one row. In the gradient one block computes dx of one row, then one thread a
// column computes dgamma and dbeta.
//
// The threads of a block stride through the row together, so the reads are coalesced. The block reads the row three
// times: for the mean, for the squared differences from it, and for the result. The cache serves all reads but the
// first if the row fits. In the second kernel each thread goes down its own column. Each step is coalesced, but with a
// thousand columns only four blocks work, and each waits for every one of its rows. The next version would give a row
// to a warp that keeps it in registers. It would split the column sums by rows over many blocks and add them in a
// second pass.
#include <algorithm>
#include <cstdint>

#include "block_tree.cuh"
#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

struct Affine {
  const float* gamma;
  const float* beta;
};

struct Statistics {
  float* mean;
  float* rstd;
};

template <class T>
__global__ void layer_norm(const T* x, Affine by, T* y, Statistics to, LayerNorm shape) {
  const auto columns = static_cast<float>(shape.columns);
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* row_of_x = x + row * shape.columns;
    T* out = y + row * shape.columns;
    const auto in = [row_of_x](int64_t i) { return static_cast<float>(row_of_x[i]); };
    float sum = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.columns; i += blockDim.x) sum += in(i);
    const float mean = block_sum(sum) / columns;
    float squares = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.columns; i += blockDim.x) squares += (in(i)-mean) * (in(i)-mean);
    const float rstd = 1.0F / sqrtf(block_sum(squares) / columns + shape.epsilon);
    for (int64_t i = threadIdx.x; i < shape.columns; i += blockDim.x) {
      out[i] = static_cast<T>((in(i)-mean) * rstd * by.gamma[i] + by.beta[i]);
    }
    if (threadIdx.x == 0) {
      to.mean[row] = mean;
      to.rstd[row] = rstd;
    }
  }
}

struct SavedLayerNorm {
  const float* gamma;
  const float* mean;
  const float* rstd;
};

template <class T>
__global__ void layer_norm_backward(const T* dy, const T* x, SavedLayerNorm saved, T* dx, LayerNorm shape) {
  const auto columns = static_cast<float>(shape.columns);
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t begin = row * shape.columns;
    const float mean = saved.mean[row];
    const float rstd = saved.rstd[row];
    const auto gradient = [=](int64_t i) { return static_cast<float>(dy[begin + i]) * saved.gamma[i]; };
    const auto centred = [=](int64_t i) { return static_cast<float>(x[begin + i]) - mean; };
    float sum = 0.0F;
    float product = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.columns; i += blockDim.x) {
      sum += gradient(i);
      product += gradient(i) * centred(i);
    }
    const float offset = block_sum(sum) / columns;
    const float slope = block_sum(product) / columns * rstd * rstd;
    for (int64_t i = threadIdx.x; i < shape.columns; i += blockDim.x) {
      dx[begin + i] = static_cast<T>(rstd * (gradient(i) - offset - centred(i) * slope));
    }
  }
}

template <class T>
__global__ void sum_columns(const T* dy, const T* x, SavedLayerNorm saved, float* dgamma, float* dbeta,
                            LayerNorm shape) {
  const int64_t column = thread_index();
  if (column >= shape.columns) return;
  float products = 0.0F;
  float sum = 0.0F;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t i = row * shape.columns + column;
    const auto gradient = static_cast<float>(dy[i]);
    products += gradient * ((static_cast<float>(x[i]) - saved.mean[row]) * saved.rstd[row]);
    sum += gradient;
  }
  dgamma[column] = products;
  dbeta[column] = sum;
}

template <class T>
void run_layer_norm(const LayerNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const Affine by{.gamma = args.in<float>(1), .beta = args.in<float>(2)};
  const Statistics to{.mean = args.out<float>(1), .rstd = args.out<float>(2)};
  launch(layer_norm<T>, tree_each(shape.rows, shape.columns), stream, args.in<T>(0), by, args.out<T>(0), to, shape);
}

template <class T>
void run_layer_norm_backward(const LayerNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* dy = args.in<T>(0);
  const auto* x = args.in<T>(1);
  const SavedLayerNorm saved{.gamma = args.in<float>(2), .mean = args.in<float>(3), .rstd = args.in<float>(4)};
  launch(layer_norm_backward<T>, tree_each(shape.rows, shape.columns), stream, dy, x, saved, args.out<T>(0), shape);
  launch(sum_columns<T>, thread_each(shape.columns), stream, dy, x, saved, args.out<float>(1), args.out<float>(2),
         shape);
}

}  // namespace

void add_layer_norm_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_LAYER_NORM, "layer_norm", layer_norm_of,
         each_floating([](auto x) { return run_layer_norm<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_LAYER_NORM_BACKWARD, "layer_norm_backward", layer_norm_backward_of,
         each_floating([](auto x) { return run_layer_norm_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
