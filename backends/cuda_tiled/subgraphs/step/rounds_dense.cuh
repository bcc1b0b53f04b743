// Dense layers and loss of a large batch in a fused training step, forward and backward. A block has IMAGES images.
//
// A block reads each weight once, directly into registers, and uses it for all of its images. Shared memory holds the
// data that is read repeatedly: x and the gradients.
//
// Forward, y[image][row] = x[image] . w[row]: a warp has 8 rows and up to 8 images, and each lane has four inputs. The
// lanes' sums are added at the end (add_over_lanes). Backward, dx[image] = sum of dy[image][row] w[row]: a thread has
// four inputs of up to 8 images, and a share of the rows.
#pragma once

#include "subgraphs/step/rounds.cuh"

namespace gpunn::cuda_tiled {

struct DenseBatch {
  int64_t counter;
  int count;
  int index[kDenseRoundImages[2]];
  int labels[kDenseRoundImages[2]];
};

// Four neighbouring weights of a row, from the i-th four on; zeros behind the last one.
template <bool ALIGNED>
__device__ __forceinline__ float4 four_weights(const float* row, int i, int inputs) {
  if constexpr (ALIGNED) {
    return __ldg(reinterpret_cast<const float4*>(row) + i);
  } else {
    const int at = 4 * i;
    return make_float4(__ldg(row + at), at + 1 < inputs ? __ldg(row + at + 1) : 0.0F,
                       at + 2 < inputs ? __ldg(row + at + 2) : 0.0F, at + 3 < inputs ? __ldg(row + at + 3) : 0.0F);
  }
}

// Calls put(row, image, value) for all sums without the bias.
template <class B, bool ALIGNED, class Put>
__device__ __forceinline__ void round_product(const StepTensors& tensors, const DensePlan& dense, Put put) {
  constexpr int kRows = 8;
  constexpr int kSome = B::kImages < 8 ? B::kImages : 8;
  constexpr int kGroups = B::kImages / kSome;
  constexpr int kEach = kRows * kSome / 32;  // sums of a lane, when they are added up
  const float* shared = shared_floats();
  const float* w = tensors.parameters + dense.weight_at;
  const int inputs = dense.inputs;
  const int outputs = dense.outputs;
  const int fours = (inputs + 3) / 4;
  const int pitch = dense.x_pitch / 4;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int items = (outputs + kRows - 1) / kRows * kGroups;
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x / 32); item < items; item += B::kThreads / 32) {
    const int first_row = item / kGroups * kRows;
    const int first_image = item % kGroups * kSome;
    const float4* x = reinterpret_cast<const float4*>(shared + dense.x) + first_image * pitch;
    float sum[kRows * kSome] = {};
#pragma unroll 1
    for (int i = lane; i < fours; i += 32) {
      float4 a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        a[r] = four_weights<ALIGNED>(w + int64_t{min(first_row + r, outputs - 1)} * inputs, i, inputs);
      }
#pragma unroll
      for (int m = 0; m < kSome; ++m) {
        const float4 b = x[m * pitch + i];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          float& s = sum[r * kSome + m];
          s = fmaf(a[r].x, b.x, s);
          s = fmaf(a[r].y, b.y, s);
          s = fmaf(a[r].z, b.z, s);
          s = fmaf(a[r].w, b.w, s);
        }
      }
    }
    __syncwarp();
    add_over_lanes<32>(sum);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int at = lane * kEach + j;
      const int row = first_row + at / kSome;
      if (row < outputs) put(row, first_image + at % kSome, sum[j]);
    }
  }
}

// Shares of the gradient towards x, to scratch: [share][image][x_pitch].
template <class B, bool ALIGNED>
__device__ __forceinline__ void round_back(const StepTensors& tensors, const DensePlan& dense) {
  constexpr int kSome = B::kImages < 8 ? B::kImages : 8;
  constexpr int kGroups = B::kImages / kSome;
  constexpr int kApart = B::kImages + kDenseRoundPad;
  float* shared = shared_floats();
  const float* w = tensors.parameters + dense.weight_at;
  const int inputs = dense.inputs;
  const int fours = (inputs + 3) / 4;
  float* scratch = shared + shared_plan().scratch;
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x); item < fours * kGroups * dense.splits; item += B::kThreads) {
    const int part = divide(item, dense.by_fours);
    const int i = item - part * fours;
    const int first_image = part % kGroups * kSome;
    const int split = part / kGroups;
    const int end = min(dense.outputs, (split + 1) * dense.share);
    float4 sum[kSome];
#pragma unroll
    for (int m = 0; m < kSome; ++m) sum[m] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll 4
    for (int row = split * dense.share; row < end; ++row) {
      const float4 a = four_weights<ALIGNED>(w + int64_t{row} * inputs, i, inputs);
      const float4* d = reinterpret_cast<const float4*>(shared + dense.dy + row * kApart + first_image);
#pragma unroll
      for (int f = 0; f < kSome / 4; ++f) {
        const float4 four = d[f];
        const float gradient[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          float4& s = sum[4 * f + m];
          s.x = fmaf(a.x, gradient[m], s.x);
          s.y = fmaf(a.y, gradient[m], s.y);
          s.z = fmaf(a.z, gradient[m], s.z);
          s.w = fmaf(a.w, gradient[m], s.w);
        }
      }
    }
    float4* to = reinterpret_cast<float4*>(scratch + (split * B::kImages + first_image) * dense.x_pitch) + i;
#pragma unroll
    for (int m = 0; m < kSome; ++m) to[m * (dense.x_pitch / 4)] = sum[m];
  }
}

