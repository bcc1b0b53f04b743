// The plan of a fused training step of a small network, which runs in two kernels: all their parameters as plain
// values.
//
// StepNetwork describes the network, independently of how it is computed. make_step_plan() lays it out. It decides
// which slice of which layer a block holds, where in shared memory each buffer lies, and how the convolutions are
// tiled. The plan lies in device memory; the blocks of both kernels copy it to shared memory first.
#pragma once

#include <gpunn/op_attrs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "divider.cuh"

namespace gpunn::cuda_tiled {

// The first kernel's blocks: how many are a cluster, which is also the images of a cluster, one a block; their threads;
// and how many should fit a multiprocessor. GPUs have multiprocessors in groups that a cluster can't leave, and 16
// clusters of 8 blocks don't fit the 132 of an H200 unless two blocks share some; but most dense layers don't fit 2.
template <int IMAGES, int THREADS, int BLOCKS, int BOUND>
struct StepBlock {
  static constexpr int kImages = IMAGES;
  static constexpr int kThreads = THREADS;
  static constexpr int kBlocks = BLOCKS;
  // The number of threads that bounds its registers: more than it has, so that a block of the second kernel fits beside
  // it.
  static constexpr int kBound = BOUND;
  static constexpr bool kRounds = false;
};
using PairBlock = StepBlock<2, 512, 1, 768>;
using OctetBlock = StepBlock<8, 384, 2, 384>;
// The blocks of the kernels for large batches (step_rounds.cuh): a block processes one image after another.
template <int THREADS, int BLOCKS>
struct RoundBlock : StepBlock<1, THREADS, BLOCKS, THREADS> {
  static constexpr bool kRounds = true;
};
using ForwardRounds = RoundBlock<128, 5>;
using BackwardRounds = RoundBlock<128, 4>;
// Threads of the block of dense layers, and the images that it may have.
inline constexpr int kDenseRoundThreads = 512;
inline constexpr int kDenseRoundImages[] = {4, 8, 16};
// In shared memory the gradients of a dense layer lie so far apart besides, so that neighbours meet in few banks.
inline constexpr int kDenseRoundPad = 4;
// The threads that run the forward convolutions. The last warp issues the loads of the dense layers' weights meanwhile,
// and waits while the memory is busy with earlier loads.
template <class B>
struct WithoutLastWarp : B {
  static constexpr int kThreads = B::kThreads - 32;
};
// The parts of a step that the plain kernels lack: these know ReLU, maxima of windows, cross-entropy of labels, SGD and
// Adam alone. Each instance of a kernel knows a set of parts, so that little code lies between what it runs.
inline constexpr unsigned kNoParts = 0;
inline constexpr unsigned kNormPart = 1;    // batch norm with ReLU or no activation
inline constexpr unsigned kFinishPart = 2;  // other activations, means of windows, dropout
inline constexpr unsigned kLossPart = 4;    // other losses; logits and losses that are read outside the step
inline constexpr unsigned kBatchPart = 8;   // batches that are ready, and images that are shifted
inline constexpr unsigned kAllParts = 15;
// All but batch norm, whose images must be there at the same time.
inline constexpr unsigned kRoundParts = kFinishPart | kLossPart | kBatchPart;
// The second kernel has batch norm's part and this one: other optimizers, bounds, averages, a counter that stays.
inline constexpr unsigned kUpdatePart = 2;
inline constexpr unsigned kAllUpdateParts = 3;
inline constexpr unsigned kRankPart = 4;  // likewise, besides them: gradients and losses are added over ranks

// The kernel for a kind of network: columns of all its filters, and its parts.
inline constexpr int kAnyColumns = 0;
inline constexpr int kNoFilters = -1;
template <class B, int COLUMNS, unsigned PARTS = kNoParts>
struct StepCode : B {
  static constexpr int kColumns = COLUMNS;
  static constexpr bool kGeneral = PARTS != kNoParts;
  static constexpr bool kNorms = (PARTS & kNormPart) != 0;
  static constexpr bool kFinishes = (PARTS & kFinishPart) != 0;
  static constexpr bool kLosses = (PARTS & kLossPart) != 0;
  static constexpr bool kBatches = (PARTS & kBatchPart) != 0;
};
inline constexpr int kMostStepImages = 8;
// Sums that a cluster makes of each gradient that it exchanges.
inline constexpr int kStepShares = 8;

// Rows of a dense layer's w that a warp takes at once.
constexpr int dense_tile(int images) { return 4 * (32 / images); }

inline constexpr int kUpdateThreads = 256;
inline constexpr int kMostStepConvs = 4;
inline constexpr int kMostStepDense = 6;
inline constexpr int kMostFlatOps = 8;
inline constexpr int kMostStepRanks = 8;
// What a rank sends of its gradients in a step, at most. Sums of more bytes pass each link once instead.
inline constexpr int64_t kMostSentBytes = int64_t{8} << 20;
// Numbers by channel that a batch norm keeps in shared memory: mean, 1 / deviation, gamma, beta, and two means of the
// gradient.
inline constexpr int kNormNumbers = 6;
// Warps that share a channel's sums of an image, at most.
inline constexpr int kNormParts = 4;
// How often a batch norm's result is written, so that not all blocks read it from the same place.
inline constexpr int kResultCopies = 8;
// The tile of a dense layer's weight gradient: outputs x inputs.
inline constexpr int kUpdateRows = 16;
inline constexpr int kUpdateColumns = 64;
// Columns of the convolutions' sums an image that a block adds.
inline constexpr int kUpdateSums = 64;

// Static shared memory of the first kernel, at most: the limit of the other part is less by it.
inline constexpr int kStepStaticBytes = 512;

// For the data gradient by rows (step_sparse.cuh): the channels of a lane, the lanes that share the filters, and the
// distance between the sums of two elements, which keeps neighbours in different banks.
inline constexpr int kRowChannels = 3;
inline constexpr int kRowLanes = 16;
inline constexpr int kRowPitch = 33;

enum class StepActivation : int32_t { none, relu, leaky_relu, sigmoid, tanh, gelu, gelu_tanh, silu };

// Whether y rises with x and determines its gradient.
constexpr bool known_by_result(StepActivation activation) { return activation < StepActivation::gelu; }

// As in DROPOUT; a threshold of 0 drops nothing.
struct StepDropout {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint32_t threshold = 0;
  float factor = 1.0F;
};

// As BATCH_NORM, over channels of `size` elements an image.
struct StepNorm {
  int there = 0;
  float epsilon = 0.0F;
  float momentum = 0.0F;
  int64_t gamma = 0;  // where they begin in the parameters, in elements
  int64_t beta = 0;
};

// The ops that may follow a layer's sums, in this order: batch norm, activation, pooling (behind a convolution),
// dropout.
struct StepFinish {
  StepNorm norm{};
  StepActivation activation = StepActivation::none;
  float slope = 0.0F;  // of a leaky ReLU
  StepDropout dropout{};
};

// f(x * w + bias), then the largest or the mean of each window. A window of 1 x 1 is no pooling.
struct ConvShape {
  int channels = 0, height = 0, width = 0;  // of x
  int filters = 0, rows = 0, columns = 0;   // of w
  int pad[2] = {0, 0};
  int window[2] = {1, 1};
  int stride[2] = {1, 1};  // of the windows, which don't overlap
  bool mean = false;
  int64_t weight = 0;  // where w and the bias begin in the parameters, in elements
  int64_t bias = 0;    // -1: there is none
  StepFinish finish;

