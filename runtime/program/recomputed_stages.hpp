// The stages of `training.recompute`: which layers are computed again together.
#pragma once

#include <gpunn/experiment.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gpunn::training {

struct RecomputedStage {
  std::string name;                 // of the block; of layers without one, "first" or "first to last"
  std::vector<std::string> layers;  // in the order of the model
};

// A block that a pattern matches is a stage. Neighbouring layers that are matched by their own names make up stages
// too: about sqrt(n) of n layers, cut where an output is small. The stage that ends the model is left out: its
// gradients come first, so that recomputing it would save nothing. `bytes` has the size of each layer's output.
std::vector<RecomputedStage> recomputed_stages(const Experiment& experiment,
                                               const std::map<std::string, uint64_t>& bytes);

// By each layer of the model, the number of its stage, as compiler::recompute_stages() takes it.
std::map<std::string, int> stage_numbers(const Experiment& experiment, const std::vector<RecomputedStage>& stages);

}  // namespace gpunn::training
