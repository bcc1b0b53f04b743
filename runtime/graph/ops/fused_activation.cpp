#include "graph/ops/fused_activation.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

namespace gpunn::graph {

namespace {

[[noreturn]] void unknown(int32_t activation) { throw Error("unknown activation " + std::to_string(activation)); }

}  // namespace

std::string activation_text(int32_t activation) {
  switch (activation) {
    case GPUNN_ACTIVATION_NONE:
      return "";
    case GPUNN_ACTIVATION_RELU:
      return "relu";
    default:
      unknown(activation);
  }
}

void add_bias_and_activation(Graph& graph, const std::string& name, ValueId x, ValueId bias, int32_t activation,
                             ValueId output) {
  switch (activation) {
    case GPUNN_ACTIVATION_NONE:
      graph.add_into(GPUNN_OP_BIAS_ADD, name, {}, {x, bias}, {output});
      return;
    case GPUNN_ACTIVATION_RELU: {
      const ValueId sum = graph.add1(GPUNN_OP_BIAS_ADD, name, {}, {x, bias});
      graph.add_into(GPUNN_OP_RELU, name, {}, {sum}, {output});
      return;
    }
    default:
      unknown(activation);
  }
}

void add_activation_backward(Graph& graph, const std::string& name, ValueId dy, ValueId y, int32_t activation,
                             ValueId dx) {
  switch (activation) {
    case GPUNN_ACTIVATION_NONE:
      graph.add_into(GPUNN_OP_COPY, name, {}, {dy}, {dx});
      return;
    case GPUNN_ACTIVATION_RELU:
      graph.add_into(GPUNN_OP_RELU_BACKWARD, name, {}, {dy, y}, {dx});
      return;
    default:
      unknown(activation);
  }
}

}  // namespace gpunn::graph
