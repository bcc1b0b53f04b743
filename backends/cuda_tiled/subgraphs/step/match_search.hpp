// The search for a training step: what match_step() has found so far, and its parts in the order in which they run.
//
// The core is found from the loss backwards: the layers in front of it, then for each of them its gradients, each op by
// the values that it reads. All functions throw Refusal if the step supports no such program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/convolution.hpp"
#include "subgraphs/pattern.hpp"
#include "subgraphs/step/match.hpp"

namespace gpunn::cuda_tiled {

// What is fused besides the core.
struct Surroundings {
  bool batch = true;
  bool update = true;
  bool counters = true;
  bool advance = true;
};

// A layer with its values.
struct StepLayer {
  bool dense = false;
  bool pooled = false;
  ConvShape conv;  // or
  DenseShape matrix;
  int32_t w = -1, bias = -1;
  std::array<int32_t, 2> running{-1, -1};  // of batch norm
  int32_t gamma = -1, beta = -1;
  bool bias_done = false;  // its gradient has been found

  StepFinish& finish() { return dense ? matrix.finish : conv.finish; }
};

// An op of a layer's forward part.
struct StepLayerOp {
  std::size_t op;
  std::size_t layer;
};

struct StepGradient {
  int32_t parameter;
  int32_t gradient;
};

struct StepSearch {
  StepSearch(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit, int world, Surroundings with)
      : desc(desc), pattern(desc, first, limit), world(world), with(with) {
    for (auto& pair : match.values.running) pair = {-1, -1};
  }

  plugin::OpDesc op(std::size_t i) const { return desc.op(i); }
  int32_t from_outside(int32_t id) const;  // the value, which the step does not make
  void use_step(int32_t id);               // the counter of the step, one and the same for all
  void leave(int32_t id) { left.push_back(id); }
  // The number that a FILL before that op makes.
  double constant(int32_t id, std::size_t before);

  const plugin::ProgramDesc& desc;
  Pattern pattern;
  const int world;  // ranks whose sums the step may make
  const Surroundings with;
  StepMatch match;
  std::vector<StepLayerOp> layer_ops;  // forward
  std::vector<StepLayer> layers;
  std::vector<StepGradient> gradients;
  std::vector<int32_t> left;          // values that the step writes for others
  std::size_t loss = Pattern::kNone;  // an op
  int32_t index = -1, count = -1, label = -1, x = -1;
  int32_t logits = -1, losses = -1, mean = -1;
  int32_t d = -1;  // the gradient as far as match_gradients() has come
};

inline int32_t narrow(int64_t value) {
  backends::require(value >= 0 && value <= std::numeric_limits<int32_t>::max(), "too large a shape");
  return static_cast<int32_t>(value);
}

// match_loss.cpp, match_layers.cpp: the op of the loss, and the ops of the layers in front of it.
void find_loss(StepSearch& search);
void find_layers(StepSearch& search);

// match_batch.cpp: the batch, or what is known of one that is ready.
void match_batch(StepSearch& search);
void use_label(StepSearch& search, int32_t id);    // that an op of the step reads
void use_targets(StepSearch& search, int32_t id);  // of the loss, [batch, classes]

// match_layers.cpp: the shapes of the layers.
void match_layers(StepSearch& search);
void require_plain(const backends::ConvolutionShape& shape, const char* otherwise);

// match_loss.cpp: the loss, its mean, and the gradients of both.
void match_loss(StepSearch& search);

// match_gradients.cpp: the gradients of all layers, and where parameters and gradients lie.
void match_gradients(StepSearch& search);

// match_update.cpp: bounds of the gradients, optimizers and what follows them.
void match_update(StepSearch& search);

// match_counters.cpp: metrics, histories, and the step's counter.
void match_counters(StepSearch& search);

}  // namespace gpunn::cuda_tiled
