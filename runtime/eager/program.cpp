#include "eager/program.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <utility>

#include "compiler/autodiff.hpp"
#include "compiler/decompose.hpp"
#include "graph/op_attributes.hpp"
#include "ops/op.hpp"

namespace gpunn::eager {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::ValueId;

namespace {

std::string lower_case(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Packed types alone: the catalogue knows no layouts.
std::vector<TensorType> packed(std::span<const TensorType> types) {
  std::vector<TensorType> result(types.begin(), types.end());
  for (TensorType& type : result) type.layout = Layout::packed;
  return result;
}

std::vector<TensorType> inferred_outputs(const ops::OpInfo& info, const graph::Attributes& attrs,
                                         std::span<const TensorType> inputs) {
  try {
    return info.infer(attrs, packed(inputs));
  } catch (const Error& error) {
    throw Error(lower_case(info.name) + ": " + error.what(), ExitCode::usage);
  }
}

bool fits(const TensorType& found, const TensorType& expected) {
  return found.dtype == expected.dtype && found.shape == expected.shape;
}

[[noreturn]] void throw_misfit(const ops::OpInfo& info, const std::string& what, const TensorType& expected,
                               const TensorType& found) {
  throw Error(lower_case(info.name) + ": " + what + " must be " +
                  to_string(TensorType{expected.dtype, expected.shape}) + ", is " +
                  to_string(TensorType{found.dtype, found.shape}),
              ExitCode::usage);
}

std::vector<ValueId> add_externals(Program& program, const std::string& name, std::span<const TensorType> types) {
  std::vector<ValueId> ids;
  for (const TensorType& type : types) {
    ids.push_back(program.graph.add_value(name + std::to_string(ids.size()), type, Storage::state));
    program.externals.push_back(ids.back());
  }
  return ids;
}

void find_touched(Program& program) {
  std::set<ValueId> read, written;
  for (const Node& node : program.graph.nodes()) {
    for (const ValueId id : node.inputs) read.insert(program.graph.root(id));
    for (const ValueId id : node.outputs) written.insert(program.graph.root(id));
  }
  for (const ValueId id : program.externals) {
    program.written.push_back(written.contains(id));
    program.read.push_back(read.contains(id));
  }
}

// Keeps the nodes that the values of `wanted` need. What is given need not be computed.
void drop_unneeded(Graph& graph, const std::vector<ValueId>& wanted, const std::set<ValueId>& given) {
  std::set<ValueId> needed;
  for (const ValueId id : wanted) needed.insert(graph.root(id));
  std::vector<Node> kept;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    Node& node = graph.nodes()[n];
    const bool is_needed =
        std::ranges::any_of(node.outputs, [&](ValueId id) { return needed.contains(graph.root(id)); });
    if (!is_needed) continue;
    for (const ValueId id : node.inputs) {
      if (!given.contains(graph.root(id))) needed.insert(graph.root(id));
    }
    kept.push_back(std::move(node));
  }
  std::ranges::reverse(kept);
  graph.nodes() = std::move(kept);
}

// Has the value computed in the memory of `external`, or copied there.
void deliver(Graph& graph, std::vector<ValueId>& made, std::size_t which, ValueId external) {
  const ValueId from = made[which];
  const graph::Value& value = graph.value(from);
  const auto writers = std::ranges::count_if(
      graph.nodes(), [&](const Node& node) { return std::ranges::count(node.outputs, from) != 0; });
  const auto in_place = std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return std::ranges::count(node.outputs, from) != 0 && std::ranges::count(node.inputs, from) != 0;
  });
  const bool viewed = std::ranges::count(graph.values(), from, &graph::Value::view_of) != 0;
  const bool turned = viewed && graph.value(external).type.layout != Layout::packed;
  const bool own = !turned && value.storage == Storage::arena && value.view_of == kNoValue && writers == 1 &&
                   !in_place && value.type.dtype == graph.value(external).type.dtype;
  if (!own) {
    graph.add_into(GPUNN_OP_COPY, "gradient", {}, {from}, {external});
    return;
  }
  for (Node& node : graph.nodes()) {
    std::ranges::replace(node.inputs, from, external);
    std::ranges::replace(node.outputs, from, external);
  }
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
    if (graph.value(id).view_of != from) continue;
    graph.value(id).view_of = external;
    graph.value(id).storage = Storage::state;
  }
  std::ranges::replace(made, from, external);
}

// A view tells of bytes in the order of packed tensors: images that lie channels-last are copied for it.
void pack_viewed(Program& program) {
  Graph& graph = program.graph;
  std::vector<Node> copies;
  for (const ValueId external : program.externals) {
    if (graph.value(external).type.layout == Layout::packed) continue;
    if (std::ranges::count(graph.values(), external, &graph::Value::view_of) == 0) continue;
    const TensorType type{graph.value(external).type.dtype, graph.value(external).type.shape};
    const ValueId copy = graph.add_value(graph.value(external).name + ".packed", type, Storage::arena);
    copies.push_back({.op = GPUNN_OP_COPY, .name = "packed", .attrs = {}, .inputs = {external}, .outputs = {copy}});
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
      if (graph.value(id).view_of != external) continue;
      graph.value(id).view_of = copy;
      graph.value(id).storage = Storage::arena;
    }
  }
  graph.nodes().insert(graph.nodes().begin(), copies.begin(), copies.end());
}

}  // namespace

