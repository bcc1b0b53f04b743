#include "inference/engine_file/program_json.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "graph/output_types.hpp"
#include "inference/engine_file/type_json.hpp"
#include "ops/op.hpp"

namespace gpunn::inference {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::Value;
using graph::ValueId;

namespace {

constexpr std::array kStorages = {Storage::arena,     Storage::parameters, Storage::gradients,
                                  Storage::optimizer, Storage::state,      Storage::data};
constexpr std::size_t kMostAttributeBytes = 4096;
constexpr int kMostViews = 1000;  // of one another: each costs a step whenever a root is looked for

Storage storage_of(const std::string& name) {
  for (const Storage storage : kStorages) {
    if (graph::name_of(storage) == name) return storage;
  }
  throw Error("there is no storage " + in_quotes(name));
}

std::vector<uint8_t> bytes_of(const Attributes& attrs) {
  const auto* const first = static_cast<const uint8_t*>(attrs.data());
  return {first, first + attrs.size()};
}

Attributes attributes_of(const std::vector<uint8_t>& values) {
  if (values.empty()) return {};
  if (values.size() < sizeof(uint32_t) || values.size() > kMostAttributeBytes) {
    throw Error("an op has attributes of " + std::to_string(values.size()) + " bytes");
  }
  std::vector<std::byte> bytes;
  bytes.reserve(values.size());
  for (const uint8_t value : values) bytes.push_back(static_cast<std::byte>(value));
  return Attributes::of_struct(std::move(bytes));
}

Json value_json(const Value& value, int64_t offset) {
  return {{"name", value.name},       {"type", type_json(value.type)},    {"storage", graph::name_of(value.storage)},
          {"view_of", value.view_of}, {"view_offset", value.view_offset}, {"constant", value.constant},
          {"offset", offset}};
}

Json node_json(const Node& node, const execution::Placement& placement, int64_t workspace) {
  return {{"op", std::string(ops::op_info(node.op).name)},
          {"name", node.name},
          {"attrs", bytes_of(node.attrs)},
          {"inputs", node.inputs},
          {"outputs", node.outputs},
          {"level", placement.level},
          {"kernel", placement.kernel},
          {"flags", placement.flags},
          {"workspace_bytes", placement.workspace_bytes},
          {"workspace", workspace}};
}

// Makes value `id` the view that the file says. A view may be of a value that comes later in the file.
void read_view(const Json& json, ValueId id, Graph& g) {
  graph::Value& view = g.value(id);
  const auto of = json.at("view_of").get<ValueId>();
  if (of == kNoValue) return;
  if (of < 0 || static_cast<std::size_t>(of) >= g.values().size()) {
    throw Error("the view " + in_quotes(view.name) + " is of a value that is not there");
  }
  const auto offset = json.at("view_offset").get<int64_t>();
  const uint64_t room = g.value(of).type.bytes(), size = view.type.bytes();
  if (offset < 0 || size > room || static_cast<uint64_t>(offset) > room - size) {
    throw Error("the view " + in_quotes(view.name) + " lies outside of what it is of");
  }
  view.view_of = of;
  view.view_offset = offset;
}

void require_roots(const Graph& g) {
  for (ValueId id = 0; id < static_cast<ValueId>(g.values().size()); ++id) {
    int steps = 0;
    for (ValueId of = id; of != kNoValue; of = g.value(of).view_of) {
      if (++steps > kMostViews) {
        throw Error("the view " + in_quotes(g.value(id).name) + " is of itself, or of too many others");
      }
    }
  }
}

void read_values(const Json& values, execution::CompiledProgram& program) {
  Graph& g = program.graph;
  for (const Json& json : values) {
    const ValueId id = g.add_value(json.at("name").get<std::string>(), type_of(json.at("type")),
                                   storage_of(json.at("storage").get<std::string>()));
    g.value(id).constant = json.at("constant").get<bool>();
    program.plan.value_offset.push_back(json.at("offset").get<int64_t>());
  }
  ValueId id = 0;
  for (const Json& json : values) read_view(json, id++, g);
  require_roots(g);
}

std::vector<ValueId> ids_of(const Json& json, const Graph& g) {
  auto ids = json.get<std::vector<ValueId>>();
  for (const ValueId id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= g.values().size())
      throw Error("an op uses a value that is not there");
  }
  return ids;
}

// Throws where the op makes something else of its inputs than its outputs are. How they lie is the planner's choice.
void require_types(const Graph& g, const Node& node) {
  const auto packed = [&](ValueId id) {
    TensorType type = g.value(id).type;
    type.layout = Layout::packed;
    return type;
  };
  std::vector<TensorType> inputs, found;
  std::ranges::transform(node.inputs, std::back_inserter(inputs), packed);
  std::ranges::transform(node.outputs, std::back_inserter(found), packed);
  const std::vector<TensorType> expected = graph::output_types(graph::op_row(node.op), node.attrs, inputs);
  const auto fits = [&](const TensorType& mine, const TensorType& made) {
    return mine.shape == made.shape && (mine.dtype == made.dtype || node.op == GPUNN_OP_COPY);
  };
  if (!std::ranges::equal(found, expected, fits)) {
    throw Error("the op " + in_quotes(node.name) + " makes something else than its outputs are");
  }
}

void read_nodes(const Json& nodes, execution::CompiledProgram& program) {
  for (const Json& json : nodes) {
    const auto op = json.at("op").get<std::string>();
    const ops::OpInfo* const info = ops::find_op(op);
    if (info == nullptr) throw Error("there is no op " + in_quotes(op));
    Node node{.op = info->id,
              .name = json.at("name").get<std::string>(),
              .attrs = attributes_of(json.at("attrs").get<std::vector<uint8_t>>()),
              .inputs = ids_of(json.at("inputs"), program.graph),
              .outputs = ids_of(json.at("outputs"), program.graph)};
    require_types(program.graph, node);
    program.graph.nodes().push_back(std::move(node));
    execution::Placement placement;
    placement.level = json.at("level").get<int>();
    placement.kernel = json.at("kernel").get<std::string>();
    placement.flags = json.at("flags").get<uint32_t>();
    placement.workspace_bytes = json.at("workspace_bytes").get<uint64_t>();
    program.placements.push_back(std::move(placement));
    program.plan.workspace_offset.push_back(json.at("workspace").get<int64_t>());
  }
}

void read_subgraphs(const Json& subgraphs, execution::CompiledProgram& program) {
  std::size_t end = 0;
  for (const Json& json : subgraphs) {
    execution::Subgraph one;
    one.nodes = {json.at("first").get<std::size_t>(), json.at("count").get<std::size_t>()};
    const std::size_t nodes = program.graph.nodes().size();
    if (one.nodes.first < end || one.nodes.count < 1 || one.nodes.count > nodes ||
        one.nodes.first > nodes - one.nodes.count) {
      throw Error("a fused subgraph is not of ops of the program");
    }
    end = one.nodes.end();
    one.level = json.at("level").get<int>();
    one.workspace_bytes = json.at("workspace_bytes").get<uint64_t>();
    one.flags = json.at("flags").get<uint32_t>();
    one.name = json.at("name").get<std::string>();
    program.subgraphs.taken.push_back(std::move(one));
  }
}

}  // namespace

