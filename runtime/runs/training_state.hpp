#pragma once

#include <gpunn/experiment.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/team.hpp"
#include "execution/steps/variables.hpp"
#include "graph/graph.hpp"
#include "optim/optimizer/optimizer_rows.hpp"
#include "program/flat_tensors.hpp"
#include "program/layout.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::training {

struct Start;

// Whether the ranks have a part of the optimizer's states each, and which.
struct StateSharing {
  std::shared_ptr<distributed::Team> team = nullptr;  // nullptr: each has all of them
  std::vector<distributed::Share> buckets = {};       // gradient_buckets()
};

// The state of a training on the device: the model's parameters and buffers, their average, the optimizer's states.
// Initialises them, and moves them to and from checkpoints.
class TrainingState {
 public:
  // `parameters` and `buffers` as they lie in their variables.
  TrainingState(const Experiment& experiment, ParameterLayout parameters, ParameterLayout buffers,
                StateSharing sharing = {});

  const ParameterLayout& parameters() const { return parameters_; }
  const ParameterLayout& buffers() const { return buffers_; }  // total 0: the model has none

  // Creates the variables with the first values of a training from random weights. Those of the optimizer are made by
  // the step program.
  void initialise(execution::Variables& variables);
  // Loads the start's tensors for this model.
  void initialise_from(const Start& start);

  void save(storage::Checkpoint& checkpoint) const;
  // A line for each tensor of the model and the optimizer that the checkpoint lacks, has too many of or in another
  // shape; empty: it fits.
  std::string mismatches(const storage::Checkpoint& checkpoint) const;
  void restore(const storage::Checkpoint& checkpoint);  // one without mismatches
  // The parameters and buffers alone, and the parameters' average if there is one: the model, without the state of its
  // training. Throws Error(usage) with every mismatch.
  void restore_model(const storage::Checkpoint& checkpoint);

 private:
  // What a checkpoint has beside the parameters: the optimizer's states and the average.
  struct Kept {
    OptimizerState state;
    Has which = Has::trained;
  };
  std::vector<Kept> kept_arrays() const;
  ParameterLayout own_layout() const;  // of this rank's part of the states
  // A row of a kept array, whole: where ranks share it out, all of them call it.
  std::vector<std::byte> whole_row(const Kept& kept, const std::vector<std::byte>& variable, int64_t row) const;
  void set_row(const Kept& kept, std::vector<std::byte>& variable, int64_t row,
               const std::vector<std::byte>& whole) const;
  void fill(const char* variable, const ParameterLayout& layout, graph::Storage storage);
  void write_model(const storage::Checkpoint& checkpoint);
  bool averages_buffers() const { return experiment_.ema > 0 && buffers_.total > 0; }
  std::string average_buffer_mismatches(const storage::Checkpoint& checkpoint) const;
  std::string model_mismatches(const storage::Checkpoint& checkpoint) const;

  const Experiment& experiment_;
  ParameterLayout parameters_, buffers_;
  StateSharing sharing_;
  execution::Variables* variables_ = nullptr;
};

}  // namespace gpunn::training
