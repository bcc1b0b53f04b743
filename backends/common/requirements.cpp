#include "common/requirements.hpp"

#include <limits>

namespace gpunn::backends {
namespace {

std::string shape_text(const gpunn_tensor& tensor) {
  std::string text = "[";
  for (int32_t i = 0; i < tensor.rank; ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.dim[i]);
  return text + "]";
}

void require_tensor(const gpunn_tensor* tensor, const std::string& name) {
  if (tensor == nullptr) throw Refusal(name + " is missing");
  if (dtype_size(tensor->dtype) == 0) throw Refusal(name + " has unknown dtype " + std::to_string(tensor->dtype));
  if (tensor->rank < 0 || tensor->rank > GPUNN_MAX_RANK) {
    throw Refusal(name + " has rank " + std::to_string(tensor->rank) + ", not 0 to 8");
  }
  // Of the sizes that are not 0, so that no partial product overflows either.
  constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max() / 16;
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    const int64_t dim = tensor->dim[i];
    if (dim < 0) throw Refusal(name + " has a negative size: " + shape_text(*tensor));
    if (dim == 0) continue;
    if (count > kMostElements / dim) throw Refusal(name + " is too large: " + shape_text(*tensor));
    count *= dim;
  }
}

}  // namespace

std::size_t dtype_size(int32_t dtype) {
  switch (dtype) {
    case GPUNN_F64:
    case GPUNN_I64:
      return 8;
    case GPUNN_F32:
    case GPUNN_I32:
      return 4;
    case GPUNN_BF16:
    case GPUNN_F16:
      return 2;
    case GPUNN_U8:
      return 1;
    default:
      return 0;
  }
}

const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case GPUNN_F32:
      return "f32";
    case GPUNN_BF16:
      return "bf16";
    case GPUNN_F16:
      return "f16";
    case GPUNN_F64:
      return "f64";
    case GPUNN_I32:
      return "i32";
    case GPUNN_I64:
      return "i64";
    case GPUNN_U8:
      return "u8";
    default:
      return "unknown";
  }
}

void require_tensors(const OpDesc& desc, std::size_t least_inputs, std::size_t most_inputs, std::size_t outputs) {
  if (desc.inputs() < least_inputs || desc.inputs() > most_inputs) {
    std::string expected = std::to_string(least_inputs);
    if (most_inputs != least_inputs) expected += " to " + std::to_string(most_inputs);
    throw Refusal("takes " + expected + " inputs, not " + std::to_string(desc.inputs()));
  }
  if (desc.outputs() != outputs) {
    throw Refusal("has " + std::to_string(outputs) + " outputs, not " + std::to_string(desc.outputs()));
  }
  require(desc.inputs() == 0 || desc.raw().inputs != nullptr, "the inputs are missing");
  require(desc.outputs() == 0 || desc.raw().outputs != nullptr, "the outputs are missing");
  for (std::size_t i = 0; i < desc.inputs(); ++i) require_tensor(desc.raw().inputs[i], "input " + std::to_string(i));
  for (std::size_t i = 0; i < desc.outputs(); ++i) require_tensor(desc.raw().outputs[i], "output " + std::to_string(i));
}

void require_packed(const gpunn_tensor& tensor, int32_t dtype, const char* name) {
  if (tensor.dtype != dtype) {
    throw Refusal(std::string(name) + " must be " + dtype_name(dtype) + ", not " + dtype_name(tensor.dtype));
  }
  if (plugin::element_count(tensor) != 0 && !plugin::is_packed(tensor)) {
    throw Refusal(std::string(name) + " must be packed row-major");
  }
}

bool same_shape(const gpunn_tensor& a, const gpunn_tensor& b) {
  return a.rank == b.rank && std::equal(a.dim, a.dim + a.rank, b.dim);
}

void require_shape(const gpunn_tensor& tensor, std::initializer_list<int64_t> shape, const char* name) {
  gpunn_tensor expected{};
  expected.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), expected.dim);
  if (!same_shape(tensor, expected)) {
    throw Refusal(std::string(name) + " must be " + shape_text(expected) + ", not " + shape_text(tensor));
  }
}

void require_same_shape(const gpunn_tensor& a, const gpunn_tensor& b, const char* names) {
  if (!same_shape(a, b)) {
    throw Refusal(std::string(names) + " must have one shape, not " + shape_text(a) + " and " + shape_text(b));
  }
}

void require_scalar(const gpunn_tensor& tensor, int32_t dtype, const char* name) {
  require_packed(tensor, dtype, name);
  if (tensor.rank != 0) throw Refusal(std::string(name) + " must be 0-d, not " + shape_text(tensor));
}

}  // namespace gpunn::backends
