#include "conformance/gradients/function.hpp"

#include <utility>

#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::run_reference;

Function reference_function(int32_t op, graph::Attributes attrs) {
  return [op, attrs = std::move(attrs)](const std::vector<ReferenceTensor>& inputs) {
    graph::OpSignature signature{op, attrs, {}, {}};
    for (const ReferenceTensor& input : inputs) signature.inputs.push_back(input.type);
    signature.outputs = ops::op_info(op).infer(attrs, signature.inputs);
    return run_reference(signature, inputs);
  };
}

}  // namespace gpunn::conformance
