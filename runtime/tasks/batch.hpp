#pragma once

#include <gpunn/field.hpp>

#include <map>
#include <string>

#include "graph/graph.hpp"

namespace gpunn::tasks {

// The batch of a step: normalised samples f32[N, ...]; how many of the N rows count, i32 0-d; the normalisation, x =
// raw * scale[C] + shift[C]; and the other fields of each row, by name.
struct Batch {
  graph::ValueId x = graph::kNoValue, count = graph::kNoValue;
  graph::ValueId scale = graph::kNoValue, shift = graph::kNoValue;
  std::map<std::string, graph::ValueId> fields = {};

  bool has(const char* field) const { return fields.contains(field); }
  graph::ValueId label() const { return fields.at(kLabelField); }
};

// The results of a model for a batch: the output of its last layer, and of every layer by name.
struct ModelOutputs {
  graph::ValueId last = graph::kNoValue;
  std::map<std::string, graph::ValueId> layers;
};

}  // namespace gpunn::tasks