  int out_height() const { return height + 2 * pad[0] - rows + 1; }
  int out_width() const { return width + 2 * pad[1] - columns + 1; }
  int pooled_height() const { return (out_height() - window[0]) / stride[0] + 1; }
  int pooled_width() const { return (out_width() - window[1]) / stride[1] + 1; }
  int pooled_size() const { return filters * pooled_height() * pooled_width(); }
  // Whether all sums are kept for the way back, not the place of each window's largest alone.
  bool kept() const { return mean || finish.norm.there != 0 || !known_by_result(finish.activation); }
};

// f(x w^T + bias), w[outputs, inputs].
struct DenseShape {
  int inputs = 0;
  int outputs = 0;
  int64_t weight = 0;
  int64_t bias = 0;  // -1: there is none
  StepFinish finish;
};

enum class StepLoss : int32_t { cross_entropy, soft_cross_entropy, squares, binary_cross_entropy, huber, hinge };

// The source of a row's targets, for losses that have targets.
enum class StepTargets : int32_t { none, of_label, of_row };

enum class FlatKind : int32_t { clip_norm, l1, clamp, sgd, adam, rmsprop, adagrad, lion, average };

// An op on the flat array of gradients or of parameters: on the elements [from, to), of which those before `decayed`
// decay.
struct FlatOp {
  FlatKind kind = FlatKind::sgd;
  int from = 0, to = 0;
  int decayed = 0;
  int option = 0;  // nesterov, decoupled, rescale
  // sgd: momentum; adam: beta1, beta2, epsilon; rmsprop: alpha, momentum, epsilon; adagrad: -, -, epsilon; lion: beta1,
  // beta2; clip_norm: largest norm, -, epsilon; clamp: low, high; average: of the average, of the parameters;
  // l1: weight
  float a = 0.0F, b = 0.0F, c = 0.0F;
  float decay = 0.0F;
  float rate = 1.0F;  // factor of the learning rate
};

enum class StepOptimizer : int32_t { sgd, adam };

struct StepNetwork {
  // Set if earlier ops make the batch: `sample.batch` says how many rows it has.
  bool ready = false;
  bool counted = false;  // whether batch norms are over the rows that are samples alone
  gpunn_sample_attrs sample{};
  // Of the batch that `sample` draws for all ranks this one has the rows [first_row, first_row + rows).
  int rows = 0;
  int first_row = 0;
  int world = 1;             // ranks over which the step adds up its gradients and the loss of its history
  float loss_weight = 1.0F;  // of this rank's loss in that sum
  int64_t pass_advance = 0;  // of a counter that the step advances and does not read
  bool shifted = false;
  gpunn_random_shift_attrs shift{};
  int64_t data_rows = 0;
  int channels = 0, height = 0, width = 0;  // of a sample; 1 x n x 1 where it is no image
  int32_t data_type = 0;                    // GPUNN_U8 or GPUNN_F32
  int32_t label_type = 0;                   // GPUNN_U8, GPUNN_I32 or GPUNN_I64
  int64_t label_rows = 0;
  std::vector<ConvShape> convs;
  std::vector<DenseShape> dense;  // at least one; the last one's outputs are the classes
  StepLoss loss = StepLoss::cross_entropy;
  StepTargets targets = StepTargets::none;
  bool told = false;        // whether logits or losses are read outside
  int64_t target_rows = 0;  // of a table of targets
  float loss_a = 0.0F;      // huber: delta; hinge: margin
  int loss_power = 1;       // of hinge
  float loss_gradient = 1.0F;
  StepOptimizer optimizer = StepOptimizer::sgd;
  gpunn_sgd_attrs sgd{};
  gpunn_adam_attrs adam{};
  // Instead of the optimizer, what happens to gradients and parameters; the first `before_norm` of them before the norm
  // of all gradients is known. Without any, the gradients are what the step leaves.
  bool flat = false;
  std::vector<FlatOp> flat_ops;
  int before_norm = -1;  // -1: no norm is wanted
  int64_t flat_size = 0;
  int64_t norm_history = 0;  // entries of the norms' table
  int64_t rates = 0;         // entries of the learning rate's table; 0: none is wanted
  int64_t history = 0;       // entries of the losses' table; 0: none is kept
  bool metrics = false;      // whether totals are kept
  bool ranks = false;        // whether ranks of labels are among them
  bool advances = true;      // whether the step advances the counter
  int64_t advance = 1;
};

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
  int by_rows;               // 1: backward is a row_gradient() of step_sparse.cuh, not a row_pass()
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

// The samples of a step to come. The second kernel draws them two steps ahead, while it waits for others: so they can
// be fetched before the step before has ended. Whoever reads them checks the step: a counter may be set from outside.
struct NextBatch {
  int64_t step;
  int64_t unused;
  // int32_t index[batch] follows.
};

// Two of them, behind what the first kernel expects its next step to be and what its blocks tell the second kernel. All
// numbers begin at -1, and wrap around; but for `runs`, so that what images have told each other never seems to be of a
// first run.
struct NotedBatches {
  int64_t expected;
  uint32_t started;  // how often the first kernel has started
  uint32_t inputs;   // how many of its blocks have written their factors of the dense layers' weight gradients: the x,
  uint32_t written;  // and all of them
  uint32_t unused;
  uint32_t runs;  // how often the second kernel of a step with batch norm has ended
  uint32_t unused2[5];
};

constexpr std::size_t next_batch_bytes(const StepPlan& plan) {
  return sizeof(NextBatch) + (static_cast<std::size_t>(plan.batch) * sizeof(int32_t) + 15) / 16 * 16;
}

// Behind both lies what images tell each other about batch norms.
constexpr std::size_t exchange_from(const StepPlan& plan) { return sizeof(NotedBatches) + 2 * next_batch_bytes(plan); }
constexpr std::size_t noted_bytes(const StepPlan& plan) {
  return exchange_from(plan) + static_cast<std::size_t>(plan.exchange) * 16;
}

// The tensors that the step reads and writes. The pointer of an absent tensor is null.
struct StepTensors {
  const void* data;
  const void* labels;
  const float* scale;
  const float* shift;
  int64_t* step;
  const float* rate_table;
  float* parameters;
  float* state1;  // velocity, or Adam's m
  float* state2;  // Adam's v
  double* totals;
  float* history;
  float* workspace;
  const StepPlan* plan;
  NotedBatches* noted;
};

// The additional tensors of kernels with parts.
struct GeneralTensors : StepTensors {
  const float* x;        // of a batch that is ready
  const int32_t* count;  // of its rows that are samples
  const float* targets;  // a table by label, or of the rows
  const float* border;   // of shifted images
  float* gradients;      // flat
  float* logits;         // where they are wanted outside
  float* row_losses;
  float* mean_loss;
  float* norm;  // of all gradients
  float* norm_history;
  float* flat_state[kMostFlatOps][2];
  float* running[kMostStepConvs + kMostStepDense][2];  // mean and variance: of convolutions, then of dense layers
};

// Memory through which the ranks of a step exchange their gradients (step_ranks.cuh).
struct PeerWords {
  uint64_t* of[kMostStepRanks];  // by rank, as this GPU reaches it: [parity of the run][sender][word]
  const uint32_t* stop;          // of the host: not 0 if another rank is lost
  uint32_t* stopped;             // of this GPU: likewise
  int rank, world;
  int64_t words;
};

// How much memory a rank offers the others.
constexpr std::size_t peer_bytes(const StepPlan& plan) {
  return static_cast<std::size_t>(plan.words * plan.world) * 2 * sizeof(uint64_t);
}

// The additional tensors of a step with ranks.
struct RankTensors : GeneralTensors {
  int64_t* pass;  // a counter that is advanced
  PeerWords peers;
};

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
