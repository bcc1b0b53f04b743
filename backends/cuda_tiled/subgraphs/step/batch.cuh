// The beginning of a fused training step: finds the samples of the batch, and copies their pixels and the weights to
// shared memory.
#pragma once

#include <gpunn/abi.h>
#include <gpunn/random.h>

#include "subgraphs/step/shared.cuh"
#include "subgraphs/step/sync.cuh"

namespace gpunn::cuda_tiled {

// The samples of the cluster's images.
struct StepBatch {
  int64_t counter;             // of steps
  int64_t expected;            // step
  int count;                   // rows of the batch that are samples
  uint32_t run;                // of kernels with batch norm: the number of this run
  int again;                   // whether some guess was wrong
  int guess[kMostStepImages];  // samples, as they were noted two steps ago
  int index[kMostStepImages];  // samples; -1: none
  int labels[kMostStepImages];
};

// The data that a step passes from its first kernel to its second.
struct StepHead {
  float rate;
  float correction1;  // of Adam
  float correction2;
  int count;
  int64_t step;
};

// The sample at `row` of the batch, as SAMPLE_INDICES computes it, or -1.
__device__ __forceinline__ int sample_index(const StepPlan& plan, int64_t step, int row) {
  const int64_t position = step % plan.steps * plan.sample.batch + plan.first_row + row;
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
  const int64_t position = step % plan.steps * plan.sample.batch + plan.first_row;
  return static_cast<int>(min(int64_t{plan.batch}, max(plan.sample.rows - position, int64_t{0})));
}

// The samples of the step after `step`.
__device__ __forceinline__ int64_t step_after(const StepPlan& plan, int64_t step) {
  return max(static_cast<int64_t>(static_cast<uint64_t>(step) + static_cast<uint64_t>(plan.advance)), int64_t{0});
}

// The note on a row of a step's batch: the sample, -1 for none, kNotNoted if no slot has that step.
inline constexpr int kNotNoted = -2;

__device__ __forceinline__ int noted_sample(const StepPlan& plan, const StepTensors& tensors, int64_t step, int row) {
  const NextBatch& first = noted_batch(plan, tensors.noted, 0);
  const NextBatch& second = noted_batch(plan, tensors.noted, 1);
  if (row >= plan.batch) row = -1;
  // All loads at once. Past the caches of a multiprocessor: they may be done while other kernels run.
  const int64_t step0 = __ldcg(reinterpret_cast<const long long*>(&first.step));
  const int64_t step1 = __ldcg(reinterpret_cast<const long long*>(&second.step));
  const int index0 = row < 0 ? -1 : __ldcg(reinterpret_cast<const int*>(&first + 1) + row);
  const int index1 = row < 0 ? -1 : __ldcg(reinterpret_cast<const int*>(&second + 1) + row);
  return step0 == step ? index0 : step1 == step ? index1 : kNotNoted;
}

// What this step's samples will probably be. By one warp, as what all blocks read at once comes from one place. Their
// labels are left to guess_labels().
__device__ __forceinline__ void guess_batch(const StepPlan& plan, const StepTensors& tensors, int first_row, int images,
                                            StepBatch& batch) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t expected = __ldcg(reinterpret_cast<const long long*>(&tensors.noted->expected));
  if (lane < images) batch.guess[lane] = noted_sample(plan, tensors, expected, first_row + lane);
  if (lane == 0) batch.expected = expected;
}

// By the same warp.
__device__ __forceinline__ void guess_labels(const StepPlan& plan, const StepTensors& tensors, int images,
                                             StepBatch& batch) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (lane < images) batch.labels[lane] = label_of(plan, tensors.labels, batch.guess[lane]);
  if (lane == 0) batch.count = sample_count(plan, max(batch.expected, int64_t{0}));
}

// Prefetches the sample of this block's next step to the L2 cache. Called by one warp.
__device__ __forceinline__ void prefetch_sample(const StepPlan& plan, const StepTensors& tensors, int64_t step,
                                                int row) {
  const int index = noted_sample(plan, tensors, step, row);
  if (index < 0 || index >= plan.data_rows) return;
  const int64_t bytes = int64_t{plan.sample_size} * (plan.data_type == GPUNN_U8 ? 1 : 4);
  const char* sample = static_cast<const char*>(tensors.data) + index * bytes;
  for (int64_t at = threadIdx.x % 32 * 128; at < bytes; at += 32 * 128) prefetch_line(sample + at);
}

