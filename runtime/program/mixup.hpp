#pragma once

#include <cstdint>
#include <vector>

namespace gpunn::training {

// Mixup (Zhang et al., 2018): the share of a row's own sample in the steps [0, steps), drawn from Beta(alpha, alpha).
// A step's share follows from seed and step alone, however many steps there are. alpha above 0.
std::vector<float> mixup_shares(double alpha, uint64_t seed, int64_t steps);

// The numbers that the steps of mixup and CutMix (Yun et al., 2019) need, one for each step.
struct MixTables {
  std::vector<float> pixels;   // the share of a row's own sample in each of its pixels
  std::vector<float> targets;  // the share of its own target: what its pixels come to
  // The rectangle of each image that is another's, in whole pixels: from top and left to before bottom and right.
  std::vector<float> top, left, bottom, right;
};
// For images of this size. If both alphas are above 0, each step draws one of the two. The share of CutMix is drawn
// like mixup's; if the rectangle reaches beyond the image, targets are mixed by the remaining part.
MixTables mix_tables(double mixup, double cutmix, int64_t height, int64_t width, uint64_t seed, int64_t steps);

}  // namespace gpunn::training