graph::Attributes settled_attributes(int32_t op, const graph::Attributes& attrs, std::span<const TensorType> inputs) {
  for (const graph::AttributeField* field : graph::attribute_fields(op)) {
    if (field->info.kind != AttributeKind::elements || inputs.empty()) continue;
    std::vector<std::byte> bytes(attrs.size());
    std::memcpy(bytes.data(), attrs.data(), attrs.size());
    int64_t value = 0;
    std::memcpy(&value, bytes.data() + field->offset, sizeof(value));
    if (value >= 0) continue;
    value = inputs[0].elements();
    std::memcpy(bytes.data() + field->offset, &value, sizeof(value));
    return graph::Attributes::of_struct(std::move(bytes));
  }
  return attrs;
}

Program op_program(int32_t op, const graph::Attributes& attrs, std::span<const TensorType> inputs,
                   std::span<const TensorType> outputs) {
  const ops::OpInfo& info = ops::op_info(op);
  const graph::Attributes settled = settled_attributes(op, attrs, inputs);
  const std::vector<TensorType> expected = inferred_outputs(info, settled, inputs);
  Program program;
  const std::vector<ValueId> in = add_externals(program, "input", inputs);
  const std::vector<ValueId> given = add_externals(program, "output", outputs);
  Node node{.op = op, .name = lower_case(info.name), .attrs = settled, .inputs = in, .outputs = {}};
  std::size_t next = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (info.in_place[i] >= 0) {
      node.outputs.push_back(in[static_cast<std::size_t>(info.in_place[i])]);
      continue;
    }
    if (next == given.size()) break;
    const TensorType& found = outputs[next];
    const bool converts = op == GPUNN_OP_COPY && found.shape == expected[i].shape;
    if (!fits(found, expected[i]) && !converts) {
      throw_misfit(info, "the output " + std::string(info.row->signature.outputs[i].name), expected[i], found);
    }
    node.outputs.push_back(given[next++]);
  }
  if (node.outputs.size() != expected.size() || next != given.size()) {
    const auto in_place = static_cast<std::size_t>(std::count_if(
        info.in_place.begin(), info.in_place.begin() + std::ssize(expected), [](int i) { return i >= 0; }));
    throw Error(lower_case(info.name) + ": takes " + std::to_string(expected.size() - in_place) +
                    " outputs that are not in place, found " + std::to_string(outputs.size()),
                ExitCode::usage);
  }
  program.graph.nodes().push_back(std::move(node));
  find_touched(program);
  return program;
}

Program gradient_program(int32_t op, const graph::Attributes& attrs, const TensorType& cotangent,
                         std::span<const TensorType> inputs, std::span<const TensorType> outputs,
                         const std::vector<bool>& wanted, std::span<const TensorType> gradients) {
  const ops::OpInfo& info = ops::op_info(op);
  const std::string name = lower_case(info.name);
  const graph::Attributes settled = settled_attributes(op, attrs, inputs);
  const std::vector<TensorType> expected = inferred_outputs(info, settled, inputs);
  if (wanted.size() != inputs.size() || outputs.size() != expected.size()) {
    throw Error(name + ": a gradient takes " + std::to_string(expected.size()) + " outputs and says for each of " +
                    std::to_string(inputs.size()) + " inputs whether it is wanted; found " +
                    std::to_string(outputs.size()) + " and " + std::to_string(wanted.size()),
                ExitCode::usage);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!fits(outputs[i], expected[i])) throw_misfit(info, "output " + std::to_string(i), expected[i], outputs[i]);
  }
  if (!fits(cotangent, expected.at(0))) throw_misfit(info, "the cotangent", expected[0], cotangent);

  Program program;
  Graph& graph = program.graph;
  const ValueId dy = add_externals(program, "cotangent", {&cotangent, 1}).front();
  const std::vector<ValueId> in = add_externals(program, "input", inputs);
  std::vector<ValueId> out = add_externals(program, "output", outputs);
  Node node{.op = op, .name = name, .attrs = settled, .inputs = in, .outputs = out};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (info.in_place[i] >= 0) node.outputs[i] = in[static_cast<std::size_t>(info.in_place[i])];
  }
  if (info.gradient != nullptr) {
    graph.nodes().push_back(node);
  } else if (!compiler::append_parts(graph, node)) {
    throw Error(name + ": has no gradient", ExitCode::usage);
  }

  std::vector<ValueId> targets, to;
  std::size_t next = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!wanted[i]) continue;
    targets.push_back(in[i]);
    if (next == gradients.size()) break;
    if (!fits(gradients[next], inputs[i])) {
      throw_misfit(info, "the gradient of input " + std::to_string(i), inputs[i], gradients[next]);
    }
    ++next;
  }
  if (next != gradients.size() || targets.size() != gradients.size()) {
    throw Error(name + ": as many gradients as are wanted must be given, found " + std::to_string(gradients.size()),
                ExitCode::usage);
  }
  to = add_externals(program, "gradient", gradients);
  std::vector<ValueId> made;
  try {
    made = compiler::add_gradients(graph, std::vector<compiler::Cotangent>{{node.outputs[0], dy}}, targets);
  } catch (const Error& error) {
    throw Error(error.what(), ExitCode::usage);
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] == kNoValue) {
      const auto input = static_cast<std::size_t>(std::ranges::find(in, targets[i]) - in.begin());
      throw Error(name + ": has no gradient for its input " + std::string(info.row->signature.input(input).name),
                  ExitCode::usage);
    }
    deliver(graph, made, i, to[i]);
  }
  std::set<ValueId> given(in.begin(), in.end());
  given.insert(out.begin(), out.end());
  given.insert(dy);
  drop_unneeded(graph, to, given);
  pack_viewed(program);
  find_touched(program);
  return program;
}

}  // namespace gpunn::eager