// Finds the actual samples once the previous step has ended. Called by one warp.
__device__ __forceinline__ void find_batch(const StepPlan& plan, const StepTensors& tensors, int first_row, int images,
                                           StepBatch& batch) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t counter = __ldcg(reinterpret_cast<const long long*>(tensors.step));
  const int64_t step = max(counter, int64_t{0});
  bool wrong = false;
  if (lane < images) {
    int index = noted_sample(plan, tensors, step, first_row + lane);
    if (index == kNotNoted) index = sample_index(plan, step, first_row + lane);
    batch.index[lane] = index;
    wrong = index != batch.guess[lane];
    if (wrong) batch.labels[lane] = label_of(plan, tensors.labels, index);
  }
  wrong = __any_sync(0xFFFFFFFFU, wrong ? 1 : 0) != 0;
  if (lane == 0) {
    batch.again = wrong ? 1 : 0;
    batch.counter = counter;
    if (step != batch.expected) batch.count = sample_count(plan, step);
  }
}

// The same for a batch that is ready. Called by one warp.
__device__ __forceinline__ void find_ready_batch(const StepPlan& plan, const GeneralTensors& tensors, int first_row,
                                                 int images, StepBatch& batch) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (lane < images) {
    const int row = first_row + lane;
    const bool there = row < plan.batch;
    batch.guess[lane] = -1;
    batch.index[lane] = there ? row : -1;
    batch.labels[lane] = there && tensors.labels != nullptr ? __ldcg(static_cast<const int*>(tensors.labels) + row) : 0;
  }
  if (lane == 0) {
    batch.again = 1;
    batch.counter = tensors.step == nullptr ? 0 : __ldcg(reinterpret_cast<const long long*>(tensors.step));
    batch.expected = batch.counter;
    batch.count = __ldcg(tensors.count);
  }
}

// Calls put(at, value) for elements `thread`, `thread` + threads, ... of the sample of a batch that is ready.
template <class Put>
__device__ __forceinline__ void copy_sample(const StepPlan& plan, const GeneralTensors& tensors, int row, int thread,
                                            int threads, Put put) {
  const float* x = tensors.x + int64_t{row} * plan.sample_size;
#pragma unroll 4
  for (int at = thread; at < plan.sample_size; at += threads) put(at, __ldcg(x + at));
}

// The same for a sample that RANDOM_SHIFT moves: image `row` of the batch at `counter`.
template <class Put>
__device__ __forceinline__ void gather_shifted(const StepPlan& plan, const GeneralTensors& tensors, int index,
                                               int64_t counter, int row, int thread, int threads, Put put) {
  const gpunn_random_shift_attrs& shift = plan.shift;
  const gpunn_random_words words =
      gpunn_philox(shift.seed, shift.stream,
                   static_cast<uint64_t>(counter) * static_cast<uint64_t>(plan.batch) + static_cast<uint64_t>(row));
  const auto moved = [&](uint32_t word, int reach) {
    return static_cast<int>((uint64_t{word >> 8} * static_cast<uint64_t>(2 * reach + 1)) >> 24) - reach;
  };
  const int down = moved(words.word[0], shift.reach[0]);
  const int right = moved(words.word[1], shift.reach[1]);
  const bool flipped = gpunn_random_unit(words.word[2]) < shift.flip;
  const int height = plan.height;
  const int width = plan.width;
  const int64_t begin = int64_t{index} * plan.sample_size;
  const bool bytes = plan.data_type == GPUNN_U8;
#pragma unroll 2
  for (int at = thread; at < plan.sample_size; at += threads) {
    const int channel = divide(at, plan.by_channel);
    const int in_plane = at - channel * height * width;
    const int h = divide(in_plane, plan.by_width);
    const int w = in_plane - h * width;
    const int from_row = h + down;
    const int from_column = (flipped ? width - 1 - w : w) + right;
    if (from_row < 0 || from_row >= height || from_column < 0 || from_column >= width) {
      put(at, tensors.border[channel]);
      continue;
    }
    const int64_t from = begin + (channel * height + from_row) * width + from_column;
    const float value = bytes ? static_cast<float>(static_cast<const uint8_t*>(tensors.data)[from])
                              : static_cast<const float*>(tensors.data)[from];
    put(at, value * tensors.scale[channel] + tensors.shift[channel]);
  }
}

