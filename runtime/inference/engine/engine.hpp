#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "execution/steps/compiler.hpp"
#include "inference/forward_program.hpp"

namespace gpunn::inference {

// The changes of a pass to a program.
struct PassResult {
  EnginePassId pass;
  bool on = true;
  int64_t changes = 0;
  std::vector<std::string> details;  // of what, each a layer or a tensor
};

// A forward program, ready for a backend.
struct EngineProgram {
  // Makes the constants that the program reads: it runs once, before the program does. Without nodes: there are none.
  execution::CompiledProgram constants;
  execution::CompiledProgram program;
  std::vector<PassResult> passes;  // in their order
};

// Runs the passes that the model's options leave on, and plans the memory. Of an engine file: the program of it that is
// for so many rows, or more.
EngineProgram build_engine(const ForwardModel& model, int64_t rows, const execution::Backend& backend);

// The passes over graphs that are the engine's own.

// Removes the ops of which nothing is read and nothing outlives the program. Returns their names.
std::vector<std::string> remove_dead_ops(graph::Graph& g);

// Values that are only copied to an output of the program lie there from the start, without the copy. Returns their
// names.
std::vector<std::string> write_outputs_directly(graph::Graph& g);

// Takes the ops out that read constants alone. Their results become constants of the program by the name of what they
// are: ops, attributes and roots, so that equal constants of two programs of a model have one name. Returns the program
// of these ops.
graph::Graph fold_constants(graph::Graph& g);

}  // namespace gpunn::inference
