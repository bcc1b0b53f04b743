#pragma once

#include <gpunn/plugin.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpunn::cuda_tiled {

// Builds new arguments for an op that runs as part of another.
template <std::size_t kInputs, std::size_t kOutputs>
class OpArguments {
 public:
  OpArguments(const std::array<const gpunn_tensor*, kInputs>& inputs,
              const std::array<const gpunn_tensor*, kOutputs>& outputs, void* workspace, uint64_t workspace_bytes)
      : inputs_(inputs), outputs_(outputs) {
    raw_.struct_size = sizeof(raw_);
    raw_.n_inputs = kInputs;
    raw_.n_outputs = kOutputs;
    raw_.inputs = inputs_.data();
    raw_.outputs = outputs_.data();
    raw_.workspace = workspace;
    raw_.workspace_bytes = workspace_bytes;
  }
  OpArguments(const OpArguments&) = delete;
  OpArguments& operator=(const OpArguments&) = delete;
  plugin::OpArgs get() const { return plugin::OpArgs(raw_); }

 private:
  std::array<const gpunn_tensor*, kInputs> inputs_;
  std::array<const gpunn_tensor*, kOutputs> outputs_;
  gpunn_op_args raw_{};
};

}  // namespace gpunn::cuda_tiled
