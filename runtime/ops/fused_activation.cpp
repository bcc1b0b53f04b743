#include "ops/fused_activation.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

namespace gpunn::ops {

namespace {

[[noreturn]] void unknown(int32_t activation) { throw Error("unknown activation " + std::to_string(activation)); }

}  // namespace

ValueId bias_and_activation(graph::Expressions& e, ValueId x, ValueId bias, int32_t activation) {
  const ValueId sum = e.op(GPUNN_OP_BIAS_ADD, {x, bias});
  switch (activation) {
    case GPUNN_ACTIVATION_NONE:
      return sum;
    case GPUNN_ACTIVATION_RELU:
      return e.op(GPUNN_OP_RELU, {sum});
    default:
      unknown(activation);
  }
}

ValueId activation_backward(graph::Expressions& e, ValueId dy, ValueId y, int32_t activation) {
  switch (activation) {
    case GPUNN_ACTIVATION_NONE:
      return dy;
    case GPUNN_ACTIVATION_RELU:
      return e.op(GPUNN_OP_RELU_BACKWARD, {dy, y});
    default:
      unknown(activation);
  }
}

}  // namespace gpunn::ops
