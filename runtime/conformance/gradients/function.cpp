#include "conformance/gradients/function.hpp"

#include <utility>

#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::run_reference;

Function oracle_function(int32_t op, graph::Attributes attrs) {
  return [op, attrs = std::move(attrs)](const std::vector<ReferenceTensor>& inputs) {
    graph::OpSignature signature{op, attrs, {}, {}};
    for (const ReferenceTensor& input : inputs) signature.inputs.push_back(input.type);
    signature.outputs = ops::op_info(op).infer(attrs, signature.inputs);
    return run_reference(signature, inputs);
  };
}

Generator apart(double gap) {
  return [gap](Random&, int64_t index) {
    constexpr int64_t kPrime = 10007;
    const int64_t mixed = (index * 4001 + 17) % kPrime;  // all different below kPrime elements
    constexpr int64_t kMiddle = kPrime / 2;
    return gap * (static_cast<double>(mixed - kMiddle) + 0.5);
  };
}

}  // namespace gpunn::conformance
