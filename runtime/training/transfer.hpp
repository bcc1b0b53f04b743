#pragma once

#include <gpunn/experiment.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// Tensors that a training may start from, under the names of this model.
struct StartingTensors {
  std::string source;  // the file
  std::map<std::string, storage::StoredTensor> tensors;
};

// Reads `init_from`: a checkpoint, a run folder (best.h5, else last.h5), or a .safetensors file, whose names go through
// the table of `init_from.names`. Throws Error where it can't be read, and where two tensors get one name.
StartingTensors read_starting_tensors(const InitFromConfig& config);

// Which tensors of a model were found, and why the others were not.
struct TransferReport {
  std::string source;
  std::vector<std::string> taken;
  std::vector<std::string> kept;    // "output.weight f32[10, 512], there f32[1000, 512]"
  std::set<std::string> misshapen;  // the names of those that are there in another shape
  std::vector<std::string> unused;  // names in the file that the model does not have
  std::string text() const;         // some lines for the user
};

// The stored tensor for one of the model's, equal in name and shape, or null; says which in the report.
const storage::StoredTensor* match(const StartingTensors& start, const std::string& name, const Shape& shape,
                                   TransferReport& report);
// When every tensor of the model was looked for: fills in `unused`, throws Error(usage) where none was found.
void finish(const StartingTensors& start, TransferReport& report);

}  // namespace gpunn::training
