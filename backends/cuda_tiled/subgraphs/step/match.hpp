// Recognises the training step of a small network in a program: the layers, a loss, their gradients, and the
// surrounding ops that the fused step supports. network.hpp describes the networks that it serves.
//
// The core consists of the layers behind the batch, the loss and all gradients. Three parts around it are fused if the
// step supports them, and otherwise stay ordinary ops before or behind it. These are the batch (samples drawn,
// normalised and shifted; labels), the update (norm and bounds of the gradients, optimizers, an average of the
// parameters), and the counters (metrics, histories). Of several ranks (docs/scaling.md) the update includes the sum of
// the gradients over the ranks, and the counters that of the loss.
#pragma once

#include <gpunn/subgraph.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "subgraphs/step/network.hpp"

namespace gpunn::cuda_tiled {

// The beginning of a flat array: `offset` bytes before a value.
struct FlatBase {
  int32_t id = -1;
  int64_t offset = 0;
};

// Ids of the values that a step reads and writes; -1: absent.
struct StepValues {
  int32_t data = -1;
  int32_t labels = -1;
  int32_t scale = -1;
  int32_t shift = -1;
  int32_t border = -1;
  int32_t targets = -1;
  int32_t x = -1;      // of a batch that is ready
  int32_t count = -1;  // likewise
  int32_t step = -1;
  int32_t pass = -1;  // a counter that the step advances and does not read
  int32_t rate_table = -1;
  FlatBase parameters;
  FlatBase gradients;
  FlatBase state1;
  FlatBase state2;
  std::array<std::array<FlatBase, 2>, kMostFlatOps> flat_states;
  std::array<std::array<int32_t, 2>, kMostStepConvs + kMostStepDense> running{};  // by norm, convolutions' first
  int32_t totals = -1;
  int32_t history = -1;
  int32_t norm_history = -1;
  // Intermediate values of the step that other ops need.
  int32_t logits = -1;
  int32_t row_losses = -1;
  int32_t mean_loss = -1;
  int32_t norm = -1;
};

struct StepMatch {
  StepNetwork network;
  StepValues values;
  std::vector<uint32_t> ops;  // none: because of `reason`; that is empty where no step begins here
  std::string reason;
};

// With `world` above 1 the step may add up its gradients over so many ranks.
StepMatch match_step(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit, int world = 1);

}  // namespace gpunn::cuda_tiled
