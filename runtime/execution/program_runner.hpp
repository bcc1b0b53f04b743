#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "execution/backend.hpp"
#include "execution/compiler.hpp"
#include "execution/executable.hpp"
#include "execution/variables.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A program on the device of a runner, with its kernels from its first use on.
struct RunnableProgram {
  CompiledProgram compiled;
  std::unique_ptr<Executable> executable = nullptr;
  const void* arena = nullptr;
  // Where the program has fused subgraphs, and was run op by op all the same.
  std::optional<compiler::MemoryPlan> op_by_op_plan = {};
  std::unique_ptr<Executable> op_by_op = nullptr;
  const void* op_by_op_arena = nullptr;
};

// A device with what its programs keep. Programs never run at the same time, so they share one arena. A program that
// needs a larger one replaces it, and programs bound to the old one are bound again when they are next used.
class ProgramRunner {
 public:
  explicit ProgramRunner(std::unique_ptr<Backend> backend);
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;
  ~ProgramRunner();  // waits for the device: nothing is freed that is still in use

  Backend& backend() { return *backend_; }
  const Backend& backend() const { return *backend_; }
  Variables& variables() { return variables_; }
  const Variables& variables() const { return variables_; }

  RunnableProgram compile(graph::Graph program) const { return {execution::compile(std::move(program), *backend_)}; }
  // So that the arena is not replaced by the first of several programs to use it.
  void reserve(uint64_t arena_bytes) { arena(arena_bytes); }
  uint64_t arena_bytes() const { return arena_.bytes(); }
  // Of the variables that stay from step to step: parameters, gradients, states of the optimizer and others.
  uint64_t persistent_bytes() const;

  Executable& ready(RunnableProgram& program);
  // To be run op by op, which fused subgraphs are not; the same as ready() where there are none.
  Executable& ready_op_by_op(RunnableProgram& program);

 private:
  void* arena(uint64_t bytes);

  std::unique_ptr<Backend> backend_;
  Variables variables_;
  Buffer arena_;
};

}  // namespace gpunn::execution
