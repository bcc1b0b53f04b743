#include "training/mixup.hpp"

#include <gpunn/random.h>

#include <cmath>
#include <cstddef>

#include "common/normal_pair.hpp"

namespace gpunn::training {

namespace {

// Of the sequences of random numbers that begin at 2^34, augmentation's own, the last.
constexpr uint64_t kMixupStream = (uint64_t{1} << 34) + 4;
constexpr uint64_t kBlocksOfStep = uint64_t{1} << 20;  // far more than any step takes

// The random numbers of one step.
class StepDraws {
 public:
  StepDraws(uint64_t seed, int64_t step) : seed_(seed), block_(static_cast<uint64_t>(step) * kBlocksOfStep) {}

  double positive() { return static_cast<double>(gpunn_random_positive(word())); }  // in (0, 1]

  double normal() {
    const uint32_t first = word(), second = word();
    return normal_pair(first, second)[0];
  }

 private:
  uint32_t word() {
    if (next_ == 4) {
      words_ = gpunn_philox(seed_, kMixupStream, block_++);
      next_ = 0;
    }
    return words_.word[next_++];
  }

  uint64_t seed_, block_;
  gpunn_random_words words_{};
  int next_ = 4;
};

// The logarithm of a number of the gamma distribution of shape alpha, by rejection (Marsaglia and Tsang, 2000). The
// logarithm, since with an alpha near 0 most of the numbers are below the least double.
double log_gamma_number(StepDraws& draws, double alpha) {
  if (alpha < 1) {
    const double log_more = log_gamma_number(draws, alpha + 1);
    return log_more + std::log(draws.positive()) / alpha;
  }
  const double d = alpha - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = draws.normal(), root = 1.0 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(draws.positive()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

}  // namespace

std::vector<float> mixup_shares(double alpha, uint64_t seed, int64_t steps) {
  std::vector<float> shares(static_cast<std::size_t>(steps));
  for (int64_t step = 0; step < steps; ++step) {
    StepDraws draws(seed, step);
    // x / (x + y) of two such numbers is of the Beta distribution.
    const double x = log_gamma_number(draws, alpha), y = log_gamma_number(draws, alpha);
    shares[static_cast<std::size_t>(step)] = static_cast<float>(1.0 / (1.0 + std::exp(y - x)));
  }
  return shares;
}

}  // namespace gpunn::training
