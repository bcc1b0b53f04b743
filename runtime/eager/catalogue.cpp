#include <gpunn/ops.h>
#include <gpunn/ops.hpp>

#include <algorithm>
#include <cctype>

#include "graph/op_attributes.hpp"
#include "ops/op.hpp"

namespace gpunn::eager {

namespace {

TensorInfo tensor_info(const ops::Pattern& pattern) {
  TensorInfo info{.name = std::string(pattern.name), .shape = {}, .dtypes = {}};
  for (const std::string_view size : pattern.sizes) info.shape += (info.shape.empty() ? "" : ", ") + std::string(size);
  if (pattern.rest) info.shape += info.shape.empty() ? "..." : ", ...";
  if (pattern.computed) info.shape = "?";
  for (const int32_t dtype : pattern.dtypes) info.dtypes.push_back(static_cast<DType>(dtype));
  info.floating = pattern.floating;
  info.optional = pattern.optional;
  info.repeated = pattern.repeated;
  info.in_place = pattern.in_place;
  info.may_alias = pattern.may_alias;
  return info;
}

// Of an element-wise op or an update.
std::string formula_of(int32_t op) {
  std::string_view body;
  switch (op) {
#define GPUNN_FORMULA(op, parameters, ...) \
  case GPUNN_OP_##op:                      \
    body = #__VA_ARGS__;                   \
    break;
#define GPUNN_UPDATE GPUNN_FORMULA
#define GPUNN_FORMULA_PART(name, parameters, ...)
#include <gpunn/op_formulas.inc>
#undef GPUNN_FORMULA
#undef GPUNN_UPDATE
#undef GPUNN_FORMULA_PART
    default:
      return {};
  }
  return std::string(body.substr(2, body.size() - 4));  // without its braces
}

OpDescription description_of(const ops::OpInfo& op) {
  OpDescription result{.id = op.id,
                       .name = std::string(op.name),
                       .signature = std::string(op.row->text),
                       .summary = std::string(op.row->summary),
                       .formula = formula_of(op.id),
                       .inputs = {},
                       .outputs = {},
                       .attributes = {}};
  std::ranges::transform(result.name, result.name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const ops::Pattern& pattern : op.row->signature.inputs) result.inputs.push_back(tensor_info(pattern));
  for (const ops::Pattern& pattern : op.row->signature.outputs) result.outputs.push_back(tensor_info(pattern));
  for (const graph::AttributeField* field : graph::attribute_fields(op.id)) result.attributes.push_back(field->info);
  // A composite that is no gradient itself is differentiated through its parts.
  const bool by_parts = op.composite && !op.name.ends_with("_BACKWARD");
  result.differentiable = op.gradient != nullptr || by_parts;
  return result;
}

}  // namespace

const std::vector<OpDescription>& catalogue() {
  static const std::vector<OpDescription> result = [] {
    std::vector<OpDescription> list;
    for (const ops::OpInfo* op : ops::all_ops()) list.push_back(description_of(*op));
    return list;
  }();
  return result;
}

}  // namespace gpunn::eager
