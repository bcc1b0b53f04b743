// What an op demands of its description. A file <family>.hpp beside this one checks the ops of a family once, for every
// backend of the project: its functions turn an OpDesc into the numbers that a kernel needs, or throw Refusal, whose
// text becomes the reason of Support::no.
#pragma once

#include <gpunn/plugin.hpp>

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace gpunn::backends {

using plugin::OpArgs;
using plugin::OpDesc;

// Why an op is not served; becomes the reason of Support::no.
class Refusal final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const char* otherwise) {
  if (!holds) throw Refusal(otherwise);
}

// Comes first in every plan: the counts of tensors, and that each is a tensor at all (known dtype, rank 0 to 8, sizes
// that are not negative and whose product does not overflow).
void require_tensors(const OpDesc& desc, std::size_t least_inputs, std::size_t most_inputs, std::size_t outputs);

// Packed row-major of that dtype. A tensor without elements is packed whatever its strides.
void require_packed(const gpunn_tensor& tensor, int32_t dtype, const char* name);
void require_shape(const gpunn_tensor& tensor, std::initializer_list<int64_t> shape, const char* name);
void require_same_shape(const gpunn_tensor& a, const gpunn_tensor& b, const char* names);

// A packed 0-d tensor of that dtype.
void require_scalar(const gpunn_tensor& tensor, int32_t dtype, const char* name);

bool same_shape(const gpunn_tensor& a, const gpunn_tensor& b);

// Bytes of an element; 0 for an unknown dtype.
std::size_t dtype_size(int32_t dtype);

const char* dtype_name(int32_t dtype);

// The op's attributes. Members that the host's older struct lacks are 0.
template <class Attrs>
Attrs require_attrs(const OpDesc& desc) {
  require(desc.raw().attrs != nullptr, "the attributes are missing");
  return desc.attrs<Attrs>();
}

}  // namespace gpunn::backends
