#pragma once

#include <gpunn/training.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"
#include "execution/steps/variables.hpp"
#include "program/layout.hpp"
#include "session/check/op_comparison.hpp"
#include "session/check/scratch_runner.hpp"

namespace gpunn::training {

class Surroundings;

// The backend that trains.
struct Trained {
  execution::Backend& backend;
  execution::Variables& variables;
  const execution::CompiledProgram& program;  // lowered for both
  const ParameterLayout& layout;
  bool resident = true;  // its samples: given to the second once, not with each step
};

// `backend: check:A,B`. A runs each training step, and B runs it twice:
//
//   op by op, each op on the inputs that A's op had, so that the op that departs is at fault and not the rounding of
//   the ops before it;
//   as a whole, from the state with which A began the step, which also shows errors between ops (an op that does not
//   wait for another, a captured graph that replays an old value).
class StepChecker {
 public:
  // Binds the same step program to B and gives it A's resident data.
  StepChecker(const Trained& first, std::unique_ptr<execution::Backend> second);
  ~StepChecker();
  StepChecker(const StepChecker&) = delete;
  StepChecker& operator=(const StepChecker&) = delete;

  // One training step, `executable` being A's. Throws Error where B departs, naming the op, the element and both
  // values; A has run the step up to there.
  void step(execution::Executable& executable);
  const BackendComparison& comparison() const { return comparison_; }
  const execution::Backend& checked() const { return *second_; }

 private:
  using State = std::map<std::string, HostBytes>;  // variables by name
  State read_state() const;
  bool is_resident(graph::ValueId value) const;
  ComparedOp run_node(execution::Executable& executable, std::size_t node);
  void give_inputs(std::size_t node, const std::vector<HostBytes>& values);
  void poison_outputs(std::size_t node);
  bool overlap(graph::ValueId a, graph::ValueId b) const;  // of their memory on the second
  void require_left_alone(std::size_t node, const ComparedOp& run, const Surroundings& around) const;
  void compare(execution::Executable& executable, std::size_t node);
  void compare_whole_step(const State& before);
  [[noreturn]] void depart(std::size_t node, const graph::OpSignature& signature, const OpDifference& difference);

  Trained first_;
  std::unique_ptr<execution::Backend> second_;
  std::unique_ptr<execution::Variables> variables_;  // of the second, as is what follows
  execution::CompiledProgram program_;
  execution::Buffer arena_;
  std::unique_ptr<execution::Executable> executable_;
  ScratchRunner scratch_;
  int64_t step_ = 0;  // being run, counted from 1
  BackendComparison comparison_;
};

}  // namespace gpunn::training
