// Recognises a whole training step in a program: batch, convolutions with ReLU and pooling, dense layers, softmax with
// cross-entropy, their backwards, the optimizer and the counters, in any order that the values allow.
#pragma once

#include <gpunn/subgraph.hpp>

#include <optional>
#include <string>

#include "step_plan.hpp"

namespace gpunn::cuda_tiled {

// Ids of the values that a step takes and leaves; -1: there is none.
struct StepValues {
  int32_t data = -1;
  int32_t labels = -1;
  int32_t scale = -1;
  int32_t shift = -1;
  int32_t step = -1;
  int32_t rate_table = -1;
  int32_t parameters = -1;
  int32_t state1 = -1;
  int32_t state2 = -1;
  int32_t totals = -1;
  int32_t history = -1;
};

struct StepMatch {
  StepNetwork network;
  StepValues values;
  std::size_t ops = 0;  // 0: none, because of `reason`; that is empty where no step begins here
  std::string reason;
};

StepMatch match_step(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::cuda_tiled
