// A fused training step of a large batch. Separate kernels compute the forward convolutions, the dense layers and the
// loss (rounds_dense.cuh), and the backward convolutions. The second kernel of other steps then makes the weight
// gradients of dense layers and updates all parameters.
//
// With one block an image (pass.cuh) a multiprocessor holds one image at a time: its dense weights fill the shared
// memory, and each phase of an image is shorter than its start-up latency. So LeNet-5 takes 32 us at batch 128 and 16
// times as long at 2048 (H200), a sixth of the speed that the arithmetic allows. Here the convolutions are separate
// kernels. Without dense weights several blocks fit a multiprocessor: while one waits, others multiply. A block
// processes one image after another. Its filters stay in shared memory, and so do its sums of the filters' gradients.
// So one sum a block is left to be added, not one an image.
//
// The backward pass needs each convolution's x and the maxima of the windows. These are contiguous in shared memory;
// they are copied to the workspace and back unchanged.
#pragma once

#include "dependent_launch.cuh"
#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layers.cuh"
#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/sync.cuh"
#include "subgraphs/step/tensors.hpp"

namespace gpunn::cuda_tiled {

// The sample at `row` of the batch of step `counter`; -1: none.
template <class B>
__device__ __forceinline__ int sample_of_row(const StepPlan& plan, const StepTensors& tensors, int64_t counter,
                                             int row) {
  if constexpr (B::kBatches) {
    if (plan.ready != 0) return row;
  }
  const int64_t step = max(counter, int64_t{0});
  const int noted = noted_sample(plan, tensors, step, row);
  return noted == kNotNoted ? sample_index(plan, step, row) : noted;
}

// Calls put(at, value) for elements `thread`, `thread` + threads, ... of the sample at `row`; zeros where there is
// none.
template <class B, class Put>
__device__ __forceinline__ void fetch_sample(const StepPlan& plan, const TensorsOf<B>& tensors, int64_t counter,
                                             int index, int row, int thread, int threads, Put put) {
  if constexpr (B::kBatches) {
    if (plan.ready != 0) return copy_sample(plan, tensors, index, thread, threads, put);
  }
  if (index < 0 || index >= plan.data_rows) {
    for (int at = thread; at < plan.sample_size; at += threads) put(at, 0.0F);
    return;
  }
  if constexpr (B::kBatches) {
    if (plan.shifted != 0) return gather_shifted(plan, tensors, index, counter, row, thread, threads, put);
  }
  gather_sample<2>(plan, tensors, index, thread, threads, put);
}

template <class B>
__device__ __forceinline__ int64_t step_counter(const StepTensors& tensors) {
  if constexpr (B::kBatches) {
    if (tensors.step == nullptr) return 0;
  }
  return __ldcg(reinterpret_cast<const long long*>(tensors.step));
}

// From pixels to the first dense layer's x, in shared memory.
template <class B>
__device__ __forceinline__ void forward_image(const TensorsOf<B>& tensors, const StepBatch& batch, int row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int layer = 0; layer < plan.n_convs; ++layer) {
    run_row_pass<B>(layer, false);
    __syncthreads();
    const bool last = layer + 1 == plan.n_convs;
    const ConvPlan& above = plan.conv[last ? layer : layer + 1];
    float* y = shared + (last ? plan.dense[0].x : above.x + above.x_left);
    const int y_plane = above.x_plane;
    const int y_pitch = above.x_pitch;
    const auto put = [&](int filter, int line, int column, int i, float value) {
      y[last ? i : filter * y_plane + line * y_pitch + column] = value;
    };
    if constexpr (B::kFinishes) {
      finish_conv_general<B>(tensors, batch, layer, row, put, [] { __syncthreads(); });
    } else {
      finish_conv<B>(plan.conv[layer], put);
    }
    __syncthreads();
  }
}

