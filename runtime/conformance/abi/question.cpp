#include "conformance/abi/question.hpp"

#include "conformance/abi/abi_checks.hpp"
#include "execution/backend.hpp"

namespace gpunn::conformance {

namespace {

std::vector<gpunn_tensor> abi_tensors(const std::vector<TensorType>& types) {
  std::vector<gpunn_tensor> result;
  for (const TensorType& type : types) result.push_back(execution::abi_tensor(type, nullptr));
  return result;
}

}  // namespace

RawDescription Question::description() const { return {op, attrs.empty() ? nullptr : attrs.data(), inputs, outputs}; }

Question question_of(const graph::OpSignature& signature) {
  Question question{signature.op, {}, abi_tensors(signature.inputs), abi_tensors(signature.outputs)};
  const auto* bytes = static_cast<const std::byte*>(signature.attrs.data());
  question.attrs.assign(bytes, bytes + signature.attrs.size());
  return question;
}

gpunn_op_support query(const RawDevice& device, const gpunn_op_desc* desc) {
  gpunn_op_support support{};
  support.struct_size = sizeof(support);
  const plugins::CallResult result = plugins::guarded(
      [&](gpunn_error* error) { return device.table().op_query(device.device(), desc, &support, error); });
  demand(result.status >= GPUNN_OK && result.status <= GPUNN_INTERNAL,
         "op_query returned status " + std::to_string(result.status) + ", which abi.h lacks");
  if (!result.ok()) support.score = 0;
  return support;
}

}  // namespace gpunn::conformance
