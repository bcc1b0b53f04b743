#pragma once

#include <gpunn/op_signature.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/attributes.hpp"

namespace gpunn::graph {

// The op's row of op_list.inc. Throws Error for an id that the catalogue lacks.
const ops::Op& op_row(int32_t op);
// The id of an op by its name in lower case, "conv2d". Throws Error for a name that the catalogue lacks.
int32_t op_of_name(std::string_view name);

// The output types of an op for these inputs. Throws Error, with both shapes, if they do not fit.
std::vector<TensorType> output_types(const ops::Op& op, const Attributes& attrs, std::span<const TensorType> inputs);

}  // namespace gpunn::graph
