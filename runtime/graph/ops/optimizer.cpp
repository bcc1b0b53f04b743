// SGD_UPDATE, ADAM_UPDATE, RMSPROP_UPDATE, ADAGRAD_UPDATE, LION_UPDATE and LARS_UPDATE.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

// w, g and lr lead every optimizer; the inputs from `states` on are as long as w.
void require_update(Inputs in, std::size_t states, int64_t decayed) {
  require_f32(in[0], 1, "w");
  require_same(in[0], in[1], "w", "g");
  require_scalar(in[2], DType::f32, "lr");
  for (std::size_t i = states; i < in.size(); ++i) require_same(in[0], in[i], "w", "a state");
  require(decayed >= 0 && decayed <= in[0].shape[0], "decayed " + std::to_string(decayed) +
                                                         " is not between 0 and the " + std::to_string(in[0].shape[0]) +
                                                         " elements of w");
}

Types infer_sgd(const Attributes& attrs, Inputs in) {
  const auto a = attrs.as<gpunn_sgd_attrs>();
  require_update(in, 3, a.decayed);
  require((a.momentum != 0) == (in.size() == 4), "a velocity goes with a momentum, and only with one");
  Types out{in[0]};
  if (in.size() == 4) out.push_back(in[3]);
  return out;
}

Types infer_adam(const Attributes& attrs, Inputs in) {
  require_update(in, 4, attrs.as<gpunn_adam_attrs>().decayed);
  require_scalar(in[3], DType::i64, "step");
  return {in[0], in[4], in[5]};
}

Types infer_rmsprop(const Attributes& attrs, Inputs in) {
  const auto a = attrs.as<gpunn_rmsprop_attrs>();
  require_update(in, 3, a.decayed);
  require((a.momentum != 0) == (in.size() == 5), "a velocity goes with a momentum, and only with one");
  Types out{in[0], in[3]};
  if (in.size() == 5) out.push_back(in[4]);
  return out;
}

Types infer_adagrad(const Attributes& attrs, Inputs in) {
  require_update(in, 3, attrs.as<gpunn_adagrad_attrs>().decayed);
  return {in[0], in[3]};
}

Types infer_lion(const Attributes& attrs, Inputs in) {
  require_update(in, 3, attrs.as<gpunn_lion_attrs>().decayed);
  return {in[0], in[3]};
}

Types infer_lars(const Attributes& attrs, Inputs in) {
  require_update(in.first(4), 3, attrs.as<gpunn_lars_attrs>().decayed);
  require_dtype(in[4], DType::i64, "offset");
  require_rank(in[4], 1, "offset");
  require(in[4].shape[0] >= 1, "offset must have one entry more than there are parts, is " + to_string(in[4]));
  return {in[0], in[3]};
}

double sgd_flops(const OpSignature& s) { return 6.0 * static_cast<double>(s.inputs[0].elements()); }
double adam_flops(const OpSignature& s) { return 14.0 * static_cast<double>(s.inputs[0].elements()); }
double rmsprop_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }
double adagrad_flops(const OpSignature& s) { return 8.0 * static_cast<double>(s.inputs[0].elements()); }
double lion_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }
double lars_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_sgd(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_sgd_attrs>();
  std::ostringstream text;
  text << "momentum " << a.momentum << (a.nesterov != 0 ? " nesterov" : "") << ", weight decay " << a.weight_decay;
  return text.str();
}

std::string describe_adam(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_adam_attrs>();
  std::ostringstream text;
  text << "betas " << a.beta1 << " " << a.beta2 << ", weight decay " << a.weight_decay
       << (a.decoupled != 0 ? " decoupled" : "");
  return text.str();
}

std::string describe_rmsprop(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_rmsprop_attrs>();
  std::ostringstream text;
  text << "alpha " << a.alpha << ", momentum " << a.momentum << ", weight decay " << a.weight_decay;
  return text.str();
}

std::string describe_adagrad(const Attributes& attrs) {
  std::ostringstream text;
  text << "weight decay " << attrs.as<gpunn_adagrad_attrs>().weight_decay;
  return text.str();
}

std::string describe_lion(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_lion_attrs>();
  std::ostringstream text;
  text << "betas " << a.beta1 << " " << a.beta2 << ", weight decay " << a.weight_decay;
  return text.str();
}

std::string describe_lars(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_lars_attrs>();
  std::ostringstream text;
  text << "trust " << a.trust << ", momentum " << a.momentum << ", weight decay " << a.weight_decay;
  return text.str();
}

}  // namespace

std::vector<OpInfo> optimizer_ops() {
  return {
      {.id = GPUNN_OP_SGD_UPDATE,
       .name = "SGD_UPDATE",
       .min_inputs = 3,
       .max_inputs = 4,
       .infer = infer_sgd,
       .in_place = {0, 3},
       .flops = sgd_flops,
       .describe = describe_sgd},
      {.id = GPUNN_OP_ADAM_UPDATE,
       .name = "ADAM_UPDATE",
       .min_inputs = 6,
       .max_inputs = 6,
       .infer = infer_adam,
       .in_place = {0, 4, 5},
       .flops = adam_flops,
       .describe = describe_adam},
      {.id = GPUNN_OP_RMSPROP_UPDATE,
       .name = "RMSPROP_UPDATE",
       .min_inputs = 4,
       .max_inputs = 5,
       .infer = infer_rmsprop,
       .in_place = {0, 3, 4},
       .flops = rmsprop_flops,
       .describe = describe_rmsprop},
      {.id = GPUNN_OP_ADAGRAD_UPDATE,
       .name = "ADAGRAD_UPDATE",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_adagrad,
       .in_place = {0, 3},
       .flops = adagrad_flops,
       .describe = describe_adagrad},
      {.id = GPUNN_OP_LION_UPDATE,
       .name = "LION_UPDATE",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_lion,
       .in_place = {0, 3},
       .flops = lion_flops,
       .describe = describe_lion},
      {.id = GPUNN_OP_LARS_UPDATE,
       .name = "LARS_UPDATE",
       .min_inputs = 5,
       .max_inputs = 5,
       .infer = infer_lars,
       .in_place = {0, 3},
       .flops = lars_flops,
       .describe = describe_lars},
  };
}

}  // namespace gpunn::graph