// The learning rate and what else grows with the step, for the second kernel. By one thread of the grid.
__device__ __forceinline__ void write_head(const StepPlan& plan, const StepTensors& tensors, int64_t step, int count) {
  StepHead head{};
  head.step = step;
  if (plan.rates > 0) head.rate = tensors.rate_table[min(max(head.step, int64_t{0}), plan.rates - 1)];
  head.count = count;
  if (plan.optimizer == StepOptimizer::adam) {
    const double t = static_cast<double>(head.step) + 1.0;
    head.correction1 = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(plan.adam.beta1), t)));
    head.correction2 = static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(plan.adam.beta2), t)));
  }
  *reinterpret_cast<StepHead*>(tensors.workspace + plan.head) = head;
}

// Calls put(at, value) for elements `thread`, `thread` + threads, ... of a sample, normalised; kAhead loads at once.
template <int kAhead, class Put>
__device__ __forceinline__ void gather_sample(const StepPlan& plan, const StepTensors& tensors, int index, int thread,
                                              int threads, Put put) {
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
    const int n = plan.sample_size / 4;
    for (int from = thread; from < n; from += kAhead * threads) {
      uchar4 fours[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) fours[i] = data[min(from + i * threads, n - 1)];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int at = 4 * (from + i * threads);
        if (at >= 4 * n) break;
        normalised(at, static_cast<float>(fours[i].x));
        normalised(at + 1, static_cast<float>(fours[i].y));
        normalised(at + 2, static_cast<float>(fours[i].z));
        normalised(at + 3, static_cast<float>(fours[i].w));
      }
    }
  } else {
    const uint8_t* data = static_cast<const uint8_t*>(tensors.data) + begin;
    for (int at = thread; at < plan.sample_size; at += threads) normalised(at, static_cast<float>(data[at]));
  }
}

// Where a thread's share of the filters comes from and where row_pass() reads it: [filter
// tile][channel][row][column][4]. Each block begins elsewhere: what all read at the same time, one part of the L2 cache
// has to serve.
struct FilterPlaces {
  static constexpr int kCount = 6;
  int from[kCount];
  int to[kCount];  // -1: nothing
};

__device__ __forceinline__ FilterPlaces filter_places(int thread, int threads, int block) {
  const StepPlan& plan = shared_plan();
  const int total = plan.filter_floats;
  const int first = block * 160 % total;
  FilterPlaces places;
#pragma unroll
  for (int j = 0; j < FilterPlaces::kCount; ++j) {
    int i = thread + j * threads;
    places.to[j] = -1;
    places.from[j] = 0;
    if (i >= total) continue;
    i += first;
    if (i >= total) i -= total;
    int layer = 0;
    while (i >= plan.conv[layer].gradient.pitch) i -= plan.conv[layer++].gradient.pitch;
    const ConvPlan& conv = plan.conv[layer];
    const int filter = divide(i, conv.by_filter);
    const int tile = conv.forward.filters_a_thread == 3 ? filter / 3 : filter / 4;
    places.from[j] = static_cast<int>(conv.weight_at) + i;
    places.to[j] =
        conv.forward.w + 4 * (i - (filter - tile) * conv.filter_floats) + filter - tile * conv.forward.filters_a_thread;
  }
  return places;
}

// All filters and biases. All loads at once, since each takes as long as all; `places` are the first ones.
__device__ __forceinline__ void stage_filters(const float* parameters, FilterPlaces places, int thread, int threads,
                                              int block) {
  constexpr int kCount = FilterPlaces::kCount;
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int from = thread; from < plan.filter_floats; from += kCount * threads) {
    if (from != thread) places = filter_places(from, threads, block);
    float value[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) value[j] = __ldcg(parameters + places.from[j]);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      if (places.to[j] >= 0) shared[places.to[j]] = value[j];
    }
  }
#pragma unroll 1
  for (int layer = 0; layer < plan.n_convs; ++layer) {
    const ConvPlan& conv = plan.conv[layer];
    for (int i = thread; i < conv.filters; i += threads) {
      copy_async<4>(shared + conv.bias + i, parameters + max(conv.bias_at, int64_t{0}) + i, conv.bias_at >= 0);
    }
  }
}

