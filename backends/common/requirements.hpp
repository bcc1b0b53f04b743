// Checks that the op families share. A file <family>.hpp in this folder turns an OpDesc into the numbers that a kernel
// needs, for all backends of the project. plugin::Device has already checked the desc against the op's row in
// op_list.inc. These functions throw Refusal for shapes and types that the backends' kernels can't compute.
#pragma once

#include <gpunn/kernel.hpp>

#include <cstdint>

namespace gpunn::backends {

using plugin::OpArgs;
using plugin::OpDesc;
using plugin::Refusal;

// The dtypes allowed for tensors that an op's row calls "float".
enum class Dtypes { f32, floating };

// The layouts of images that a kernel takes.
enum class Layouts { packed, channels_last_too };

inline void require(bool holds, const char* otherwise) {
  if (!holds) throw Refusal(otherwise);
}

// The product of the sizes from dimension `first` on.
inline int64_t size_from(const gpunn_tensor& tensor, int32_t first) {
  int64_t size = 1;
  for (int32_t i = first; i < tensor.rank; ++i) size *= tensor.dim[i];
  return size;
}

// Whether the activation at the end of a composite is ReLU; otherwise it is none.
inline bool is_relu(int32_t activation) {
  require(activation == GPUNN_ACTIVATION_NONE || activation == GPUNN_ACTIVATION_RELU,
          "the activation is not one of none and relu");
  return activation == GPUNN_ACTIVATION_RELU;
}

}  // namespace gpunn::backends
