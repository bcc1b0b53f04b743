// MATMUL, BATCH_MATMUL and MATMUL_BIAS_ACTIVATION. One thread computes one element of y: it walks along a row of a and
// a column of b.
//
// Neighbouring threads compute neighbouring columns. If b is not transposed, they read neighbours of b, coalesced, and
// the same element of a, which the cache serves to all of them at once. If b is transposed, each thread walks along its
// own row, and a warp touches 32 places K elements apart. This would cost 8 times the traffic, but the next 7 steps
// find their data in the cache.
//
// Each product needs two loads, and the thread uses each loaded number once. The whole y needs each element of a N
// times and each of b M times. The load units therefore limit the speed to a few per cent of the GPU's arithmetic peak
// at large shapes. At small shapes M x N threads are too few to fill the GPU, however long K is. The next version would
// let a block load a tile of a and of b into shared memory once and use each element 16 or 32 times. Each thread would
// hold a small tile of y in registers, and several blocks would share a long K. The last step is tensor cores.
#include "common/matmul.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "epilogue.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Element i of one product.
template <class T>
__device__ float product_element(const T* a, const T* b, Matmul shape, int64_t i) {
  const int64_t row = i / shape.n;
  const int64_t column = i % shape.n;
  // A transpose is another way to walk: which stride belongs to the index of y, and which to k.
  const T* left = a + row * (shape.transpose_a ? 1 : shape.k);
  const T* right = b + column * (shape.transpose_b ? shape.k : 1);
  const int64_t left_step = shape.transpose_a ? shape.m : 1;
  const int64_t right_step = shape.transpose_b ? 1 : shape.n;
  float sum = 0.0F;
  for (int64_t k = 0; k < shape.k; ++k) {
    sum += static_cast<float>(left[k * left_step]) * static_cast<float>(right[k * right_step]);
  }
  return sum;
}

template <class T>
__global__ void matmul(const T* a, const T* b, Epilogue epilogue, T* y, Matmul shape) {
  const int64_t i = thread_index();
  if (i < shape.m * shape.n) y[i] = static_cast<T>(epilogue(product_element(a, b, shape, i), i % shape.n));
}

template <class T>
__global__ void batch_matmul(const T* a, const T* b, T* y, BatchMatmul shape) {
  const int64_t size = shape.one.m * shape.one.n;
  const int64_t i = thread_index();
  if (i >= shape.batch * size) return;
  const int64_t product = i / size;
  const T* left = a + product * shape.one.m * shape.one.k;
  const T* right = b + product * shape.one.k * shape.one.n;
  y[i] = static_cast<T>(product_element(left, right, shape.one, i % size));
}

template <class T>
void run(const Matmul& shape, const Epilogue& epilogue, cudaStream_t stream, const OpArgs& args) {
  launch(matmul<T>, thread_each(shape.m * shape.n), stream, args.in<T>(0), args.in<T>(1), epilogue, args.out<T>(0),
         shape);
}

template <class T>
void run_matmul(const Matmul& shape, cudaStream_t stream, const OpArgs& args) {
  run<T>(shape, {}, stream, args);
}

template <class T>
void run_batch_matmul(const BatchMatmul& shape, cudaStream_t stream, const OpArgs& args) {
  launch(batch_matmul<T>, thread_each(shape.batch * shape.one.m * shape.one.n), stream, args.in<T>(0), args.in<T>(1),
         args.out<T>(0), shape);
}

template <class T>
void run_matmul_bias_activation(const Matmul& shape, cudaStream_t stream, const OpArgs& args) {
  run<T>(shape, {.bias = args.in<float>(2), .relu = shape.relu}, stream, args);
}

}  // namespace

void add_matmul_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_MATMUL, "matmul", matmul_of, each_floating([](auto x) { return run_matmul<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_BATCH_MATMUL, "batch_matmul", batch_matmul_of,
         each_floating([](auto x) { return run_batch_matmul<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, "matmul_bias_activation", matmul_bias_activation_of,
         each_floating([](auto x) { return run_matmul_bias_activation<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
