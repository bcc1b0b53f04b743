#pragma once

#include <filesystem>
#include <vector>

#include "execution/steps/variables.hpp"
#include "inference/forward_program.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::inference {

// Weights of a model, as flat arrays of its layouts, and what its inputs are normalised with, by channel: of all inputs
// that are, one behind the other.
struct Weights {
  std::vector<float> parameters, buffers;
  std::vector<float> scale, shift;
  // Of an engine file: what ops made of the weights, by the names that its programs know them by.
  std::vector<storage::StoredTensor> constants = {};
};

// The weights that forward programs of the model want, with the norms of `program` folded in. Throws Error(usage),
// naming `file`, where the checkpoint holds those of another model.
Weights forward_weights(const ForwardModel& model, const ForwardProgram& program, const storage::Checkpoint& checkpoint,
                        const std::filesystem::path& file);

// Creates the variables of the inputs, and gives those that are constants their values.
void write_inputs(execution::Variables& variables, const ForwardModel& model, const Weights& weights);

}  // namespace gpunn::inference
