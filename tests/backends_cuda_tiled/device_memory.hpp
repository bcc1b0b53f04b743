// Device memory for tests that call kernels directly.
#pragma once

#include <gpunn/plugin.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <cuda_runtime_api.h>

#include "catch.hpp"

struct Free {
  void operator()(void* data) const { cudaFree(data); }
};

// Device memory that begins as NaNs, with a border of them behind it that no kernel may write. What holds given values
// has none: a memory checker is to see every read beyond it.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : Memory(bytes, kBorder) {}
  explicit Memory(const std::vector<float>& values) : Memory(values.size() * sizeof(float), 1) {
    REQUIRE(cudaMemcpy(data_.get(), values.data(), bytes_, cudaMemcpyHostToDevice) == cudaSuccess);
  }
  void* data() const { return data_.get(); }
  std::vector<float> read(std::size_t count) const {
    std::vector<float> values(count);
    REQUIRE(cudaMemcpy(values.data(), data_.get(), count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }
  bool border_is_whole() const {
    std::array<unsigned char, kBorder> border{};
    REQUIRE(cudaMemcpy(border.data(), static_cast<char*>(data()) + bytes_, kBorder, cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return std::ranges::all_of(border, [](unsigned char byte) { return byte == 0xFF; });
  }

 private:
  Memory(std::size_t bytes, std::size_t border) : bytes_(bytes) {
    void* data = nullptr;
    REQUIRE(cudaMalloc(&data, bytes + border) == cudaSuccess);
    data_.reset(data);
    REQUIRE(cudaMemset(data, 0xFF, bytes + border) == cudaSuccess);
  }

  static constexpr std::size_t kBorder = 4096;
  std::unique_ptr<void, Free> data_;
  std::size_t bytes_;
};

// Calls run(args) with these tensors and waits for it. Nothing may be written beyond the outputs and the workspace.
template <class Run>
void run_on_device(const std::vector<const Memory*>& inputs, const std::vector<const Memory*>& outputs,
                   uint64_t workspace_bytes, const Run& run) {
  const Memory workspace(workspace_bytes);
  std::vector<gpunn_tensor> tensors(inputs.size() + outputs.size());
  std::vector<const gpunn_tensor*> pointers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].data = (i < inputs.size() ? inputs[i] : outputs[i - inputs.size()])->data();
    pointers.push_back(&tensors[i]);
  }
  gpunn_op_args args{};
  args.struct_size = sizeof(args);
  args.n_inputs = static_cast<uint32_t>(inputs.size());
  args.n_outputs = static_cast<uint32_t>(outputs.size());
  args.inputs = pointers.data();
  args.outputs = pointers.data() + inputs.size();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace_bytes;
  run(gpunn::plugin::OpArgs(args));
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(workspace.border_is_whole());
  for (const Memory* output : outputs) CHECK(output->border_is_whole());
}

inline std::vector<float> random_values(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}
