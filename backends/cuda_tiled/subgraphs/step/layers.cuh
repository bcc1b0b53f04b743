// The phases of a step's kernel 1, in their order: convolutions, dense layers, loss, and the backward pass.
#pragma once

#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/conv.cuh"
#include "subgraphs/step/dense.cuh"
#include "subgraphs/step/finish.cuh"
#include "subgraphs/step/loss.cuh"
#include "subgraphs/step/norm.cuh"
#include "subgraphs/step/norm_dense.cuh"
#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/pool.cuh"
#include "subgraphs/step/sparse.cuh"
#include "subgraphs/step/sync.cuh"
#include "subgraphs/step/tensors.hpp"

namespace gpunn::cuda_tiled {

template <class B>
__device__ __forceinline__ void clear(const int (&stretch)[2]) {
  for (int i = stretch[0] / 4 + static_cast<int>(threadIdx.x); i < stretch[1] / 4; i += B::kThreads) {
    step_shared[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  }
}

template <class B>
__device__ __forceinline__ void copy_row(float* to, const float* from, int floats) {
  for (int i = static_cast<int>(threadIdx.x); i < floats / 4; i += B::kThreads) {
    reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  }
}

// dy of a dense layer's output `from + row`: [row][image], and among the factors of the weight gradient. Of a sliced
// layer a block writes its outputs' for all images, else all of its own image's.
template <class B>
__device__ __forceinline__ void store_gradient(const StepTensors& tensors, int layer, int rank, int first_row, int from,
                                               int row, int image, float value) {
  const DensePlan& dense = shared_plan().dense[layer];
  shared_floats()[dense.dy + row * B::kImages + image] = value;
  if ((dense.sliced != 0 || image == rank) && first_row + image < shared_plan().batch) {
    tensors.workspace[dense.dy_rows + int64_t{first_row + image} * dense.dy_pitch + from + row] = value;
  }
}

// Stores the gradient of the layer below, masked, from dense layer `layer`'s backward pass.
template <class B>
__device__ __forceinline__ void store_below(const StepTensors& tensors, int layer, int rank, int first_row, int from,
                                            int row, int image, float value) {
  const DensePlan& dense = shared_plan().dense[layer];
  if constexpr (B::kFinishes) {
    const FinishPlan& finish = shared_plan().dense_finish[layer - 1];
    const StepActivation activation = finish.finish.activation;
    float y = shared_floats()[dense.x + image * dense.x_pitch + from + row];
    value = undrop(finish.finish.dropout.threshold, finish.finish.dropout.factor, value, y);
    if (known_by_result(activation)) {
      value *= gradient_by_result(activation, finish.finish.slope, y);
    } else {
      const float u = shared_floats()[finish.u + row * B::kImages + image];
      const NormTable table = norm_table(finish, shared_plan().dense[layer - 1].slice);
      value *= activation_gradient(activation, finish.finish.slope,
                                   finish.finish.norm.there != 0 ? table.normal(row, u) : u);
    }
    if (finish.finish.norm.there != 0) {
      shared_floats()[shared_plan().dense[layer - 1].dy + row * B::kImages + image] = value;
      return;
    }
    return store_gradient<B>(tensors, layer - 1, rank, first_row, from, row, image, value);
  }
  if (shared_plan().dense[layer - 1].relu != 0 &&
      !(shared_floats()[dense.x + image * dense.x_pitch + from + row] > 0.0F)) {
    value = 0.0F;
  }
  if constexpr (B::kNorms) {
    if (shared_plan().dense_finish[layer - 1].finish.norm.there != 0) {
      shared_floats()[shared_plan().dense[layer - 1].dy + row * B::kImages + image] = value;
      return;
    }
  }
  store_gradient<B>(tensors, layer - 1, rank, first_row, from, row, image, value);
}

// A dense layer's x of this block's image, a factor of its weight gradient; and zeros behind the last column of dy, the
// other one.
template <class B>
__device__ __forceinline__ void write_input(const StepTensors& tensors, int layer, int rank, int row) {
  const DensePlan& dense = shared_plan().dense[layer];
  if (row >= shared_plan().batch) return;
  copy_row<B>(tensors.workspace + dense.x_rows + int64_t{row} * dense.x_pitch,
              shared_floats() + dense.x + rank * dense.x_pitch, dense.x_pitch);
  const int column = dense.outputs + static_cast<int>(threadIdx.x);
  if (column < dense.dy_pitch) tensors.workspace[dense.dy_rows + int64_t{row} * dense.dy_pitch + column] = 0.0F;
}

// Sums of a dense layer with bias, to be kept, and over them batch norm's statistics.
template <class B>
__device__ __forceinline__ void keep_dense(const GeneralTensors& tensors, const StepBatch& batch, int layer, int rows,
                                           int from, int rank, int first_row) {
  const DensePlan& dense = shared_plan().dense[layer];
  const FinishPlan& finish = shared_plan().dense_finish[layer];
  if constexpr (B::kNorms) {
    if (finish.finish.norm.there != 0) {
      dense_statistics<B>(tensors, batch, layer, rows, from, rank, first_row);
      return;
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < rows * B::kImages; i += B::kThreads) {
    shared_floats()[finish.u + i] = dense_sum<B>(dense, rows, i / B::kImages, i % B::kImages);
  }
  __syncthreads();
}

template <class B>
__device__ __forceinline__ void dense_forward(const TensorsOf<B>& tensors, const StepBatch& batch, int rank, int row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int layer = 0; layer < plan.n_dense; ++layer) {
    const DensePlan& dense = plan.dense[layer];
    const bool last = layer + 1 == plan.n_dense;
    const int from = dense.sliced != 0 ? rank * dense.slice : 0;
    const int rows = min(dense.slice, dense.outputs - from);
    dense_product<B>(layer, rows);
    __syncthreads();
    const FinishPlan& finish = plan.dense_finish[layer];
    if constexpr (B::kNorms || B::kFinishes) {
      if (finish.kept != 0) keep_dense<B>(tensors, batch, layer, rows, from, rank, row - rank);
    }
    const StepActivation activation = finish.finish.activation;
    const float slope = finish.finish.slope;
    const bool kept = finish.kept != 0;
    const bool norm = finish.finish.norm.there != 0;
    const bool drops = finish.finish.dropout.threshold != 0;
    const NormTable table = norm_table(finish, dense.slice);
    const auto finished = [&](int output, int image) {
      float u = kept ? shared[finish.u + output * B::kImages + image] : dense_sum<B>(dense, rows, output, image);
      if (norm) u = table.normal(output, u);
      if constexpr (B::kFinishes) {
        u = activate(activation, slope, u);
        return drops ? Dropping(plan, finish, batch.counter, row - rank + image)(from + output, u) : u;
      } else {
        return dense.relu != 0 && u < 0.0F ? 0.0F : u;
      }
    };
    dense_finish<B>(layer, rows, from, shared + (last ? plan.logits : plan.dense[layer + 1].x),
                    last ? plan.logits_pitch : plan.dense[layer + 1].x_pitch, finished);
    write_input<B>(tensors, layer, rank, row);
    __syncthreads();  // the sums have been read
    if (dense.sliced != 0) wait_for_bytes(shared_arrivals().forward[layer]);
  }
}

// The loss and its gradient, a warp an image; another warp has the loss of this block's image.
template <class B>
__device__ __forceinline__ void make_loss(const TensorsOf<B>& tensors, const StepBatch& batch, int rank, int row) {
  const StepPlan& plan = shared_plan();
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int layer = plan.n_dense - 1;
  const int classes = plan.dense[layer].outputs;
  if (warp > B::kImages) return;
  const int image = warp < B::kImages ? warp : rank;
  const float* logits = shared_floats() + plan.logits + image * plan.logits_pitch;
  const auto put = [&](int output, float value) {
    store_gradient<B>(tensors, layer, rank, row - rank, 0, output, image, value);
  };
  if constexpr (B::kLosses) {
    if (warp < B::kImages) {
      loss_gradient_general(plan, tensors, logits, classes, row - rank + image, batch.labels[image], batch.count, put);
    } else if (row < plan.batch) {
      loss_of_general(plan, tensors, logits, classes, row, batch.labels[rank]);
    }
    return;
  }
  if (warp == B::kImages) {
    if (row < plan.batch) loss_of(plan, tensors, logits, classes, row, batch.labels[rank]);
    return;
  }
  loss_gradient(plan, logits, classes, row - rank + image, batch.labels[image], batch.count, put);
}

template <class B>
__device__ __forceinline__ void dense_backward(const TensorsOf<B>& tensors, const StepBatch& batch, int rank,
                                               int first_row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int layer = plan.n_dense - 1; layer >= 0; --layer) {
    const DensePlan& dense = plan.dense[layer];
    if (dense.backward_data == 0) break;
    if (dense.sliced != 0) {
      dense_scatter<B>(layer, min(dense.slice, dense.outputs - rank * dense.slice), rank);
    }
    if (layer > 0) {
      const DensePlan& below = plan.dense[layer - 1];
      const int from = below.sliced != 0 ? rank * below.slice : 0;
      const int count = min(below.slice, below.outputs - from);
      if (dense.sliced != 0) {
        wait_for_bytes(shared_arrivals().backward[layer]);
        for (int i = static_cast<int>(threadIdx.x); i < count * B::kImages; i += B::kThreads) {
          float sum = 0.0F;
#pragma unroll
          for (int source = 0; source < kStepShares; ++source) {
            sum += shared[dense.received + source * below.slice * B::kImages + i];
          }
          store_below<B>(tensors, layer, rank, first_row, from, i / B::kImages, i % B::kImages, sum);
        }
      } else {
        dense_back<B>(layer, from, count, [&](int input, int image, float value) {
          store_below<B>(tensors, layer, rank, first_row, from, input, image, value);
        });
      }
      __syncthreads();
      if constexpr (B::kNorms) {
        if (plan.dense_finish[layer - 1].finish.norm.there != 0) {
          dense_norm_backward<B>(tensors, batch, layer - 1, count, from, rank, first_row,
                                 [&](int slot, int image, float value) {
                                   store_gradient<B>(tensors, layer - 1, rank, first_row, from, slot, image, value);
                                 });
          __syncthreads();
        }
      }
    } else {
      if (dense.sliced == 0) {
        dense_back<B>(layer, 0, dense.inputs, [&](int input, int image, float value) {
          if (image == rank) shared[dense.received + input] = value;
        });
      }
      __syncthreads();
      if constexpr (B::kNorms || B::kFinishes) fetch_kept<B>(tensors, first_row + rank);
      clear<B>(plan.zeros[1]);  // where w was
      if (dense.sliced != 0) wait_for_bytes(shared_arrivals().backward[layer]);
      if constexpr (B::kNorms || B::kFinishes) wait_for_copies();
      __syncthreads();
    }
  }
}

// Tells the second kernel that this block has written factors of the dense layers' weight gradients, all of it before a
// barrier of the block. By the last thread, whose warp has least to do.
template <class B>
__device__ __forceinline__ void announce(uint32_t& counter) {
  if (threadIdx.x == B::kThreads - 1) count_written(&counter);
}

// By all warps but the last.
template <class B>
__device__ __forceinline__ void conv_forward(const TensorsOf<B>& tensors, const StepBatch& batch, int rank, int row) {
  using F = WithoutLastWarp<B>;
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  int meetings = 0;  // of kernels with norms or other finishes
#pragma unroll 1
  for (int layer = 0; layer < plan.n_convs; ++layer) {
    const ConvPlan& conv = plan.conv[layer];
    // The first convolution seldom has work for all warps.
    constexpr int kHalf = B::kThreads / 2;
    if (layer == 0 && static_cast<int>(threadIdx.x) >= kHalf) {
#pragma unroll 1
      for (int i = 1; i < plan.n_convs; ++i) {
        if (plan.conv[i].by_rows == 0) {
          turn_filters(i, static_cast<int>(threadIdx.x) - kHalf, F::kThreads - kHalf);
        }
      }
    }
    run_row_pass<F>(layer, false);
    meet(shared_arrivals().convs[2 * layer]);
    const bool last = layer + 1 == plan.n_convs;
    float* y = last ? shared + plan.dense[0].x + rank * plan.dense[0].x_pitch
                    : shared + plan.conv[layer + 1].x + plan.conv[layer + 1].x_left;
    const int y_plane = plan.conv[last ? layer : layer + 1].x_plane;
    const int y_pitch = plan.conv[last ? layer : layer + 1].x_pitch;
    const auto put = [&](int filter, int line, int column, int i, float value) {
      if (!last) {
        y[filter * y_plane + line * y_pitch + column] = value;
        return;
      }
#pragma unroll
      for (int other = 0; other < B::kImages; ++other) store_remote(y + i, other, value, shared_arrivals().pooled);
    };
    const auto meet_next = [&] { meet(shared_meetings()[meetings++]); };
    bool normed = false;
    if constexpr (B::kNorms) {
      const FinishPlan& finish = plan.conv_finish[layer];
      if (finish.picks != 0) {
        float* pick = finish.pick < 0 ? y : shared + finish.pick;
        normed_conv<F>(tensors, batch, layer, row, pick, y_plane, y_pitch, put, meet_next);
        normed = true;
      }
    }
    if (!normed) {
      if constexpr (B::kFinishes) {
        finish_conv_general<F>(tensors, batch, layer, row, put, meet_next);
      } else {
        finish_conv<F>(conv, put);
      }
    }
    if (!last) meet(shared_arrivals().convs[2 * layer + 1]);
  }
}

// Where the layer above has left the gradient towards its x, which is the sum of `terms` numbers that lie `apart`; and
// what that x is.
template <class B>
struct LeftAbove {
  bool last;
  bool by_rows;
  const DensePlan& dense;
  const ConvPlan& above;
  const float* x;  // of this block's image
  int terms;
  int apart;

