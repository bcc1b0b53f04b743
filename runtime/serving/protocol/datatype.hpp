#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpunn::serving {

// The protocol's names of dtypes: "FP32", "UINT8"; of BYTES there is none.
std::string_view datatype_of(DType type);
std::optional<DType> dtype_of(std::string_view datatype);
// The name in a model's configuration: "TYPE_FP32".
std::string config_type_of(DType type);
// Whether the protocol knows the name, even if gpunn does not serve it.
bool is_datatype(std::string_view datatype);

// Calls action(T()) for the C++ type of the elements. False for bf16 and f16, which have none: they travel as binary
// data.
template <class Action>
bool with_type(DType dtype, const Action& action) {
  switch (dtype) {
    case DType::f32:
      return action(float{}), true;
    case DType::f64:
      return action(double{}), true;
    case DType::i32:
      return action(int32_t{}), true;
    case DType::i64:
      return action(int64_t{}), true;
    case DType::u8:
      return action(uint8_t{}), true;
    default:
      return false;
  }
}

}  // namespace gpunn::serving
