#pragma once

#include <gpunn/abi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::execution {

// Tensors and the array of pointers to them that crosses the ABI. Moving keeps the pointers valid.
class TensorTable {
 public:
  TensorTable() = default;
  explicit TensorTable(std::vector<gpunn_tensor> tensors);
  // Types alone: data is NULL.
  explicit TensorTable(const std::vector<TensorType>& types);
  TensorTable(TensorTable&&) noexcept = default;
  TensorTable& operator=(TensorTable&&) noexcept = default;
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;
  ~TensorTable() = default;

  const gpunn_tensor* const* pointers() const { return pointers_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(tensors_.size()); }

 private:
  void point();
  std::vector<gpunn_tensor> tensors_;
  std::vector<const gpunn_tensor*> pointers_;
};

// The arguments of one enqueue, built once and used at each step.
class OpArguments {
 public:
  OpArguments(std::vector<gpunn_tensor> inputs, std::vector<gpunn_tensor> outputs, void* workspace,
              uint64_t workspace_bytes);
  const gpunn_op_args& get() const { return args_; }

 private:
  TensorTable inputs_, outputs_;
  gpunn_op_args args_{};
};

}  // namespace gpunn::execution
