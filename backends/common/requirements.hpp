// What the families of ops share. A file <family>.hpp beside this one has the functions that turn an OpDesc into the
// numbers that a kernel needs, for every backend of the project. The desc is as the op's row in op_list.inc declares,
// as plugin::Device sees to; what these functions refuse, by Refusal, is what the backends' kernels can't do.
#pragma once

#include <gpunn/kernel.hpp>

#include <cstdint>

namespace gpunn::backends {

using plugin::OpArgs;
using plugin::OpDesc;
using plugin::Refusal;

// What the tensors that an op's row calls "float" may be.
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

// Whether the activation at the end of a composite is ReLU and not none.
inline bool is_relu(int32_t activation) {
  require(activation == GPUNN_ACTIVATION_NONE || activation == GPUNN_ACTIVATION_RELU,
          "the activation is not one of none and relu");
  return activation == GPUNN_ACTIVATION_RELU;
}

}  // namespace gpunn::backends
