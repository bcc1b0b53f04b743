#include "graph/graph.hpp"

#include <gpunn/error.hpp>

#include "graph/output_types.hpp"

namespace gpunn::graph {

std::string_view name_of(Storage storage) {
  switch (storage) {
    case Storage::arena:
      return "arena";
    case Storage::parameters:
      return "parameters";
    case Storage::gradients:
      return "gradients";
    case Storage::optimizer:
      return "optimizer";
    case Storage::state:
      return "state";
    case Storage::data:
      return "data";
  }
  return "?";
}

ValueId Graph::add_value(std::string name, TensorType type, Storage storage) {
  values_.push_back({.name = std::move(name), .type = std::move(type), .storage = storage});
  return static_cast<ValueId>(values_.size()) - 1;
}

ValueId Graph::add_view(std::string name, ValueId of, TensorType type, int64_t offset) {
  const Value& base = value(of);
  if (offset < 0 || offset + static_cast<int64_t>(type.bytes()) > static_cast<int64_t>(base.type.bytes())) {
    throw Error("view '" + name + "' of " + to_string(type) + " at byte " + std::to_string(offset) +
                " does not fit in '" + base.name + "' of " + to_string(base.type));
  }
  const Storage storage = base.storage;
  values_.push_back(
      {.name = std::move(name), .type = std::move(type), .storage = storage, .view_of = of, .view_offset = offset});
  return static_cast<ValueId>(values_.size()) - 1;
}

namespace {

std::vector<TensorType> types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorType> types;
  types.reserve(ids.size());
  for (const ValueId id : ids) types.push_back(graph.value(id).type);
  return types;
}

std::vector<TensorType> inferred_types(const Graph& graph, const ops::Op& row, const std::string& name,
                                       const Attributes& attrs, const std::vector<ValueId>& inputs) {
  try {
    return output_types(row, attrs, types_of(graph, inputs));
  } catch (const Error& error) {
    throw Error((name.empty() ? "" : "'" + name + "': ") + std::string(row.name) + ": " + error.what(), error.code());
  }
}

}  // namespace

std::vector<ValueId> Graph::add(int32_t op, std::string name, Attributes attrs, std::vector<ValueId> inputs) {
  const ops::Op& row = op_row(op);
  const std::vector<TensorType> types = inferred_types(*this, row, name, attrs, inputs);
  std::vector<ValueId> outputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const int in_place = row.signature.outputs.at(i).in_place;
    if (in_place >= 0) {
      outputs.push_back(inputs[static_cast<std::size_t>(in_place)]);
    } else {
      std::string value_name = name;
      if (types.size() > 1) value_name += ":" + std::to_string(i);
      outputs.push_back(add_value(std::move(value_name), types[i], Storage::arena));
    }
  }
  nodes_.push_back({op, std::move(name), std::move(attrs), std::move(inputs), outputs});
  return outputs;
}

ValueId Graph::add1(int32_t op, std::string name, Attributes attrs, std::vector<ValueId> inputs) {
  return add(op, std::move(name), std::move(attrs), std::move(inputs)).front();
}

void Graph::add_into(int32_t op, std::string name, Attributes attrs, std::vector<ValueId> inputs,
                     std::vector<ValueId> outputs) {
  const ops::Op& row = op_row(op);
  const std::vector<TensorType> inferred = inferred_types(*this, row, name, attrs, inputs);
  const std::vector<TensorType> given = types_of(*this, outputs);
  bool same = inferred.size() == given.size();
  for (std::size_t i = 0; same && i < inferred.size(); ++i) {
    // COPY converts: its output's type is the caller's choice.
    same = op == GPUNN_OP_COPY ? inferred[i].shape == given[i].shape : inferred[i] == given[i];
  }
  if (!same) {
    std::string expected, found;
    for (const TensorType& type : inferred) expected += " " + to_string(type);
    for (const TensorType& type : given) found += " " + to_string(type);
    throw Error("'" + name + "': " + std::string(row.name) + " makes" + expected + ", the given outputs are" + found);
  }
  nodes_.push_back({op, std::move(name), std::move(attrs), std::move(inputs), std::move(outputs)});
}

ValueId Graph::root(ValueId id) const {
  while (value(id).view_of != kNoValue) id = value(id).view_of;
  return id;
}

int64_t Graph::root_offset(ValueId id) const {
  int64_t offset = 0;
  while (value(id).view_of != kNoValue) {
    offset += value(id).view_offset;
    id = value(id).view_of;
  }
  return offset;
}

OpSignature Graph::signature(const Node& node) const {
  return {node.op, node.attrs, types_of(*this, node.inputs), types_of(*this, node.outputs)};
}

}  // namespace gpunn::graph
