// The beginning of a step: which samples, their pixels, and the weights into shared memory.
#pragma once

#include <gpunn/abi.h>
#include <gpunn/random.h>

#include "step_shared.cuh"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

// What the cluster's images are, where the step before has not noted it.
struct StepBatch {
  int index[kMostStepImages];  // of the sample; -1: none
  int count;                   // rows of the batch that are samples
};

// What a step hands from its first kernel to its second.
struct StepHead {
  int64_t step;
  float rate;
  float correction1;  // of Adam
  float correction2;
  int count;
};

// As SAMPLE_INDICES: the sample at `row` of the batch, or -1.
__device__ __forceinline__ int sample_index(const StepPlan& plan, int64_t step, int row) {
  const int64_t position = step % plan.steps * plan.sample.batch + row;
  if (row >= plan.batch || position >= plan.sample.rows) return -1;
  if (plan.sample.shuffle == 0) return static_cast<int>(position);
  return static_cast<int>(gpunn_random_permute(plan.sample.seed, plan.sample.stream, step / plan.steps,
                                               static_cast<uint32_t>(plan.sample.rows),
                                               static_cast<uint32_t>(position)));
}

__device__ __forceinline__ int label_of(const StepPlan& plan, const void* labels, int index) {
  if (index < 0 || index >= plan.label_rows) return 0;
  if (plan.label_type == GPUNN_U8) return static_cast<const uint8_t*>(labels)[index];
  if (plan.label_type == GPUNN_I32) return static_cast<const int32_t*>(labels)[index];
  return static_cast<int>(static_cast<const int64_t*>(labels)[index]);
}

// Rows of the batch of `step` that are samples.
__device__ __forceinline__ int sample_count(const StepPlan& plan, int64_t step) {
  return static_cast<int>(min(int64_t{plan.sample.batch}, plan.sample.rows - step % plan.steps * plan.sample.batch));
}

// Draws the samples of a cluster's images.
__device__ __noinline__ void find_batch(const StepTensors& tensors, int64_t step, int first_row, int images,
                                        StepBatch& batch) {
  const StepPlan& plan = shared_plan();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < images) batch.index[thread] = sample_index(plan, step, first_row + thread);
  if (thread == 0) batch.count = sample_count(plan, step);
}

// What the step to come would have to draw, by `threads` threads.
__device__ __forceinline__ void note_next_batch(const StepPlan& plan, const StepTensors& tensors, int64_t next_step,
                                                int thread, int threads) {
  const int64_t step = max(next_step, int64_t{0});
  for (int row = thread; row < plan.batch; row += threads) {
    reinterpret_cast<int32_t*>(tensors.next + 1)[row] = sample_index(plan, step, row);
  }
  if (thread == 0) *tensors.next = {.step = step, .count = sample_count(plan, step)};
}

// The learning rate and what else grows with the step, for the second kernel. By one thread of the grid.
__device__ __forceinline__ void write_head(const StepPlan& plan, const StepTensors& tensors, int count) {
  StepHead head{};
  head.step = *tensors.step;
  head.rate = tensors.rate_table[min(max(head.step, int64_t{0}), plan.rates - 1)];
  head.count = count;
  if (plan.optimizer == StepOptimizer::adam) {
    const double t = static_cast<double>(head.step) + 1.0;
    head.correction1 = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(plan.adam.beta1), t)));
    head.correction2 = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(plan.adam.beta2), t)));
  }
  *reinterpret_cast<StepHead*>(tensors.workspace + plan.head) = head;
}

