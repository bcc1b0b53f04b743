// Finds the ops of a training step that exchange data between ranks. The functions throw Refusal where the step can't
// make an exchange itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "subgraphs/pattern.hpp"

namespace gpunn::cuda_tiled {

// The ops that add up gradients over `world` ranks.
struct GradientSums {
  std::vector<int32_t> values;  // in place
  std::size_t last = 0;         // of the ops
};

// Takes the sums of what is_gradient(value) says, which must have all of `gradients` among them.
GradientSums take_gradient_sums(Pattern& pattern, int world, const std::function<bool(int32_t)>& is_gradient,
                                const std::vector<int32_t>& gradients);

// The mean loss of all ranks: takes the product of this rank's mean with its share of the rows, and its sum.
struct LossSum {
  std::size_t product = Pattern::kNone;
  int32_t share = -1;
  int32_t sum = -1;
};
LossSum take_loss_sum(Pattern& pattern, int world, int32_t mean);

// Takes what advances the number of passes of all ranks, by which dropout draws; kNone if only `step` advances.
std::size_t take_pass_advance(Pattern& pattern, int32_t step);

// Every exchange is taken: ranks would wait for each other in two places at once.
void require_no_other_exchange(const Pattern& pattern);

}  // namespace gpunn::cuda_tiled
