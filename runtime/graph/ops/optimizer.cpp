// SGD_UPDATE, ADAM_UPDATE, RMSPROP_UPDATE, ADAGRAD_UPDATE, LION_UPDATE and LARS_UPDATE.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

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
      {.id = GPUNN_OP_SGD_UPDATE, .flops = sgd_flops, .describe = describe_sgd},
      {.id = GPUNN_OP_ADAM_UPDATE, .flops = adam_flops, .describe = describe_adam},
      {.id = GPUNN_OP_RMSPROP_UPDATE, .flops = rmsprop_flops, .describe = describe_rmsprop},
      {.id = GPUNN_OP_ADAGRAD_UPDATE, .flops = adagrad_flops, .describe = describe_adagrad},
      {.id = GPUNN_OP_LION_UPDATE, .flops = lion_flops, .describe = describe_lion},
      {.id = GPUNN_OP_LARS_UPDATE, .flops = lars_flops, .describe = describe_lars},
  };
}

}  // namespace gpunn::graph
