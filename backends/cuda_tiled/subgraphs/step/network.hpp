// The network of a fused training step, independently of how it is computed: what match_step() finds in a program, and
// make_step_plan() lays out.
#pragma once

#include <gpunn/op_attrs.h>

#include <cstdint>
#include <vector>

namespace gpunn::cuda_tiled {

inline constexpr int kMostStepConvs = 4;
inline constexpr int kMostStepDense = 6;
inline constexpr int kMostFlatOps = 8;
inline constexpr int kMostStepRanks = 8;

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

}  // namespace gpunn::cuda_tiled