template <class B>
__global__ void __launch_bounds__(B::kBound, B::kBlocks) rounds_forward(const __grid_constant__ TensorsOf<B> tensors) {
#if __CUDA_ARCH__ >= 900
  __shared__ StepBatch batch;
  const int thread = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x);
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  copy_plan<B::kGeneral>(tensors.plan, step_shared, B::kThreads);
  __syncthreads();
  clear<B>(plan.zeros[0]);
  const FilterPlaces filters = filter_places(thread, B::kThreads, block);
  wait_for_kernel_before();
  let_next_kernel_start();
  const int64_t counter = step_counter<B>(tensors);
  if (thread == 0) batch.counter = counter;
  const auto blocks = static_cast<int>(gridDim.x);
  int* samples = reinterpret_cast<int*>(shared) + plan.samples;
  for (int i = thread; block + i * blocks < plan.batch; i += B::kThreads) {
    samples[i] = sample_of_row<B>(plan, tensors, counter, block + i * blocks);
  }
  stage_filters(tensors.parameters, filters, thread, B::kThreads, block);
  wait_for_copies();
  __syncthreads();
  const ConvPlan& conv = plan.conv[0];
  float* x = shared + conv.x + conv.x_left;
#pragma unroll 1
  for (int i = 0; block + i * blocks < plan.batch; ++i) {
    const int row = block + i * blocks;
    fetch_sample<B>(plan, tensors, counter, samples[i], row, thread, B::kThreads, [&](int at, float value) {
      const int line = divide(at, conv.by_width);  // of all channels: planes are `height` lines
      x[line * conv.x_pitch + at - line * conv.width] = value;
    });
    __syncthreads();
    forward_image<B>(tensors, batch, row);
    copy_row<B>(tensors.workspace + plan.kept_rows + int64_t{row} * plan.kept, shared + plan.kept_from, plan.kept);
    copy_row<B>(tensors.workspace + plan.dense[0].x_rows + int64_t{row} * plan.dense[0].x_pitch,
                shared + plan.dense[0].x, plan.dense[0].x_pitch);
    __syncthreads();
  }
#endif
}

template <class B>
__global__ void __launch_bounds__(B::kBound, B::kBlocks) rounds_backward(const __grid_constant__ TensorsOf<B> tensors) {
#if __CUDA_ARCH__ >= 900
  __shared__ StepBatch batch;
  const int thread = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x);
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  copy_plan<B::kGeneral>(tensors.plan, step_shared, B::kThreads);
  __syncthreads();
  const FilterPlaces filters = filter_places(thread, B::kThreads, block);
  for (int i = thread; i < plan.partials; i += B::kThreads) shared[plan.totals + i] = 0.0F;
  wait_for_kernel_before();
  // The second kernel's tiles of dense layers may begin: all of their factors have been written.
  let_next_kernel_start();
  stage_filters(tensors.parameters, filters, thread, B::kThreads, block);
  wait_for_copies();
  __syncthreads();
#pragma unroll 1
  for (int layer = 1; layer < plan.n_convs; ++layer) {
    if (plan.conv[layer].by_rows == 0) turn_filters(layer, thread, B::kThreads);
  }
  const auto fetch = [&](int to, int64_t from, int floats) {
    for (int i = 4 * thread; i < floats; i += 4 * B::kThreads) {
      copy_async<16>(shared + to + i, tensors.workspace + from + i);
    }
  };
#pragma unroll 1
  for (int row = block; row < plan.batch; row += static_cast<int>(gridDim.x)) {
    const int x_pitch = plan.dense[0].x_pitch;
    fetch(plan.kept_from, plan.kept_rows + int64_t{row} * plan.kept, plan.kept);
    fetch(plan.dense[0].received, plan.dx_rows + int64_t{row} * x_pitch, x_pitch);
    if constexpr (B::kFinishes) fetch_kept<B>(tensors, row);
    clear<B>(plan.zeros[1]);
    wait_for_copies();
    __syncthreads();
    conv_backward<B>(tensors, batch, 0, row);
  }
  __syncthreads();
  float* partial = tensors.workspace + plan.partial_rows + int64_t{block} * plan.partials;
  for (int i = thread; i < plan.partials; i += B::kThreads) partial[i] = shared[plan.totals + i];
#endif
}

}  // namespace gpunn::cuda_tiled