__device__ __forceinline__ bool aligned_rows(const DensePlan& dense) {
  return dense.inputs % 4 == 0 && dense.weight_at % 4 == 0;
}

// A dense layer's sums of all images with what follows them.
template <class B>
__device__ __forceinline__ void round_forward(const TensorsOf<B>& tensors, int64_t counter, int layer, int first_row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const bool last = layer + 1 == plan.n_dense;
  float* y = shared + (last ? plan.logits : plan.dense[layer + 1].x);
  const int pitch = last ? plan.logits_pitch : plan.dense[layer + 1].x_pitch;
  const float* bias = tensors.parameters + max(dense.bias_at, int64_t{0});
  const bool biased = dense.bias_at >= 0;
  const auto put = [&](int row, int image, float u) {
    if (biased) u += __ldg(bias + row);
    if constexpr (B::kFinishes) {
      if (finish.kept != 0) shared[finish.u + row * B::kImages + image] = u;
      u = activate(finish.finish.activation, finish.finish.slope, u);
      if (finish.finish.dropout.threshold != 0) u = Dropping(plan, finish, counter, first_row + image)(row, u);
    } else {
      u = dense.relu != 0 && u < 0.0F ? 0.0F : u;
    }
    y[image * pitch + row] = u;
  };
  if (aligned_rows(dense)) return round_product<B, true>(tensors, dense, put);
  round_product<B, false>(tensors, dense, put);
}

// A dense layer's gradient `value` at the layer's output, kept as a factor of its weight gradient too.
template <class B>
__device__ __forceinline__ void put_dense_gradient(const StepTensors& tensors, const DensePlan& dense, int first_row,
                                                   int output, int image, float value) {
  constexpr int kApart = B::kImages + kDenseRoundPad;
  if (output < dense.outputs) shared_floats()[dense.dy + output * kApart + image] = value;
  if (first_row + image < shared_plan().batch) {
    tensors.workspace[dense.dy_rows + int64_t{first_row + image} * dense.dy_pitch + output] = value;
  }
}

// From a layer's gradient to that of the layer below, or of the convolutions.
template <class B>
__device__ __forceinline__ void round_backward(const TensorsOf<B>& tensors, int layer, int first_row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  const DensePlan& dense = plan.dense[layer];
  if (aligned_rows(dense)) {
    round_back<B, true>(tensors, dense);
  } else {
    round_back<B, false>(tensors, dense);
  }
  __syncthreads();
  const DensePlan& below = plan.dense[max(layer - 1, 0)];
  const FinishPlan& finish = plan.dense_finish[max(layer - 1, 0)];
  const int columns = layer > 0 ? below.dy_pitch : dense.x_pitch;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int chunks = (columns + 31) / 32;
  const float* scratch = shared + plan.scratch;
  for (int item = static_cast<int>(threadIdx.x / 32); item < chunks * B::kImages; item += B::kThreads / 32) {
    const int image = item % B::kImages;
    const int input = item / B::kImages * 32 + lane;
    if (input >= columns) continue;
    float value = 0.0F;
    if (input < dense.inputs) {
      for (int split = 0; split < dense.splits; ++split) {
        value += scratch[(split * B::kImages + image) * dense.x_pitch + input];
      }
    }
    if (layer == 0) {
      if (first_row + image < plan.batch) {
        tensors.workspace[plan.dx_rows + int64_t{first_row + image} * dense.x_pitch + input] = value;
      }
      continue;
    }
    if (input < dense.inputs) {
      float y = shared[dense.x + image * dense.x_pitch + input];
      if constexpr (B::kFinishes) {
        const StepActivation activation = finish.finish.activation;
        value = undrop(finish.finish.dropout.threshold, finish.finish.dropout.factor, value, y);
        value *= known_by_result(activation) ? gradient_by_result(activation, finish.finish.slope, y)
                                             : activation_gradient(activation, finish.finish.slope,
                                                                   shared[finish.u + input * B::kImages + image]);
      } else if (below.relu != 0 && !(y > 0.0F)) {
        value = 0.0F;
      }
    }
    put_dense_gradient<B>(tensors, below, first_row, input, image, value);
  }
  __syncthreads();
}

