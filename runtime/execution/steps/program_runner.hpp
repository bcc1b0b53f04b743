#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "execution/backend.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"
#include "execution/steps/variables.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// A step program on the device of a runner. Its kernels are created at its first use.
struct RunnableProgram {
  CompiledProgram compiled;
  std::unique_ptr<Executable> executable = nullptr;
  const void* arena = nullptr;
  // Only if the program has fused subgraphs and was also run op by op.
  std::optional<compiler::MemoryPlan> op_by_op_plan = {};
  std::unique_ptr<Executable> op_by_op = nullptr;
  const void* op_by_op_arena = nullptr;
};

// A device with the variables of its step programs. Step programs never run at the same time, so they share an arena.
// One that needs a larger arena replaces it; those bound to the old arena are bound again at their next use.
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
  RunnableProgram compile_fastest(const graph::Graph& program) {
    return {execution::compile_fastest(program, *backend_)};
  }
  // Makes room for several step programs at once, so that the arena is not replaced between them.
  void reserve(uint64_t arena_bytes) { arena(arena_bytes); }
  uint64_t arena_bytes() const { return arena_.bytes(); }
  // The bytes of variables that stay from step to step: parameters, gradients, states of the optimizer and others.
  uint64_t persistent_bytes() const;

  Executable& ready(RunnableProgram& program);
  // The program without fused subgraphs; the same as ready() if it has none.
  Executable& ready_op_by_op(RunnableProgram& program);

 private:
  void* arena(uint64_t bytes);

  std::unique_ptr<Backend> backend_;
  Variables variables_;
  Buffer arena_;
};

}  // namespace gpunn::execution
