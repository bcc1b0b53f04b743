// ARGMAX and CONFUSION_ACCUMULATE: one thread finds the class of one position. Neighbouring threads read neighbouring
// numbers, one class after the other; of rows x[N,C] they read numbers that lie a row apart, which the caches merge if
// there are few classes.
//
// Most positions of a batch fall into a few cells of the confusion matrix, and atomic additions to one address wait for
// each other. So a block counts in shared memory, where such an addition takes some cycles only, and adds its counts to
// the matrix at the end. A matrix of many classes does not fit there, but its positions spread over more cells. Counts
// are integers: the order of the additions does not matter.
#include <algorithm>

#include "common/class_scores.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

constexpr int64_t kMostSharedCells = 48 * 1024 / sizeof(unsigned);
constexpr int64_t kMostCountingBlocks = 1024;

struct LargestClass {
  int64_t index;
  float score;
};

// The first of the largest; the first NaN if there is one. The loop continues after a NaN, so that several loads
// may be under way at once.
template <class T>
__device__ LargestClass largest_class(const ClassScores& shape, const T* x, int64_t position) {
  const T* scores = x + shape.first(position);
  LargestClass best{0, static_cast<float>(scores[0])};
#pragma unroll 8
  for (int64_t c = 1; c < shape.classes; ++c) {
    const auto score = static_cast<float>(scores[c * shape.inner]);
    const bool first_nan = isnan(score) && !isnan(best.score);
    if (score > best.score || first_nan) best = {c, score};
  }
  return best;
}

template <class T>
__global__ void argmax(ClassScores shape, const T* x, int32_t* y) {
  const int64_t i = thread_index();
  if (i < shape.positions()) y[i] = static_cast<int32_t>(largest_class(shape, x, i).index);
}

// The cell that a position counts in; -1 if it counts nowhere.
template <class T>
__device__ int64_t cell_of(const ClassScores& shape, const T* x, const int32_t* label, int64_t position) {
  const int32_t named = label[position];
  if (named < 0 || named >= shape.classes) return -1;
  const LargestClass found = largest_class(shape, x, position);
  return isnan(found.score) ? -1 : named * shape.classes + found.index;
}

__device__ void add_count(int64_t* cell, unsigned count) {
  atomicAdd(reinterpret_cast<unsigned long long*>(cell), static_cast<unsigned long long>(count));
}

template <class T>
__global__ void count_in_shared_memory(ClassScores shape, const T* x, const int32_t* label, const int32_t* count,
                                       int64_t* confusion) {
  extern __shared__ unsigned counts[];
  const int64_t cells = shape.classes * shape.classes;
  for (int64_t cell = threadIdx.x; cell < cells; cell += blockDim.x) counts[cell] = 0;
  __syncthreads();
  const int64_t positions = shape.counted(*count);
  for (int64_t i = thread_index(); i < positions; i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t cell = cell_of(shape, x, label, i);
    if (cell >= 0) atomicAdd(&counts[cell], 1U);
  }
  __syncthreads();
  for (int64_t cell = threadIdx.x; cell < cells; cell += blockDim.x) {
    if (counts[cell] != 0) add_count(confusion + cell, counts[cell]);
  }
}

template <class T>
__global__ void count_in_memory(ClassScores shape, const T* x, const int32_t* label, const int32_t* count,
                                int64_t* confusion) {
  const int64_t i = thread_index();
  if (i >= shape.counted(*count)) return;
  const int64_t cell = cell_of(shape, x, label, i);
  if (cell >= 0) add_count(confusion + cell, 1);
}

template <class T>
void run_argmax(const ClassScores& shape, cudaStream_t stream, const OpArgs& args) {
  launch(argmax<T>, thread_each(shape.positions()), stream, shape, args.in<T>(0), args.out<int32_t>(0));
}

template <class T>
void run_confusion(const ClassScores& shape, cudaStream_t stream, const OpArgs& args) {
  const int64_t cells = shape.classes * shape.classes;
  Launch launched = thread_each(shape.positions());
  if (cells > kMostSharedCells) {
    return launch(count_in_memory<T>, launched, stream, shape, args.in<T>(0), args.in<int32_t>(1), args.in<int32_t>(2),
                  args.out<int64_t>(0));
  }
  launched.grid.x = static_cast<unsigned>(std::min(int64_t{launched.grid.x}, kMostCountingBlocks));
  launched.shared_bytes = static_cast<unsigned>(cells * static_cast<int64_t>(sizeof(unsigned)));
  launch(count_in_shared_memory<T>, launched, stream, shape, args.in<T>(0), args.in<int32_t>(1), args.in<int32_t>(2),
         args.out<int64_t>(0));
}

}  // namespace

void add_argmax_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ARGMAX, "argmax", argmax_of, each_floating([](auto x) { return run_argmax<decltype(x)>; }),
         Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_CONFUSION_ACCUMULATE, "confusion_accumulate", argmax_of,
         each_floating([](auto x) { return run_confusion<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