template <class B>
__device__ __forceinline__ void round_loss(const TensorsOf<B>& tensors, const DenseBatch& batch, int first_row) {
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[plan.n_dense - 1];
  const int classes = dense.outputs;
  const int lane = static_cast<int>(threadIdx.x % 32);
  // A warp has an image's gradient, another one its loss.
  for (int item = static_cast<int>(threadIdx.x / 32); item < 2 * B::kImages; item += B::kThreads / 32) {
    const int image = item / 2;
    const int row = first_row + image;
    const float* logits = shared_floats() + plan.logits + image * plan.logits_pitch;
    const int label = batch.labels[image];
    if (item % 2 == 0) {
      const auto put = [&](int output, float value) {
        put_dense_gradient<B>(tensors, dense, first_row, output, image, value);
      };
      if constexpr (B::kLosses) {
        loss_gradient_general(plan, tensors, logits, classes, row, label, batch.count, put);
      } else {
        loss_gradient(plan, logits, classes, row, label, batch.count, put);
      }
      if (classes + lane < dense.dy_pitch) put(classes + lane, 0.0F);
    } else if (row < plan.batch) {
      if constexpr (B::kLosses) {
        loss_of_general(plan, tensors, logits, classes, row, label);
      } else {
        loss_of(plan, tensors, logits, classes, row, label);
      }
    }
  }
}

// Samples and labels of the block's images.
template <class B>
__device__ __forceinline__ void find_rows(const TensorsOf<B>& tensors, int first_row, DenseBatch& batch) {
  const StepPlan& plan = shared_plan();
  const int thread = static_cast<int>(threadIdx.x);
  bool ready = false;
  if constexpr (B::kBatches) ready = plan.ready != 0;
  const int64_t counter = step_counter<B>(tensors);
  if (thread < B::kImages) {
    const int row = first_row + thread;
    const int index = row < plan.batch ? sample_of_row<B>(plan, tensors, counter, row) : -1;
    batch.index[thread] = index;
    if (ready) {
      const auto* labels = static_cast<const int*>(tensors.labels);
      batch.labels[thread] = index >= 0 && labels != nullptr ? __ldcg(labels + index) : 0;
    } else {
      batch.labels[thread] = label_of(plan, tensors.labels, index);
    }
  }
  if (thread == 32) {
    batch.counter = counter;
    batch.count = sample_count(plan, max(counter, int64_t{0}));
    if constexpr (B::kBatches) {
      if (ready) batch.count = __ldcg(tensors.count);
    }
  }
}

template <class B>
__global__ void __launch_bounds__(B::kBound, B::kBlocks) rounds_dense(const __grid_constant__ TensorsOf<B> tensors) {
#if __CUDA_ARCH__ >= 900
  __shared__ DenseBatch batch;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.x) * B::kImages;
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  copy_plan<B::kGeneral>(tensors.plan, step_shared, B::kThreads);
  __syncthreads();
  // Zeros behind the last column of each row of x.
  for (int i = thread; i < plan.dense_bytes / 16; i += B::kThreads) {
    if (4 * i >= plan.dense[0].x) step_shared[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  }
  __syncthreads();
  wait_for_kernel_before();
  find_rows<B>(tensors, first_row, batch);
  const int x_pitch = plan.dense[0].x_pitch;
  const int rows = min(B::kImages, plan.batch - first_row);
  if (plan.n_convs > 0) {
    const float* from = tensors.workspace + plan.dense[0].x_rows + int64_t{first_row} * x_pitch;
    for (int i = 4 * thread; i < rows * x_pitch; i += 4 * B::kThreads) {
      copy_async<16>(shared + plan.dense[0].x + i, from + i);
    }
    wait_for_copies();
    __syncthreads();
  } else {
    __syncthreads();
    constexpr int kOfImage = B::kThreads / B::kImages;
    const int image = thread / kOfImage;
    if (image < rows) {
      float* x = shared + plan.dense[0].x + image * x_pitch;
      fetch_sample<B>(plan, tensors, batch.counter, batch.index[image], first_row + image, thread % kOfImage, kOfImage,
                      [&](int at, float value) { x[at] = value; });
    }
    __syncthreads();
  }
#pragma unroll 1
  for (int layer = 0; layer < plan.n_dense; ++layer) {
    round_forward<B>(tensors, batch.counter, layer, first_row);
    if (layer > 0 || plan.n_convs == 0) {
      const DensePlan& dense = plan.dense[layer];
      copy_row<B>(tensors.workspace + dense.x_rows + int64_t{first_row} * dense.x_pitch, shared + dense.x,
                  rows * dense.x_pitch);
    }
    __syncthreads();
  }
  round_loss<B>(tensors, batch, first_row);
  if (blockIdx.x == 0 && thread == B::kThreads - 1) {
    write_head(plan, tensors, batch.counter, batch.count);
    // The second kernel must not start before it can see that this one has.
    atomicAdd(&tensors.noted->started, 1U);
    __threadfence();
  }
  __syncthreads();
  let_next_kernel_start();
  announce<B>(tensors.noted->inputs);
#pragma unroll 1
  for (int layer = plan.n_dense - 1; layer >= 0 && plan.dense[layer].backward_data != 0; --layer) {
    round_backward<B>(tensors, layer, first_row);
  }
  announce<B>(tensors.noted->written);
#endif
}

}  // namespace gpunn::cuda_tiled
