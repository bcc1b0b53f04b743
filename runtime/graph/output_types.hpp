#pragma once

#include <gpunn/op_signature.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "graph/attributes.hpp"

namespace gpunn::graph {

// The op's row of op_list.inc. Throws Error for an id that the catalogue lacks.
const ops::Op& op_row(int32_t op);

// What the op makes of these inputs. Throws Error on shapes that do not fit, with both.
std::vector<TensorType> output_types(const ops::Op& op, const Attributes& attrs, std::span<const TensorType> inputs);

}  // namespace gpunn::graph
