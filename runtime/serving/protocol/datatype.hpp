#pragma once

#include <gpunn/tensor_type.hpp>

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

}  // namespace gpunn::serving
