#pragma once

#include <map>
#include <string>

#include "graph/graph.hpp"

namespace gpunn::tasks {

// The field of a batch that holds its classes: i32[N], one a row. Targets f32[N, outputs] are gpunn::kTargetField.
inline constexpr const char* kLabelField = "label";

// The batch of a step: normalised samples f32[N, ...] and how many of the N rows count, i32 0-d; what the samples were
// normalised with, x = raw * scale[C] + shift[C]; and by name what else is known of each row.
struct Batch {
  graph::ValueId x = graph::kNoValue, count = graph::kNoValue;
  graph::ValueId scale = graph::kNoValue, shift = graph::kNoValue;
  std::map<std::string, graph::ValueId> fields = {};

  bool has(const char* field) const { return fields.contains(field); }
  graph::ValueId label() const { return fields.at(kLabelField); }
};

// What a model makes of a batch: the output of its last layer, and of every layer by its name.
struct ModelOutputs {
  graph::ValueId last = graph::kNoValue;
  std::map<std::string, graph::ValueId> layers;
};

}  // namespace gpunn::tasks