Json to_json(const execution::CompiledProgram& program) {
  const Graph& g = program.graph;
  Json values = Json::array(), nodes = Json::array(), subgraphs = Json::array(), blocks = Json::array();
  for (std::size_t v = 0; v < g.values().size(); ++v) {
    values.push_back(value_json(g.value(static_cast<ValueId>(v)), program.plan.value_offset[v]));
  }
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    nodes.push_back(node_json(g.nodes()[n], program.placements[n], program.plan.workspace_offset[n]));
  }
  for (const execution::Subgraph& one : program.subgraphs.taken) {
    subgraphs.push_back({{"first", one.nodes.first},
                         {"count", one.nodes.count},
                         {"level", one.level},
                         {"workspace_bytes", one.workspace_bytes},
                         {"flags", one.flags},
                         {"name", one.name}});
  }
  for (const compiler::ArenaBlock& block : program.plan.blocks) {
    blocks.push_back({block.value, block.offset, block.bytes, block.first, block.last});
  }
  return {{"arena_bytes", program.plan.arena_bytes},
          {"values", std::move(values)},
          {"nodes", std::move(nodes)},
          {"subgraphs", std::move(subgraphs)},
          {"blocks", std::move(blocks)}};
}

execution::CompiledProgram program_of(const Json& json) {
  execution::CompiledProgram program;
  program.plan.arena_bytes = json.at("arena_bytes").get<uint64_t>();
  read_values(json.at("values"), program);
  read_nodes(json.at("nodes"), program);
  read_subgraphs(json.at("subgraphs"), program);
  const auto is_index = [](int64_t index, std::size_t count) {
    return index >= 0 && static_cast<std::size_t>(index) < count;
  };
  for (const Json& block : json.at("blocks")) {
    const compiler::ArenaBlock one{.value = block.at(0).get<ValueId>(),
                                   .offset = block.at(1).get<uint64_t>(),
                                   .bytes = block.at(2).get<uint64_t>(),
                                   .first = block.at(3).get<int32_t>(),
                                   .last = block.at(4).get<int32_t>()};
    if ((one.value != kNoValue && !is_index(one.value, program.graph.values().size())) ||
        !is_index(one.first, program.graph.nodes().size()) || !is_index(one.last, program.graph.nodes().size())) {
      throw Error("a block of the arena is of no value or op of the program");
    }
    program.plan.blocks.push_back(one);
  }
  return program;
}

}  // namespace gpunn::inference
