#pragma once

#include <cstdint>
#include <vector>

namespace gpunn::training {

// Mixup (Zhang et al., 2018): the share of a row's own sample in the steps [0, steps), drawn from Beta(alpha, alpha).
// A step's share follows from seed and step alone, however many steps there are. alpha above 0.
std::vector<float> mixup_shares(double alpha, uint64_t seed, int64_t steps);

}  // namespace gpunn::training
