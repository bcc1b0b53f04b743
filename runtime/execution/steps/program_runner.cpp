#include "execution/steps/program_runner.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace gpunn::execution {

ProgramRunner::ProgramRunner(std::unique_ptr<Backend> backend) : backend_(std::move(backend)), variables_(*backend_) {}

ProgramRunner::~ProgramRunner() {
  try {
    backend_->synchronize();
  } catch (const std::exception&) {  // a lost device uses nothing
  }
}

void* ProgramRunner::arena(uint64_t bytes) {
  if (arena_.data() == nullptr || arena_.bytes() < bytes) {
    backend_->synchronize();
    arena_ = {};
    arena_ = backend_->allocate(bytes);
  }
  return arena_.data();
}

uint64_t ProgramRunner::persistent_bytes() const {
  using graph::Storage;
  uint64_t total = 0;
  for (const Storage s : {Storage::parameters, Storage::gradients, Storage::optimizer, Storage::state}) {
    total += variables_.bytes(s);
  }
  return total;
}

Executable& ProgramRunner::ready(RunnableProgram& program) {
  const CompiledProgram& compiled = program.compiled;
  void* memory = arena(compiled.plan.arena_bytes);
  if (program.executable == nullptr || program.arena != memory) {
    program.executable = nullptr;
    program.executable = std::make_unique<Executable>(*backend_, variables_, compiled.graph, compiled.plan, memory,
                                                      compiled.subgraphs.taken);
    program.arena = memory;
  }
  return *program.executable;
}

Executable& ProgramRunner::ready_op_by_op(RunnableProgram& program) {
  const CompiledProgram& compiled = program.compiled;
  if (compiled.subgraphs.taken.empty()) return ready(program);
  if (!program.op_by_op_plan) program.op_by_op_plan = plan_op_by_op(compiled, *backend_);
  // Large enough for both plans: the program with fused subgraphs stays in use, so the arena must not move.
  void* memory = arena(std::max(program.op_by_op_plan->arena_bytes, compiled.plan.arena_bytes));
  if (program.op_by_op == nullptr || program.op_by_op_arena != memory) {
    program.op_by_op = nullptr;
    program.op_by_op =
        std::make_unique<Executable>(*backend_, variables_, compiled.graph, *program.op_by_op_plan, memory);
    program.op_by_op_arena = memory;
  }
  return *program.op_by_op;
}

}  // namespace gpunn::execution
