// The plan of a fused training step of a small network, which runs in two kernels: all their parameters as plain
// values.
//
// make_step_plan() lays out a network. It decides which slice of which layer a block holds, where in shared memory each
// buffer lies, and how the convolutions are tiled. The plan lies in device memory; the blocks of both kernels copy it
// to shared memory first.
#pragma once

#include <gpunn/op_attrs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "divider.cuh"
#include "subgraphs/step/network.hpp"

namespace gpunn::cuda_tiled {

// A pass over rows of planes in shared memory: a thread makes `tile` neighbouring outputs of `filters_a_thread`
// channels; the sum over the input channels is split over `splits` threads, whose sums are added in order afterwards.
// Places are in floats from the beginning of shared memory.
struct RowPass {
  int tile = 0;
  int strips = 0;  // tiles in a row; of the gradient of filters: outputs in a row, an even number
  int filters_a_thread = 0;
  int filter_tiles = 0;
  int splits = 0;
  int sums = 0;   // [split][filter][row][pitch]
  int pitch = 0;  // of the gradient of filters: elements of a split
  int x = 0, x_pitch = 0, x_plane = 0, x_rows = 0;
  int w = 0;  // [filter tile][channel][row][column][4]
  int channels = 0, filters = 0, rows = 0, columns = 0;
  int pad_rows = 0;
  int out_rows = 0;
  Divisor by_split, by_filter_tile, by_strip;  // threads of a split, of a filter tile, of a row
  Divisor by_splits;
};

struct ConvPlan {
  int channels, height, width, filters, rows, columns;
  int pooled_height, pooled_width, window_rows, window_columns, stride_rows, stride_columns;
  int relu;
  int pool_groups;                  // of threads that share the filters, each one with all places of a pooled plane
  int backward_data;                // 0 of the first layer
  int x, x_pitch, x_plane, x_left;  // a row begins with x_left zeros, the padding
  int x_top;                        // rows of zeros before and behind a plane
  int dy, dy_pitch, dy_plane, dy_left;
  int chosen;                  // in bytes: which element of a window was the largest
  int bias;                    // in shared memory
  int weight_from, bias_from;  // columns of the partial gradients
  int64_t weight_at, bias_at;  // in the parameters
  RowPass forward;
  RowPass backward;          // x is dy
  RowPass gradient;          // w is dy
  int by_rows;               // 1: backward is a row_gradient() of sparse.cuh, not a row_pass()
  int row_groups;            // of tiles of channels that a warp makes
  int row_sums;              // of a channel, in a row
  int sparse;                // 1: the weights' gradient from the windows, by window_gradient()
  int windows;               // in shared memory: [filter][window] where in x, and its gradient
  Divisor by_plane, by_row;  // elements of a pooled plane and row
  Divisor by_taps, by_width, by_window;
  int filter_floats;  // of one
  Divisor by_filter;  // elements of a filter
  Divisor by_tile;    // backward: taps of a filter tile
  Divisor by_row_groups;
  Divisor by_group, by_group_row;  // of the gradient: threads of a filter tile, and of a channel
};

struct DensePlan {
  int inputs, outputs, relu;
  int sliced;         // 1: a block of the cluster has a share of the rows of w; 0: each has all
  int slice;          // rows of w in a block
  int x_pitch;        // also of w; an odd number of 16 bytes
  int x, w, bias;     // in shared memory: [images][x_pitch], [slice][x_pitch], [slice]
  int dy;             // [slice][images]
  int received;       // of a sliced layer: sums of the other blocks for the layer below
  int splits, share;  // of the length, in fours
  int backward_data;
  int first_tile, tile_columns;  // of the weight gradient
  int first_bias;                // block of the bias gradient
  int dy_pitch;                  // of a row in the workspace
  int64_t x_rows, dy_rows;       // in the workspace, in floats: [batch][pitch]
  int64_t weight_at, bias_at;
  Divisor by_slice, by_fours, by_splits;
};

// Parameters of a convolution or dense layer that only kernels with parts use.
struct FinishPlan {
  StepFinish finish;
  int kept;          // 1: all sums are kept
  int mean;          // of windows
  float mean_share;  // 1 / elements of a window
  int u;             // in shared memory, on the way back: what is kept, as forward.sums; of a dense layer [row][image]
  int statistics;    // in shared memory: kNormNumbers numbers by channel
  // Batch norm over windows' largest: 1 where a window's largest element is known before the norm is, since norm and
  // activation keep or turn round the order. Only those elements are normalised then.
  int picks;
  int pick;    // in shared memory, on the way forward: the elements picked; -1: where the next layer has its x
  int picked;  // on the way back
  int64_t saved_picks;
  int lanes_log, parts_log;  // threads that share a channel: lanes of a warp, and warps; powers of two
  int part_rows;             // rows of the output in a part
  int part_windows;
  int channels, size;  // of the norm: elements of an image's channel
  int plane;           // of what is kept: elements of a channel, with those between rows
  int out_width;
  int norm_index;  // among the batch norms
  int row_size;    // of what dropout drops: elements of an image
  int first_norm;  // column among all gammas and betas
  int exchange;    // where images tell each other, in 16 bytes
  int sources;     // that tell of a channel
  int64_t saved;   // in the workspace, in floats: what is kept, by image
  Divisor by_plane, by_size, by_out_row, by_pitch;
};

struct alignas(16) StepPlan {
  gpunn_sample_attrs sample;
  int64_t steps;  // of an epoch
  int64_t data_rows, label_rows;
  int sample_size;
  int data_type, label_type;
  int batch;
  int images;  // of a cluster: which kernel it is
  int n_convs, n_dense;
  int columns;        // of all filters, kAnyColumns or kNoFilters: which kernel it is
  int filter_floats;  // of all convolutions
  int logits, logits_pitch;
  int scratch;      // of dense layers
  int zeros[2][2];  // stretches to clear: at the start, and before dy
  int shared_bytes;
  float loss_gradient;
  int first_row;  // in the batch of all ranks
  int world;
  float loss_weight;
  int64_t words;  // that a rank sends another in a step: a gradient each, and the loss as the last
  int64_t pass_advance;
  // For large batches: the images of a block of dense layers; otherwise 0. A block of convolutions stores `kept` floats
  // of each image, from `kept_from` on in shared memory, to the workspace and reloads them in the backward pass.
  int rounds;
  int kept_from, kept;
  int samples;  // in shared memory: those of a block's images
  int totals;   // likewise: the gradients that a block has summed up
  int forward_blocks, backward_blocks;
  int backward_bytes, dense_bytes;
  int64_t kept_rows, dx_rows;  // in the workspace
  int pass_blocks;             // blocks that tell the second kernel what they have written
  int partial_sums;            // rows of the convolutions' partial gradients
  // Kernel 2.
  int dense_blocks, partial_blocks, bias_blocks;  // the last ones of dense layers
  int partials;                                   // columns of the convolutions' partial gradients
  int64_t partial_rows, losses, ranks, head;      // in the workspace, in floats
  uint64_t workspace_bytes;
  StepOptimizer optimizer;
  gpunn_sgd_attrs sgd;
  gpunn_adam_attrs adam;
  int64_t rates, history, advance;
  int metrics;
  Divisor by_channel;  // elements of a sample's channel
  ConvPlan conv[kMostStepConvs];
  DensePlan dense[kMostStepDense];
  unsigned parts, update_parts;  // of the kernels
  // From here on of kernels with parts alone.
  int ready;
  int shifted;
  int height, width;
  Divisor by_width;
  StepLoss loss;
  StepTargets targets;
  float loss_a;
  int loss_power;
  int counted;
  int ranked;
  int advances;
  int flat, flat_ops, before_norm, flat_size, flat_blocks;
  int update_blocks;  // of the second kernel that have gradients
  int norms;          // gammas and betas
  int norm_blocks;
  int norm_layers;
  int64_t target_rows;
  int64_t norm_history;
  int exchange;                     // of all norms, in 16 bytes
  int64_t norm_gradients, squares;  // in the workspace, in floats; of norms mean and variance of the batch lie behind
  gpunn_random_shift_attrs shift;
  FinishPlan conv_finish[kMostStepConvs];
  FinishPlan dense_finish[kMostStepDense];
  FlatOp flat_op[kMostFlatOps];
};

// Bytes of a plan that the kernels copy to shared memory.
constexpr std::size_t plan_bytes(bool general) {
  return general ? sizeof(StepPlan) : (offsetof(StepPlan, ready) + 15) / 16 * 16;
}

// A plan, or the reason why there is none.
struct StepPlanned {
  std::optional<StepPlan> plan;
  std::string refusal;
};

struct StepLimits {
  int shared = 0;  // bytes of a block
  int multiprocessors = 0;
};

StepPlanned make_step_plan(const StepNetwork& network, const StepLimits& limits);

}  // namespace gpunn::cuda_tiled
