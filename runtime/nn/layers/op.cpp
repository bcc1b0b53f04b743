// Any op of the catalogue, and constants for it.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>

#include "config/values.hpp"
#include "graph/expressions.hpp"
#include "graph/op_attributes.hpp"
#include "graph/output_types.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using eager::AttributeKind;
using eager::AttributeValue;
using graph::Expressions;
using graph::ValueId;

[[noreturn]] void refuse(const std::string& name, const char* expected, const std::string& found) {
  fail("the attribute '" + name + "': expected " + expected + ", found '" + found + "'");
}

int64_t integer(const std::string& name, const std::string& text) {
  const std::optional<int64_t> value = config::integer_of(text);
  if (!value) refuse(name, "an integer", text);
  return *value;
}

double number(const std::string& name, const std::string& text) {
  const std::optional<double> value = config::number_of(text);
  if (!value) refuse(name, "a number", text);
  return *value;
}

template <class T>
AttributeValue one_or_list(const LayerParameter& given, T (*read)(const std::string&, const std::string&)) {
  if (given.values.size() == 1) return read(given.name, given.values.front());
  std::vector<T> values;
  for (const std::string& text : given.values) values.push_back(read(given.name, text));
  return values;
}

// In lists of sizes -1 is the size that the first input has there; lists are aligned from the end.
std::vector<int64_t> sizes(const LayerParameter& given, const Shape& x) {
  std::vector<int64_t> values;
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    const int64_t value = integer(given.name, given.values[i]);
    const int64_t dimension = std::ssize(x) - std::ssize(given.values) + static_cast<int64_t>(i);
    const bool is_same = value == -1 && dimension >= 0;
    values.push_back(is_same ? x[static_cast<std::size_t>(dimension)] : value);
  }
  return values;
}

AttributeValue value_of(const LayerParameter& given, AttributeKind kind, const Shape& x) {
  const std::string& first = given.values.front();
  switch (kind) {
    case AttributeKind::flag: {
      const std::optional<bool> value = config::boolean_of(first);
      if (!value) refuse(given.name, "true or false", first);
      return *value;
    }
    case AttributeKind::integer:
    case AttributeKind::axis:
    case AttributeKind::elements:
      return integer(given.name, first);
    case AttributeKind::number:
      return number(given.name, first);
    case AttributeKind::pair:
      return one_or_list(given, integer);
    case AttributeKind::numbers:
      return one_or_list(given, number);
    case AttributeKind::list:
      return sizes(given, x);
    case AttributeKind::axes: {
      std::vector<int64_t> axes;
      for (const std::string& text : given.values) axes.push_back(integer(given.name, text));
      return axes;
    }
    case AttributeKind::choice:
    case AttributeKind::dtype:
      break;
  }
  return first;
}

DType dtype_of(const LayerContext& c) {
  const std::string name = c.arguments.choice("dtype");
  return static_cast<DType>(std::ranges::find(ops::kDtypes, name, &ops::Dtype::name)->id);
}

ValueId any_op(const LayerContext& c) {
  const std::string name = c.arguments.choice("op");
  const int32_t id = graph::op_of_name(name);
  const ops::Signature& signature = graph::op_row(id).signature;
  for (const ops::Pattern& output : signature.outputs) {
    if (output.in_place >= 0) fail("the op " + name + " changes its input " + std::string(output.name) + " in place");
  }
  const std::vector<const graph::AttributeField*> fields = graph::attribute_fields(id);
  std::vector<eager::NamedAttribute> attributes;
  for (const LayerParameter& given : c.layer.parameters) {
    const bool is_own = given.name == "op" || given.name == "output" || (given.name == "dtype" && id == GPUNN_OP_COPY);
    if (is_own) continue;
    const auto field = std::ranges::find(fields, given.name, [](const auto* one) { return one->info.name; });
    // attributes_of() names what the op has.
    const AttributeKind kind = field == fields.end() ? AttributeKind::choice : (*field)->info.kind;
    attributes.emplace_back(given.name, value_of(given, kind, c.input_shape()));
  }
  Expressions e(c.graph, c.layer.name);
  if (id == GPUNN_OP_COPY) return e.converted(c.inputs[0], dtype_of(c));
  const std::vector<ValueId> outputs = e.outputs(id, c.inputs, graph::attributes_of(id, name, attributes));
  const int64_t wanted = c.arguments.integer("output");
  if (wanted >= std::ssize(outputs)) {
    fail("the op " + name + " has " + std::to_string(outputs.size()) + " outputs, there is no output " +
         std::to_string(wanted));
  }
  return outputs[static_cast<std::size_t>(wanted)];
}

ValueId constant(const LayerContext& c) {
  const Shape shape = c.arguments.list("shape");
  Shape whole = shape;
  whole.insert(whole.begin(), 1);
  if (whole.size() > GPUNN_MAX_RANK)
    fail("a sample has at most 7 dimensions, shape has " + std::to_string(shape.size()));
  const Parameter tensor{
      .name = "value", .shape = shape, .init = c.arguments.choice("init") == "ones" ? InitKind::ones : InitKind::zeros};
  return view(c, c.arguments.boolean("trained") ? c.parameter(tensor) : c.buffer(tensor), whole);
}

}  // namespace

LayerFunctions op_layers() { return {{"op", any_op}, {"constant", constant}}; }

}  // namespace gpunn::nn
