// Whether the programs of an engine file can run on a backend: what a wrong file could otherwise do to memory.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "common/text.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "program/programs.hpp"
#include "session/memory_check.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::kNoValue;
using graph::Storage;
using graph::Value;
using graph::ValueId;

namespace {

constexpr int64_t kMostRows = int64_t{1} << 20;  // of a model's max_batch

// Variables by name, as all programs and the file's arrays have to agree on them.
class VariableTypes {
 public:
  void add(const std::string& name, const TensorType& type) {
    const auto [known, added] = types_.try_emplace(name, type);
    if (added) {
      bytes_ += type.bytes();
    } else if (!(known->second == type)) {
      throw Error("the variable " + in_quotes(name) + " is " + to_string(type) + " in one place and " +
                  to_string(known->second) + " in another");
    }
  }
  uint64_t bytes() const { return bytes_; }

 private:
  std::map<std::string, TensorType> types_;
  uint64_t bytes_ = 0;  // each is below 2^46, so that a file has too few to exceed 64 bits
};

bool fits(int64_t offset, uint64_t bytes, uint64_t room) {
  return offset >= 0 && bytes <= room && static_cast<uint64_t>(offset) <= room - bytes;
}

// The variables that a context makes itself.
void add_own_variables(const SavedEngine& engine, const ForwardModel& model, VariableTypes& variables) {
  if (model.layout.total > 0) variables.add(training::variable::kParameters, model.layout.type());
  if (model.buffers.total > 0) variables.add(training::variable::kBuffers, model.buffers.type());
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const TensorType channels{DType::f32, {std::ssize(model.inputs[i].mean)}};
    if (!model.inputs[i].is_normalised()) continue;
    variables.add(variable::numbered(training::variable::kScale, i), channels);
    variables.add(variable::numbered(training::variable::kShift, i), channels);
  }
  for (const storage::StoredTensor& constant : engine.weights.constants) variables.add(constant.name, constant.type);
}

void require_weights(const Weights& weights, const ForwardModel& model) {
  const auto require = [](const char* what, const std::vector<float>& values, int64_t expected) {
    if (std::ssize(values) == expected) return;
    throw Error(std::string(what) + " are " + std::to_string(values.size()) + " numbers, and its model has " +
                std::to_string(expected));
  };
  std::ptrdiff_t channels = 0;
  for (const ForwardInput& input : model.inputs) channels += std::ssize(input.mean);
  require("its parameters", weights.parameters, model.layout.total);
  require("its buffers", weights.buffers, model.buffers.total);
  require("its scales", weights.scale, channels);
  require("its shifts", weights.shift, channels);
}

// A program has what a context binds, of the types that the model's layers lead to.
void require_outputs(const Graph& program, const Graph& expected, const ForwardModel& model) {
  const auto require = [&](const std::string& name, Storage storage, const TensorType& type) {
    const ValueId id = find_variable(program, name, storage);
    if (id == kNoValue) throw Error("a program has no variable " + in_quotes(name));
    const TensorType& found = program.value(id).type;
    if (found == type) return;
    throw Error("a program's " + in_quotes(name) + " is " + to_string(found) + ", and its model's is " +
                to_string(type));
  };
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    require(variable::numbered(variable::kInput, i), Storage::data,
            forward_rows(model.inputs[i].sample, model.max_batch));
  }
  if (std::ranges::any_of(model.inputs, &ForwardInput::is_normalised)) {
    require(variable::kRows, Storage::data, {DType::i32, {model.max_batch}});
  }
  for (const std::string& output : model.output_variables()) {
    require(output, Storage::state, forward_rows(output_row(expected, output), model.max_batch));
  }
}

void require_memory_of_values(const execution::CompiledProgram& program, uint64_t alignment, VariableTypes& variables) {
  const Graph& g = program.graph;
  for (std::size_t v = 0; v < g.values().size(); ++v) {
    const Value& value = g.values()[v];
    const auto refuse = [&](const char* why) { throw Error("the value " + in_quotes(value.name) + " " + why); };
    const ValueId root = g.root(static_cast<ValueId>(v));
    const Storage storage = g.value(root).storage;
    if (static_cast<uint64_t>(g.root_offset(static_cast<ValueId>(v))) % size_of(value.type.dtype) != 0) {
      refuse("begins within an element");
    }
    if (storage != Storage::arena) {
      if (storage == Storage::gradients || storage == Storage::optimizer) refuse("is of a training");
      if (value.view_of == kNoValue) variables.add(value.name, value.type);
      continue;
    }
    const int64_t place = program.plan.value_offset[v];
    if (place < 0) continue;  // it has no memory
    if (!fits(place, value.type.bytes(), program.plan.arena_bytes)) refuse("is planned beyond the end of the arena");
    const int64_t of_root = program.plan.value_offset[static_cast<std::size_t>(root)];
    if (value.view_of == kNoValue ? static_cast<uint64_t>(place) % alignment != 0
                                  : of_root < 0 || place - of_root != g.root_offset(static_cast<ValueId>(v))) {
      refuse("is planned where no value of its kind can lie");
    }
  }
}

void require_workspaces(const execution::CompiledProgram& program, uint64_t alignment) {
  const auto require = [&](std::size_t node, uint64_t bytes) {
    const int64_t place = program.plan.workspace_offset[node];
    if (bytes == 0) return;
    if (fits(place, bytes, program.plan.arena_bytes) && static_cast<uint64_t>(place) % alignment == 0) return;
    throw Error("the op " + in_quotes(program.graph.nodes()[node].name) +
                " has its scratch memory beyond the end of the arena");
  };
  auto fused = program.subgraphs.taken.begin();
  for (std::size_t node = 0; node < program.placements.size(); ++node) {
    if (fused != program.subgraphs.taken.end() && fused->nodes.first == node) {
      require(node, fused->workspace_bytes);
      node = fused->nodes.end() - 1;
      ++fused;
    } else {
      require(node, program.placements[node].workspace_bytes);
    }
  }
}

}  // namespace

void require_runnable(const SavedEngine& engine, const ForwardModel& model, const execution::Backend& backend) {
  if (engine.max_batch() > kMostRows) throw Error("a program is for " + std::to_string(engine.max_batch()) + " rows");
  require_weights(engine.weights, model);
  const Graph expected = forward_program(model, 1, BatchNorms::kept).graph;
  VariableTypes variables;
  add_own_variables(engine, model, variables);
  const auto alignment = static_cast<uint64_t>(engine.target.alignment);
  uint64_t arena = 0;
  for (const auto& [rows, program] : engine.programs) {
    require_outputs(program.graph, expected, model);
    require_memory_of_values(program, alignment, variables);
    require_workspaces(program, alignment);
    backend.require_workspaces(program.graph, program.subgraphs.taken);
    arena = std::max(arena, program.plan.arena_bytes);
  }
  const uint64_t free = training::with_host_limits(backend.info()).free_bytes;
  if (free > 0 && (arena > free || variables.bytes() > free - arena)) {
    throw execution::OutOfMemory("it needs " + human_bytes(variables.bytes()) + " of device memory for variables and " +
                                 human_bytes(arena) + " for activations, and " + human_bytes(free) + " are free");
  }
}

}  // namespace gpunn::inference