// Calls put(at, value) for elements `thread`, `thread` + threads, ... of a sample, normalised.
template <class Put>
__device__ __forceinline__ void gather_sample(const StepPlan& plan, const StepTensors& tensors, int index, int thread,
                                              int threads, Put put) {
  if (index < 0 || index >= plan.data_rows) return;  // zeros stand there already
  const int64_t begin = int64_t{index} * plan.sample_size;
  const auto normalised = [&](int at, float value) {
    const int channel = divide(at, plan.by_channel);
    put(at, value * tensors.scale[channel] + tensors.shift[channel]);
  };
  if (plan.data_type != GPUNN_U8) {
    const float* data = static_cast<const float*>(tensors.data) + begin;
    for (int at = thread; at < plan.sample_size; at += threads) normalised(at, data[at]);
  } else if (plan.sample_size % 4 == 0) {
    const auto* data = reinterpret_cast<const uchar4*>(static_cast<const uint8_t*>(tensors.data) + begin);
    for (int at = thread; at < plan.sample_size / 4; at += threads) {
      const uchar4 four = data[at];
      normalised(4 * at, static_cast<float>(four.x));
      normalised(4 * at + 1, static_cast<float>(four.y));
      normalised(4 * at + 2, static_cast<float>(four.z));
      normalised(4 * at + 3, static_cast<float>(four.w));
    }
  } else {
    const uint8_t* data = static_cast<const uint8_t*>(tensors.data) + begin;
    for (int at = thread; at < plan.sample_size; at += threads) normalised(at, static_cast<float>(data[at]));
  }
}

// w[filter][channel][row][column] as row_pass() reads it, once for x and once, turned round, for dy.
__device__ __noinline__ void stage_conv(int layer, const float* parameters, int thread, int threads) {
  const ConvPlan& conv = shared_plan().conv[layer];
  float* shared = shared_floats();
  const int taps = conv.rows * conv.columns;
  const auto slot = [](int filter, int filters) { return filters == 3 ? filter / 3 * 4 + filter % 3 : filter; };
#pragma unroll 1
  for (int i = thread; i < conv.gradient.pitch; i += threads) {
    const float* w = parameters + conv.weight_at + i;
    const int plane = divide(i, conv.by_taps);
    const int tap = i - plane * taps;
    const int filter = divide(plane, conv.by_channels);
    const int channel = plane - filter * conv.channels;
    copy_async<4>(shared + conv.forward.w + (channel * taps + tap) * (conv.forward.filter_tiles * 4) +
                      slot(filter, conv.forward.filters_a_thread),
                  w);
    if (conv.backward_data != 0) {
      copy_async<4>(shared + conv.backward.w + (filter * taps + taps - 1 - tap) * (conv.backward.filter_tiles * 4) +
                        slot(channel, conv.backward.filters_a_thread),
                    w);
    }
  }
  for (int i = thread; i < conv.filters; i += threads) {
    copy_async<4>(shared + conv.bias + i, parameters + conv.bias_at + i);
  }
}

// This block's rows of w, asynchronously, a warp a row.
__device__ __noinline__ void stage_dense(int layer, const float* parameters, int rank, int warp, int warps) {
  const DensePlan& dense = shared_plan().dense[layer];
  float* shared = shared_floats();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int from = dense.sliced != 0 ? rank * dense.slice : 0;
  const int rows = min(dense.slice, dense.outputs - from);
  const float* w = parameters + dense.weight_at + int64_t{from} * dense.inputs;
  const bool wide = dense.inputs % 4 == 0 && dense.weight_at % 4 == 0;
#pragma unroll 1
  for (int row = warp; row < rows; row += warps) {
    const float* source = w + int64_t{row} * dense.inputs;
    float* to = shared + dense.w + row * dense.x_pitch;
    if (wide) {
      for (int i = lane * 4; i < dense.inputs; i += 128) copy_async<16>(to + i, source + i);
    } else {
      for (int i = lane; i < dense.inputs; i += 32) copy_async<4>(to + i, source + i);
      if (lane < (4 - dense.inputs % 4) % 4) to[dense.inputs + lane] = 0.0F;
    }
  }
  for (int row = warp * 32 + lane; row < rows; row += warps * 32) {
    copy_async<4>(shared + dense.bias + row, parameters + dense.bias_at + from + row);
  }
}

}  // namespace gpunn::cuda_tiled
