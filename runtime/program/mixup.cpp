#include "program/mixup.hpp"

#include <gpunn/random.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/normal_pair.hpp"

namespace gpunn::training {

namespace {

// Of the sequences of random numbers that begin at 2^34, augmentation's own, the last two.
constexpr uint64_t kMixupStream = (uint64_t{1} << 34) + 4;
constexpr uint64_t kCutmixStream = kMixupStream + 1;
constexpr uint64_t kBlocksOfStep = uint64_t{1} << 20;  // far more than any step takes

// The random numbers of one step.
class StepDraws {
 public:
  StepDraws(uint64_t seed, int64_t step, uint64_t stream = kMixupStream)
      : seed_(seed), stream_(stream), block_(static_cast<uint64_t>(step) * kBlocksOfStep) {}

  double positive() { return static_cast<double>(gpunn_random_positive(word())); }  // in (0, 1]

  double normal() {
    const uint32_t first = word(), second = word();
    return normal_pair(first, second)[0];
  }

 private:
  uint32_t word() {
    if (next_ == 4) {
      words_ = gpunn_philox(seed_, stream_, block_++);
      next_ = 0;
    }
    return words_.word[next_++];
  }

  uint64_t seed_, stream_, block_;
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

MixTables mix_tables(double mixup, double cutmix, int64_t height, int64_t width, uint64_t seed, int64_t steps) {
  MixTables tables;
  const std::vector<float> mixed = mixup > 0 ? mixup_shares(mixup, seed, steps) : std::vector<float>();
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  for (int64_t step = 0; step < steps; ++step) {
    StepDraws draws(seed, step, kCutmixStream);
    const bool cuts = mixup == 0 || draws.positive() <= 0.5;
    double share = 1, top = 0, left = 0, bottom = 0, right = 0;
    if (cuts) {
      const double x = log_gamma_number(draws, cutmix), y = log_gamma_number(draws, cutmix);
      // The sides are shares of the image's, whose product is the share of the other image.
      const double side = std::sqrt(1 - 1.0 / (1.0 + std::exp(y - x)));
      const double rows = std::trunc(h * side), columns = std::trunc(w * side);
      const double row = std::floor(draws.positive() * h), column = std::floor(draws.positive() * w);
      const auto within = [](double place, double size) { return std::clamp(place, 0.0, size); };
      top = within(row - std::floor(rows / 2), h);
      left = within(column - std::floor(columns / 2), w);
      bottom = within(row + std::floor(rows / 2), h);
      right = within(column + std::floor(columns / 2), w);
      share = 1 - (bottom - top) * (right - left) / (h * w);
    } else {
      share = mixed[static_cast<std::size_t>(step)];
    }
    tables.pixels.push_back(cuts ? 1.0F : static_cast<float>(share));
    tables.targets.push_back(static_cast<float>(share));
    tables.top.push_back(static_cast<float>(top));
    tables.left.push_back(static_cast<float>(left));
    tables.bottom.push_back(static_cast<float>(bottom));
    tables.right.push_back(static_cast<float>(right));
  }
  return tables;
}

}  // namespace gpunn::training
