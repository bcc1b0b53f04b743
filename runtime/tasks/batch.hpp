#pragma once

#include "graph/graph.hpp"

namespace gpunn::tasks {

// The batch of a step: normalised samples f32[N, ...] and how many of the N rows count, i32 0-d; what the samples were
// normalised with, x = raw * scale[C] + shift[C]; and what the model is to learn of each row.
struct Batch {
  graph::ValueId x = graph::kNoValue, count = graph::kNoValue;
  graph::ValueId scale = graph::kNoValue, shift = graph::kNoValue;
  graph::ValueId label = graph::kNoValue;   // i32[N], a class each; kNoValue: the task has no such labels
  graph::ValueId target = graph::kNoValue;  // f32[N, outputs], to be learnt in place of the label; kNoValue: none
};

}  // namespace gpunn::tasks
