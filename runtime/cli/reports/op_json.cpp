// The catalogue of ops as JSON.
#include <gpunn/ops.hpp>

#include <limits>
#include <variant>

#include "cli/reports/json.hpp"

namespace gpunn::cli {

namespace {

Json tensor_json(const eager::TensorInfo& tensor) {
  Json dtypes = Json::array();
  for (const DType dtype : tensor.dtypes) dtypes.push_back(name_of(dtype));
  return {{"name", tensor.name},         {"shape", tensor.shape},       {"dtypes", std::move(dtypes)},
          {"floating", tensor.floating}, {"optional", tensor.optional}, {"repeated", tensor.repeated},
          {"in_place", tensor.in_place}};
}

// JSON has no infinities.
Json value_json(const eager::AttributeValue& value) {
  return std::visit(
      [](const auto& one) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, double>) {
          if (one == std::numeric_limits<double>::infinity()) return "inf";
          if (one == -std::numeric_limits<double>::infinity()) return "-inf";
        }
        return one;
      },
      value);
}

Json attribute_json(const eager::AttributeInfo& attribute) {
  return {{"name", attribute.name},
          {"kind", name_of(attribute.kind)},
          {"help", attribute.help},
          {"range", attribute.range},
          {"required", !attribute.fallback && attribute.same_as.empty()},
          {"default", attribute.fallback ? value_json(*attribute.fallback) : Json()},
          {"same_as", attribute.same_as},
          {"choices", attribute.choices}};
}

}  // namespace

Json to_json(const eager::OpDescription& op) {
  Json inputs = Json::array(), outputs = Json::array(), attributes = Json::array();
  for (const eager::TensorInfo& one : op.inputs) inputs.push_back(tensor_json(one));
  for (const eager::TensorInfo& one : op.outputs) outputs.push_back(tensor_json(one));
  for (const eager::AttributeInfo& one : op.attributes) attributes.push_back(attribute_json(one));
  return {{"id", op.id},
          {"name", op.name},
          {"signature", op.signature},
          {"summary", op.summary},
          {"formula", op.formula},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"attributes", std::move(attributes)},
          {"differentiable", op.differentiable}};
}

}  // namespace gpunn::cli