// Those of one layer turned round, with filters and channels in each other's places, out of the others.
__device__ __forceinline__ void turn_filters(int layer, int thread, int threads) {
  const ConvPlan& conv = shared_plan().conv[layer];
  const int taps = conv.rows * conv.columns;
  const int a_tile = conv.filters * taps;
  const int a_thread = conv.backward.filters_a_thread;
  const int others = conv.forward.filters_a_thread;
  const int filter_floats = conv.filter_floats;
  const int channels = conv.channels;
  const float* from = shared_floats() + conv.forward.w;
  float* to = shared_floats() + conv.backward.w;
  const int slot = thread % 4;
#pragma unroll 2
  for (int i = thread; i < conv.backward.filter_tiles * a_tile * 4; i += threads) {
    const int tile = divide(i / 4, conv.by_tile);
    const int place = i / 4 - tile * a_tile;  // filter and tap
    const int channel = tile * a_thread + slot;
    const int filter = divide(place, conv.by_taps);
    const int tap = taps - 1 - (place - filter * taps);
    const int other = others == 3 ? filter / 3 : filter / 4;
    if (slot >= a_thread || channel >= channels) continue;
    to[i] = from[4 * (other * filter_floats + channel * taps + tap) + filter - other * others];
  }
}

// Whether the rows of w may be copied in bulk.
__device__ __forceinline__ bool copied_in_bulk(const DensePlan& dense) {
  return dense.inputs % 4 == 0 && dense.weight_at % 4 == 0;
}

// This block's rows of all dense layers' w: `arrived` counts their bytes. A lane asks for a row, `warps` of them share
// the rows. Each cluster begins at another row.
__device__ __forceinline__ void stage_dense_in_bulk(const float* parameters, int rank, int cluster, int warp, int warps,
                                                    uint64_t& arrived) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  const int lane = static_cast<int>(threadIdx.x % 32);
  int bytes = 0;
#pragma unroll 1
  for (int layer = 0; layer < plan.n_dense; ++layer) {
    const DensePlan& dense = plan.dense[layer];
    if (!copied_in_bulk(dense)) continue;
    const int from = dense.sliced != 0 ? rank * dense.slice : 0;
    const int rows = min(dense.slice, dense.outputs - from);
    if (rows <= 0) continue;
    bytes += rows * dense.inputs * 4;
    const float* w = parameters + dense.weight_at + int64_t{from} * dense.inputs;
    const int first = cluster % rows;
#pragma unroll 1
    for (int i = warp + lane * warps; i < rows; i += 32 * warps) {
      const int row = i + first < rows ? i + first : i + first - rows;
      copy_bulk(shared + dense.w + row * dense.x_pitch, w + int64_t{row} * dense.inputs, dense.inputs * 4, &arrived);
    }
  }
  // Some may have come before.
  if (warp == 0 && lane == 0) barrier_expect(&arrived, bytes);
}

// Biases, and w where its rows can't be copied in bulk: a warp a row.
__device__ __forceinline__ void stage_dense(int layer, const float* parameters, int rank, int warp, int warps) {
  const DensePlan& dense = shared_plan().dense[layer];
  float* shared = shared_floats();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int from = dense.sliced != 0 ? rank * dense.slice : 0;
  const int rows = min(dense.slice, dense.outputs - from);
  const int inputs = dense.inputs;
  const float* bias = parameters + max(dense.bias_at, int64_t{0}) + from;
  for (int row = warp * 32 + lane; row < rows; row += warps * 32) {
    copy_async<4>(shared + dense.bias + row, bias + row, dense.bias_at >= 0);
  }
  if (copied_in_bulk(dense)) return;
  const float* w = parameters + dense.weight_at + int64_t{from} * inputs;
#pragma unroll 1
  for (int row = warp; row < rows; row += warps) {
    const float* source = w + int64_t{row} * inputs;
    float* to = shared + dense.w + row * dense.x_pitch;
#pragma unroll 4
    for (int i = lane; i < inputs; i += 32) copy_async<4>(to + i, source + i);
    if (lane < (4 - inputs % 4) % 4) to[inputs + lane] = 0.0F;
  }
}

}  // namespace gpunn::cuda_tiled
