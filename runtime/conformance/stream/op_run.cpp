#include "conformance/stream/op_run.hpp"

#include <algorithm>

#include "execution/backend.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::Case;
using ops::encode;
using ops::Random;
using ops::ReferenceTensor;

namespace {

constexpr uint8_t kOpPoison = 0xC3;

std::vector<gpunn_tensor> tensors(const std::vector<TensorType>& types) {
  std::vector<gpunn_tensor> result;
  for (const TensorType& type : types) result.push_back(execution::abi_tensor(type, nullptr));
  return result;
}

}  // namespace

OpRun::OpRun(const Case& test, Workbench& bench, const std::string& label, int rounds)
    : signature_(test.signature),
      in_(tensors(signature_.inputs)),
      out_(tensors(signature_.outputs)),
      description_(signature_.op, signature_.attrs.data(), in_, out_, bench.options().precision, bench.wanted_kernel()),
      kernel_(bench.chain(), description_) {
  if (!kernel_.served()) return;
  const auto allocate = [&](uint64_t bytes) {
    return std::make_unique<RawMemory>(bench.chain().bottom(), GPUNN_MEMORY_DEVICE, std::max<uint64_t>(bytes, 1));
  };
  Random random(bench.options().seed, label + test.name), other(bench.options().seed, "stale" + label + test.name);
  const std::vector<ReferenceTensor> inputs = test.inputs(random), stale = test.inputs(other);
  expectation_ = expect_reference(signature_, inputs, bench.options().precision);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::byte> content = encode(inputs[i]);
    staged_.push_back(allocate(content.size()));
    staged_.back()->write(content);
    inputs_.push_back(allocate(content.size()));
    inputs_.back()->write(encode(stale[i]));
    in_[i].data = inputs_.back()->data();
  }
  const std::vector<int>& in_place = ops::op_info(signature_.op).in_place;
  for (std::size_t i = 0; i < out_.size(); ++i) {
    const int input = i < in_place.size() ? in_place[i] : -1;
    outputs_.push_back(input >= 0 ? nullptr : allocate(signature_.outputs[i].bytes()));
    out_[i].data = input >= 0 ? in_[static_cast<std::size_t>(input)].data : outputs_.back()->data();
  }
  results_.resize(static_cast<std::size_t>(rounds));
  for (std::vector<Memory>& round : results_) {
    for (const TensorType& type : signature_.outputs) round.push_back(allocate(type.bytes()));
  }
  workspace_ = allocate(kernel_.workspace_bytes());
}

void OpRun::enqueue(const RawStream& stream, const RawStream& wrapper, int round) {
  for (std::size_t i = 0; i < in_.size(); ++i) stream.copy(*inputs_[i], *staged_[i]);
  for (const Memory& output : outputs_) {
    if (output) stream.fill(*output, kOpPoison);
  }
  kernel_.enqueue(wrapper.get(), description_, *workspace_);
  const std::vector<Memory>& results = results_.at(static_cast<std::size_t>(round));
  for (std::size_t i = 0; i < out_.size(); ++i) {
    stream.copy(results[i]->data(), out_[i].data, signature_.outputs[i].bytes(), GPUNN_DEVICE_TO_DEVICE);
  }
}

std::string OpRun::fault(double& error, int round) const {
  const std::vector<Memory>& results = results_.at(static_cast<std::size_t>(round));
  for (std::size_t i = 0; i < out_.size(); ++i) {
    std::vector<std::byte> bytes(signature_.outputs[i].bytes());
    results[i]->read(bytes);
    if (std::string fault = expectation_.fault(i, bytes, error); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace gpunn::conformance
