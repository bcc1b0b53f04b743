#include "execution/steps/tensor_table.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

#include "execution/backend.hpp"

namespace gpunn::execution {

gpunn_tensor abi_tensor(const TensorType& type, void* data) {
  if (type.shape.size() > GPUNN_MAX_RANK) {
    throw Error("a tensor " + to_string(type) + " has " + std::to_string(type.shape.size()) +
                " dimensions; backends know at most " + std::to_string(GPUNN_MAX_RANK));
  }
  gpunn_tensor tensor{};
  tensor.struct_size = sizeof(tensor);
  tensor.dtype = static_cast<int32_t>(type.dtype);
  tensor.rank = static_cast<int32_t>(type.shape.size());
  tensor.data = data;
  std::ranges::copy(type.shape, tensor.dim);
  std::ranges::copy(strides_of(type), tensor.stride);
  return tensor;
}

int32_t abi_precision(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return GPUNN_PRECISION_FP32;
    case Precision::tf32:
    case Precision::f16:  // as many bits; of tensors that stay f32
      return GPUNN_PRECISION_TF32;
    case Precision::bf16:
      return GPUNN_PRECISION_BF16;
  }
  return GPUNN_PRECISION_FP32;
}

TensorTable::TensorTable(std::vector<gpunn_tensor> tensors) : tensors_(std::move(tensors)) { point(); }

TensorTable::TensorTable(const std::vector<TensorType>& types) {
  tensors_.reserve(types.size());
  for (const TensorType& type : types) tensors_.push_back(abi_tensor(type, nullptr));
  point();
}

void TensorTable::point() {
  pointers_.reserve(tensors_.size());
  for (const gpunn_tensor& tensor : tensors_) pointers_.push_back(&tensor);
}

OpArguments::OpArguments(std::vector<gpunn_tensor> inputs, std::vector<gpunn_tensor> outputs, void* workspace,
                         uint64_t workspace_bytes)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  args_.struct_size = sizeof(args_);
  args_.n_inputs = inputs_.size();
  args_.n_outputs = outputs_.size();
  args_.inputs = inputs_.pointers();
  args_.outputs = outputs_.pointers();
  args_.workspace = workspace;
  args_.workspace_bytes = workspace_bytes;
}

}  // namespace gpunn::execution
