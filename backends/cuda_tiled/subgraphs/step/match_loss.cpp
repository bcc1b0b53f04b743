// The loss of a training step, and its gradient.
#include "common/loss.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;

bool is_loss(int32_t op) {
  switch (op) {
    case GPUNN_OP_SOFTMAX_CROSS_ENTROPY:
    case GPUNN_OP_SOFT_CROSS_ENTROPY:
    case GPUNN_OP_MSE_LOSS:
    case GPUNN_OP_BCE_LOGITS_LOSS:
    case GPUNN_OP_HUBER_LOSS:
    case GPUNN_OP_HINGE_LOSS:
      return true;
    default:
      return false;
  }
}

// Of a rank, its share of the rows is a factor.
float loss_gradient(StepSearch& search, int32_t id, std::size_t before) {
  Pattern& pattern = search.pattern;
  const std::size_t product = pattern.producer(id, before);
  if (product == Pattern::kNone || pattern.op(product) != GPUNN_OP_MUL) {
    return static_cast<float>(search.constant(id, before));
  }
  pattern.take(product, "");
  const auto first = static_cast<float>(search.constant(pattern.input(product, 0), product));
  return first * static_cast<float>(search.constant(pattern.input(product, 1), product));
}

}  // namespace

void find_loss(StepSearch& search) {
  Pattern& pattern = search.pattern;
  for (std::size_t i = pattern.begin(); i < pattern.end(); ++i) {
    if (is_loss(pattern.op(i)) && search.loss == Pattern::kNone) search.loss = i;
  }
  require(search.loss != Pattern::kNone, "no loss that is known");
  search.logits = pattern.input(search.loss, 0);
}

void match_loss(StepSearch& search) {
  Pattern& pattern = search.pattern;
  StepNetwork& network = search.match.network;
  const std::size_t loss = pattern.take(search.loss, "");
  search.losses = pattern.output(loss);
  const int32_t second = pattern.input(loss, 1);
  int32_t backward_op = 0;
  int32_t kept = -1;  // what the backward reads behind dloss
  const auto of = [&](StepLoss kind, int32_t backward, bool log_probability) {
    network.loss = kind;
    backward_op = backward;
    kept = log_probability ? pattern.output(loss, 1) : search.logits;
  };
  switch (pattern.op(loss)) {
    case GPUNN_OP_SOFTMAX_CROSS_ENTROPY:
      of(StepLoss::cross_entropy, GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, true);
      break;
    case GPUNN_OP_SOFT_CROSS_ENTROPY:
      of(StepLoss::soft_cross_entropy, GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, true);
      break;
    case GPUNN_OP_MSE_LOSS:
      of(StepLoss::squares, GPUNN_OP_MSE_LOSS_BACKWARD, false);
      break;
    case GPUNN_OP_BCE_LOGITS_LOSS:
      of(StepLoss::binary_cross_entropy, GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, false);
      break;
    case GPUNN_OP_HUBER_LOSS:
      of(StepLoss::huber, GPUNN_OP_HUBER_LOSS_BACKWARD, false);
      network.loss_a = huber_of(search.op(loss)).delta;
      break;
    default:
      of(StepLoss::hinge, GPUNN_OP_HINGE_LOSS_BACKWARD, false);
      network.loss_a = hinge_of(search.op(loss)).margin;
      network.loss_power = hinge_of(search.op(loss)).power;
  }
  if (network.loss == StepLoss::cross_entropy || network.loss == StepLoss::hinge) {
    use_label(search, second);
  } else {
    use_targets(search, second);
  }
  const std::size_t mean = pattern.take(GPUNN_OP_MEAN_ROWS, {search.losses, search.count}, "no mean loss");
  search.mean = pattern.output(mean);
  const std::size_t backward = pattern.take(backward_op, {-1, kept, second}, "no gradient of the loss");
  const std::size_t mean_backward = pattern.producer(pattern.input(backward, 0), backward);
  require(mean_backward != Pattern::kNone && pattern.op(mean_backward) == GPUNN_OP_MEAN_ROWS_BACKWARD &&
              pattern.input(mean_backward, 1) == search.count,
          "no gradient of the mean");
  pattern.take(mean_backward, "");
  network.loss_gradient = loss_gradient(search, pattern.input(mean_backward, 0), mean_backward);
  search.d = pattern.output(backward);
}

}  // namespace gpunn::cuda_tiled
