#include "conformance/bound_op.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "ops/op.hpp"
#include "ops/values.hpp"

namespace gpunn::conformance {

using ops::encode;
using ops::ReferenceTensor;

using execution::Backend;
using execution::Buffer;

namespace {

constexpr uint8_t kUnwritten = 0xC3;

}  // namespace

BoundOp::BoundOp(Backend& backend, const graph::OpSignature& signature)
    : backend_(backend),
      signature_(signature),
      placement_(backend.place(signature)),
      kernel_(backend.create(signature, placement_)),
      workspace_(backend.allocate(placement_.workspace_bytes)) {
  for (const TensorType& type : signature.inputs) {
    inputs_.push_back(backend.allocate(type.bytes()));
    in_.push_back(execution::abi_tensor(type, inputs_.back().data()));
  }
  const std::vector<int>& in_place = ops::op_info(signature.op).in_place;
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    const TensorType& type = signature.outputs[i];
    const int input = i < in_place.size() ? in_place[i] : -1;
    if (input < 0) own_outputs_.push_back(backend.allocate(type.bytes()));
    void* const data = input < 0 ? own_outputs_.back().data() : in_[static_cast<std::size_t>(input)].data;
    out_.push_back(execution::abi_tensor(type, data));
  }
}

void BoundOp::write(const std::vector<ReferenceTensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::byte> content = encode(inputs[i]);
    backend_.upload(in_[i].data, content.data(), content.size());
  }
  for (const Buffer& output : own_outputs_) backend_.fill(output.data(), kUnwritten, output.bytes());
  backend_.fill(workspace_.data(), kUnwritten, workspace_.bytes());
  backend_.synchronize();
}

void BoundOp::enqueue() {
  kernel_.enqueue(in_, out_, workspace_.data(), std::string(ops::op_info(signature_.op).name));
}

OutputBytes BoundOp::read() {
  backend_.synchronize();
  OutputBytes outputs;
  for (std::size_t i = 0; i < out_.size(); ++i) {
    outputs.emplace_back(signature_.outputs[i].bytes());
    backend_.download(outputs.back().data(), out_[i].data, outputs.back().size());
  }
  return outputs;
}

bool BoundOp::untouched() {
  for (const Buffer& output : own_outputs_) {
    std::vector<std::byte> bytes(output.bytes());
    backend_.download(bytes.data(), output.data(), bytes.size());
    if (!std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{kUnwritten}; })) return false;
  }
  return true;
}

bool is_capturable(const Backend& backend, const execution::Placement& placement, CheckCase& result) {
  const std::vector<std::string> chain = backend.chain();
  const auto lacks = [&](bool optional, std::string why) {
    result.verdict = Verdict::unsupported;
    result.optional = optional;
    result.detail = std::move(why);
    return false;
  };
  if (!backend.can_capture()) return lacks(true, "'" + chain.back() + "' captures no graphs");
  const std::string& server = chain[static_cast<std::size_t>(placement.level)];
  if (!backend.can_capture(placement.level)) {
    return lacks(true, "work of '" + server + "' on the host can't be captured by '" + chain.back() + "'");
  }
  if ((placement.flags & GPUNN_OP_CAPTURABLE) != 0) return true;
  return lacks(false, "'" + server + "' says that its kernel can't be captured, so that a step with it runs op by op");
}

}  // namespace gpunn::conformance
