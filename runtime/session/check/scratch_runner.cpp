#include "session/check/scratch_runner.hpp"

#include "execution/op_text.hpp"
#include "ops/values.hpp"

namespace gpunn::training {

using ops::ReferenceTensor;

ScratchRunner::Ready& ScratchRunner::kernel(std::size_t key, const graph::OpSignature& signature) {
  if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  const execution::Placement placement = backend_.place(signature);
  return kernels_.emplace(key, Ready{backend_.create(signature, placement), placement.workspace_bytes}).first->second;
}

std::byte* ScratchRunner::memory(uint64_t bytes) {
  if (buffer_.bytes() < bytes) {
    buffer_ = {};
    buffer_ = backend_.allocate(bytes);
  }
  return static_cast<std::byte*>(buffer_.data());
}

std::vector<ReferenceTensor> ScratchRunner::run(std::size_t key, const graph::OpSignature& signature,
                                                const std::vector<ReferenceTensor>& inputs,
                                                const std::vector<void*>& resident) {
  Ready& ready = kernel(key, signature);
  const uint64_t alignment = backend_.info().alignment;
  uint64_t end = 0;
  const auto place = [&](uint64_t bytes) {
    const uint64_t offset = (end + alignment - 1) / alignment * alignment;
    end = offset + bytes;
    return offset;
  };
  std::vector<uint64_t> input_offset, output_offset;
  for (const ReferenceTensor& input : inputs)
    input_offset.push_back(place(input.values.empty() ? 0 : input.type.bytes()));
  for (const TensorType& output : signature.outputs) output_offset.push_back(place(output.bytes()));
  const uint64_t workspace = place(ready.workspace_bytes);
  std::byte* const base = memory(end);

  std::vector<gpunn_tensor> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    void* address = resident[i];
    if (!inputs[i].values.empty()) {
      address = base + input_offset[i];
      const std::vector<std::byte> bytes = ops::encode(inputs[i]);
      backend_.upload(address, bytes.data(), bytes.size());
    }
    in.push_back(execution::abi_tensor(inputs[i].type, address));
  }
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    out.push_back(execution::abi_tensor(signature.outputs[i], base + output_offset[i]));
  }
  ready.kernel.enqueue(in, out, ready.workspace_bytes > 0 ? base + workspace : nullptr, execution::text_of(signature));
  backend_.synchronize();

  std::vector<ReferenceTensor> results;
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    std::vector<std::byte> bytes(signature.outputs[i].bytes());
    backend_.download(bytes.data(), base + output_offset[i], bytes.size());
    results.push_back(ops::decode(signature.outputs[i], bytes));
  }
  return results;
}

}  // namespace gpunn::training
