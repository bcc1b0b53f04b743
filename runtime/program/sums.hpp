#pragma once

#include <string>
#include <utility>
#include <vector>

#include "distributed/team.hpp"
#include "execution/steps/variables.hpp"
#include "storage/checkpoint.hpp"
#include "tasks/accumulator.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

// The accumulators of a step program as the host sees them.
class SumVariables {
 public:
  SumVariables(execution::Variables& variables, tasks::Phase phase, std::vector<tasks::Accumulator> accumulators)
      : variables_(variables), phase_(phase), accumulators_(std::move(accumulators)) {}

  void reset();
  // The sums over the ranks of the team; nullptr: the sums of this process.
  tasks::Accumulated read(distributed::Team* team) const;

  // Appends a state tensor for each accumulator: the sums over the ranks.
  void save(storage::Checkpoint& checkpoint, distributed::Team* team) const;
  // A line for each accumulator that the checkpoint lacks; empty if it has all.
  std::string missing(const storage::Checkpoint& checkpoint) const;
  // Requires a checkpoint with all accumulators.
  void restore(const storage::Checkpoint& checkpoint);

 private:
  std::string variable(const tasks::Accumulator& one) const;

  execution::Variables& variables_;
  tasks::Phase phase_;
  std::vector<tasks::Accumulator> accumulators_;
};

}  // namespace gpunn::training
