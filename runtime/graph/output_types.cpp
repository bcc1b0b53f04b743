#include "graph/output_types.hpp"

#include <gpunn/error.hpp>
#include <gpunn/op_shapes.hpp>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace gpunn::graph {

const ops::Op& op_row(int32_t op) {
  const auto found = ops::all().find(op);
  if (found == ops::all().end()) throw Error("there is no op " + std::to_string(op) + " in the catalogue");
  return found->second;
}

int32_t op_of_name(std::string_view name) {
  const auto is_named = [&](std::string_view upper) {
    return std::ranges::equal(upper, name, {}, [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  };
  for (const auto& [id, op] : ops::all()) {
    if (is_named(op.name)) return id;
  }
  throw Error("there is no op '" + std::string(name) + "' in the catalogue");
}

std::vector<TensorType> output_types(const ops::Op& op, const Attributes& attrs, std::span<const TensorType> inputs) {
  std::vector<ops::Tensor> given;
  given.reserve(inputs.size());
  for (const TensorType& type : inputs) given.push_back({static_cast<int32_t>(type.dtype), type.shape});
  try {
    std::vector<TensorType> types;
    for (ops::Tensor& output : ops::outputs_of(op, attrs.data(), given)) {
      types.push_back({static_cast<DType>(output.dtype), std::move(output.shape)});
    }
    return types;
  } catch (const ops::Misfit& misfit) {
    throw Error(misfit.what());
  }
}

}  // namespace gpunn::graph
