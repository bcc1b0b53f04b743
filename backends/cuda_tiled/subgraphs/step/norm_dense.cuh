// Batch norm behind the dense layers of a fused training step, and its gradient. A cluster publishes one word for each
// output, for all of its images.
#pragma once

#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/dense.cuh"
#include "subgraphs/step/exchange.cuh"
#include "subgraphs/step/norm.cuh"
#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

// Sums with bias of a dense layer's outputs [from, from + rows), which are kept, and their statistics over all images
// of the batch. By all threads.
template <class B>
__device__ __forceinline__ void dense_statistics(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                 int rows, int from, int rank, int first_row) {
  constexpr int kWarps = B::kThreads / 32;
  constexpr int kImages = B::kImages;
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const NormExchange exchange(tensors, finish, false);
  const NormTable table = norm_table(finish, dense.slice);
  const Affine<B> affine(tensors, finish.finish.norm, from, rows);
  const int counted = counted_rows(plan, batch);
  const auto counted_in = [&](int cluster) { return min(max(counted - cluster * kImages, 0), kImages); };
  const int cluster = first_row / kImages;
  const int mine = counted_in(cluster);
  const bool tells = mine > 0 && (dense.sliced != 0 || rank == 0);
  const float share = 1.0F / static_cast<float>(max(mine, 1));
  const int thread = static_cast<int>(threadIdx.x);
  // Neighbouring threads have an output's images. Whole warps, for the shuffles.
  for (int i = thread; i - thread % 32 < rows * kImages; i += B::kThreads) {
    const int slot = i / kImages;
    const bool there = slot < rows;
    const bool counts = i % kImages < mine;
    const float u = there ? dense_sum<B>(dense, rows, slot, i % kImages) : 0.0F;
    if (there) shared_floats()[finish.u + i] = u;
    const auto sum_of_images = [](float value) {
#pragma unroll
      for (int step = kImages / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
      return value;
    };
    const float mean = sum_of_images(counts ? u : 0.0F) * share;
    const float off = counts ? u - mean : 0.0F;
    const float squares = sum_of_images(off * off);
    if (i % kImages == 0 && there && tells) {
      tell(exchange.source(from + slot, cluster), make_float2(mean, squares), batch.run);
    }
  }
  affine.store(table, rows, counted > 0);
  const int sources = (counted + kImages - 1) / kImages;
  for (int c = first_row + rank + (kWarps - 1 - thread / 32) * plan.pass_blocks; c < finish.channels;
       c += kWarps * plan.pass_blocks) {
    reduce_statistics(plan, tensors, finish, exchange, batch.run, c, sources, static_cast<float>(counted),
                      [&](int source) { return static_cast<float>(counted_in(source)); });
  }
  wait_for_statistics<B>(exchange, table, batch.run, from, rows);
  __syncthreads();
}

// In front of a dense layer's batch norm, of the gradient behind it in dense.dy; to put(slot, image, value). By all
// threads.
template <class B, class Put>
__device__ __forceinline__ void dense_norm_backward(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                    int rows, int from, int rank, int first_row, Put put) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const float* u = shared_floats() + finish.u;
  const float* dy = shared_floats() + dense.dy;
  const NormTable table = norm_table(finish, dense.slice);
  const NormExchange exchange(tensors, finish, true);
  const int counted = counted_rows(plan, batch);
  const int thread = static_cast<int>(threadIdx.x);
  for (int slot = thread; slot < rows; slot += B::kThreads) {
    if (dense.sliced == 0 && rank != 0) continue;
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll
    for (int image = 0; image < B::kImages; ++image) {
      const float d = first_row + image < counted ? dy[slot * B::kImages + image] : 0.0F;
      sum.x += d;
      sum.y = fmaf(d, table.standard(slot, u[slot * B::kImages + image]), sum.y);
    }
    tell(exchange.source(from + slot, first_row / B::kImages), sum, batch.run);
  }
  const int sources = (counted + B::kImages - 1) / B::kImages;
  for (int c = first_row + rank + (kWarps - 1 - thread / 32) * plan.pass_blocks; c < finish.channels;
       c += kWarps * plan.pass_blocks) {
    reduce_gradients(plan, tensors, finish, exchange, batch.run, c, sources, static_cast<float>(counted));
  }
  wait_for_results<B>(exchange, batch.run, from, rows, [&](int slot, float2 result) {
    table.mean_d(slot) = result.x;
    table.mean_dx(slot) = result.y;
  });
  __syncthreads();
  for (int i = thread; i < rows * B::kImages; i += B::kThreads) {
    const int slot = i / B::kImages;
    const int image = i % B::kImages;
    const float value = table.gamma(slot) * table.rstd(slot) *
                        (dy[i] - table.mean_d(slot) - table.standard(slot, u[i]) * table.mean_dx(slot));
    put(slot, image, first_row + image < counted ? value : 0.0F);
  }
}

}  // namespace gpunn::cuda_tiled
