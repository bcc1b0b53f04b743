// What the kernels of a step read and write: the tensors of the program, the batches that are drawn ahead, and the
// memory of other ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "subgraphs/step/plan.hpp"

namespace gpunn::cuda_tiled {

// The samples of a step to come. The second kernel draws them two steps ahead, while it waits for others: so they can
// be fetched before the step before has ended. Whoever reads them checks the step: a counter may be set from outside.
struct NextBatch {
  int64_t step;
  int64_t unused;
  // int32_t index[batch] follows.
};

// Two of them, behind what the first kernel expects its next step to be and what its blocks tell the second kernel. All
// numbers begin at -1, and wrap around; but for `runs`, so that what images have told each other never seems to be of a
// first run.
struct NotedBatches {
  int64_t expected;
  uint32_t started;  // how often the first kernel has started
  uint32_t inputs;   // how many of its blocks have written their factors of the dense layers' weight gradients: the x,
  uint32_t written;  // and all of them
  uint32_t unused;
  uint32_t runs;  // how often the second kernel of a step with batch norm has ended
  uint32_t unused2[5];
};

constexpr std::size_t next_batch_bytes(const StepPlan& plan) {
  return sizeof(NextBatch) + (static_cast<std::size_t>(plan.batch) * sizeof(int32_t) + 15) / 16 * 16;
}

// Behind both lies what images tell each other about batch norms.
constexpr std::size_t exchange_from(const StepPlan& plan) { return sizeof(NotedBatches) + 2 * next_batch_bytes(plan); }
constexpr std::size_t noted_bytes(const StepPlan& plan) {
  return exchange_from(plan) + static_cast<std::size_t>(plan.exchange) * 16;
}

// The tensors that the step reads and writes. The pointer of an absent tensor is null.
struct StepTensors {
  const void* data;
  const void* labels;
  const float* scale;
  const float* shift;
  int64_t* step;
  const float* rate_table;
  float* parameters;
  float* state1;  // velocity, or Adam's m
  float* state2;  // Adam's v
  double* totals;
  float* history;
  float* workspace;
  const StepPlan* plan;
  NotedBatches* noted;
};

// The additional tensors of kernels with parts.
struct GeneralTensors : StepTensors {
  const float* x;        // of a batch that is ready
  const int32_t* count;  // of its rows that are samples
  const float* targets;  // a table by label, or of the rows
  const float* border;   // of shifted images
  float* gradients;      // flat
  float* logits;         // where they are wanted outside
  float* row_losses;
  float* mean_loss;
  float* norm;  // of all gradients
  float* norm_history;
  float* flat_state[kMostFlatOps][2];
  float* running[kMostStepConvs + kMostStepDense][2];  // mean and variance: of convolutions, then of dense layers
};

// Memory through which the ranks of a step exchange their gradients (ranks.cuh).
struct PeerWords {
  uint64_t* of[kMostStepRanks];  // by rank, as this GPU reaches it: [parity of the run][sender][word]
  const uint32_t* stop;          // of the host: not 0 if another rank is lost
  uint32_t* stopped;             // of this GPU: likewise
  int rank, world;
  int64_t words;
};

// How much memory a rank offers the others.
constexpr std::size_t peer_bytes(const StepPlan& plan) {
  return static_cast<std::size_t>(plan.words * plan.world) * 2 * sizeof(uint64_t);
}

// The additional tensors of a step with ranks.
struct RankTensors : GeneralTensors {
  int64_t* pass;  // a counter that is advanced
  PeerWords peers;
};

}  // namespace gpunn::cuda_tiled