  __device__ __forceinline__ LeftAbove(const StepPlan& plan, int layer, int rank)
      : last(layer + 1 == plan.n_convs), dense(plan.dense[0]), above(plan.conv[last ? layer : layer + 1]) {
    by_rows = above.by_rows > 0;
    const RowPass& dx = above.backward;
    terms = last ? (dense.sliced != 0 ? kStepShares : 1) : by_rows ? kRowTerms<B> : dx.splits;
    apart = last ? dense.x_pitch : by_rows ? 1 : dx.filters * dx.out_rows * dx.pitch;
    x = shared_floats() + (last ? dense.x + rank * dense.x_pitch : above.x + above.x_left);
  }
  __device__ __forceinline__ int gradient(int filter, int r, int c, int i) const {
    if (last) return dense.received + i;
    const RowPass& dx = above.backward;
    return by_rows ? row_gradient_at<B>(above, filter, r, c) : dx.sums + (filter * dx.out_rows + r) * dx.pitch + c;
  }
  __device__ __forceinline__ float value(int filter, int r, int c, int i) const {
    return last ? x[i] : x[filter * above.x_plane + r * above.x_pitch + c];
  }
};

// The way back through a convolution's poolings, activation and norm.
template <class B>
__device__ __forceinline__ void unpool_next(const GeneralTensors& tensors, const StepBatch& batch, int layer, int rank,
                                            int row) {
  const LeftAbove<B> left(shared_plan(), layer, rank);
  const auto gradient = [&](int filter, int r, int c, int i) { return left.gradient(filter, r, c, i); };
  const auto value = [&](int filter, int r, int c, int i) { return left.value(filter, r, c, i); };
  if constexpr (B::kNorms) {
    if (shared_plan().conv_finish[layer].picks != 0) {
      return normed_unpool<B>(tensors, batch, layer, row, left.terms, left.apart, gradient, value);
    }
  }
  if constexpr (B::kFinishes) {
    unpool_general<B>(layer, left.terms, left.apart, gradient, value);
  } else {
    unpool<B>(shared_plan().conv[layer], left.terms, left.apart, gradient);
  }
}

template <class B>
__device__ __forceinline__ void conv_backward(const TensorsOf<B>& tensors, const StepBatch& batch, int rank, int row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const bool own = row < plan.batch;
  float* partial =
      B::kRounds ? shared + plan.totals : tensors.workspace + plan.partial_rows + int64_t{row} * plan.partials;
#pragma unroll 1
  for (int layer = plan.n_convs; layer >= 0; --layer) {
    // What the layer above has left in the sums: its weights' gradient, and that of its x.
    if (layer < plan.n_convs && plan.conv[layer].sparse == 0 && own) {
      const ConvPlan& above = plan.conv[layer];
      const int n = above.gradient.pitch;
      const float* sums = shared + above.gradient.sums;
      for (int i = thread; i < n; i += B::kThreads) {
        float sum = 0.0F;
#pragma unroll 4
        for (int split = 0; split < above.gradient.splits; ++split) sum += sums[split * n + i];
        put_gradient<B>(partial[above.weight_from + i], sum);
      }
    }
    if (layer == 0) break;
    const ConvPlan& conv = plan.conv[layer - 1];
    if constexpr (B::kNorms || B::kFinishes) {
      unpool_next<B>(tensors, batch, layer - 1, rank, row);
    } else if (layer == plan.n_convs) {
      const DensePlan& dense = plan.dense[0];
      unpool<B>(conv, dense.sliced != 0 ? kStepShares : 1, dense.x_pitch,
                [&](int, int, int, int i) { return dense.received + i; });
    } else if (const ConvPlan& above = plan.conv[layer]; above.by_rows > 0) {
      unpool<B>(conv, kRowTerms<B>, 1,
                [&](int filter, int r, int c, int) { return row_gradient_at<B>(above, filter, r, c); });
    } else {
      const RowPass& dx = above.backward;
      unpool<B>(conv, dx.splits, dx.filters * dx.out_rows * dx.pitch,
                [&](int filter, int r, int c, int) { return dx.sums + (filter * dx.out_rows + r) * dx.pitch + c; });
    }
    __syncthreads();
    if constexpr (!B::kRounds) {
      if (layer == plan.n_convs) announce<B>(tensors.noted->written);
    }
    bool normed = false;
    if constexpr (B::kNorms) {
      const FinishPlan& finish = plan.conv_finish[layer - 1];
      normed = finish.finish.norm.there != 0;
      if (normed) {
        if constexpr (B::kFinishes) {
          if (finish.picks == 0) conv_norm_sums<B>(tensors, batch, layer - 1, row);
        }
        conv_norm_backward<B>(tensors, batch, layer - 1, row);
      }
    }
    int busy = 0;
    if (conv.by_rows > 0) {
      run_row_gradient<B>(layer - 1);
      busy = conv.backward.out_rows * conv.row_groups * 32 % B::kThreads;
    } else if (conv.backward_data != 0) {
      run_row_pass<B>(layer - 1, true);
      const RowPass& dx = conv.backward;
      busy = (dx.strips * dx.out_rows * dx.filter_tiles * dx.splits + 31) / 32 * 32 % B::kThreads;
    }
    if (conv.sparse != 0) {
      run_window_gradient<B>(layer - 1, partial, own);
      __syncthreads();
      continue;
    }
    const int turned = thread - busy;
    run_weight_gradient<B>(layer - 1, turned < 0 ? turned + B::kThreads : turned);
    // In front of a batch norm a bias changes nothing: the mean takes it away again.
    for (int i = thread; i < conv.filters && normed && own; i += B::kThreads) partial[conv.bias_from + i] = 0.0F;
    // The padding of dy is zeros.
    for (int filter = B::kThreads / 32 - 1 - warp; filter < conv.filters && !normed; filter += B::kThreads / 32) {
      float sum = 0.0F;
      for (int i = lane; i < conv.dy_plane; i += 32) sum += shared[conv.dy + filter * conv.dy_plane + i];
      sum = warp_sum(sum);
      if (lane == 0 && own) put_gradient<B>(partial[conv.bias_from + filter], sum);
    }
    __syncthreads();
  }
}

}  // namespace gpunn::cuda_tiled
