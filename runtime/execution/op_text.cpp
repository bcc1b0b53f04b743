#include "execution/op_text.hpp"

#include <gpunn/error.hpp>

#include "ops/op.hpp"

namespace gpunn::execution {

namespace {

std::string types(const std::vector<TensorType>& list) {
  std::string text;
  for (const TensorType& type : list) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

}  // namespace

std::string op_name(int32_t op) {
  try {
    return std::string(ops::op_info(op).name);
  } catch (const Error&) {
    return "op " + std::to_string(op);
  }
}

std::string text_of(const graph::OpSignature& signature) {
  const std::string inputs = types(signature.inputs);
  return op_name(signature.op) + " (" + inputs + (inputs.empty() ? "-> " : " -> ") + types(signature.outputs) + ")";
}

std::string text_of(const graph::Node& node) { return op_name(node.op) + " '" + node.name + "'"; }

}  // namespace gpunn::execution
