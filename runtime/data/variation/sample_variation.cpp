#include "data/variation/sample_variation.hpp"

#include <algorithm>
#include <cmath>

namespace gpunn::data {

SampleVariation::SampleVariation(const AugmentationConfig& config, uint64_t seed)
    : area_(config.resized_crop),
      ratio_(config.resized_crop_ratio),
      ops_(config.rand_augment),
      magnitude_(config.rand_augment_magnitude),
      trivial_(config.trivial_augment),
      seed_(seed) {}

bool SampleVariation::is_wanted(const AugmentationConfig& config) {
  return !config.resized_crop.empty() || config.rand_augment > 0 || config.trivial_augment;
}

// Room for 2^24 epochs of 2^32 rows, and far more words than a sample takes.
SampleDraw::SampleDraw(const SampleVariation& variation, uint64_t epoch, int64_t row)
    : variation_(variation),
      random_(variation.seed_, kVariationStream, epoch << 40U | static_cast<uint64_t>(row) << 8U) {}

ImageRegion SampleDraw::crop(int64_t height, int64_t width) {
  return random_resized_crop(height, width, variation_.area_, variation_.ratio_, random_);
}

void SampleDraw::change(Image& image) {
  if (variation_.ops_ > 0) rand_augment(image, variation_.ops_, variation_.magnitude_, random_);
  if (variation_.trivial_) trivial_augment(image, random_);
}

ImageRegion random_resized_crop(int64_t height, int64_t width, const std::vector<double>& area,
                                const std::vector<double>& ratio, PhiloxSource& random) {
  constexpr int kTries = 10;
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  for (int i = 0; i < kTries; ++i) {
    const double pixels = h * w * random.uniform(area[0], area[1]);
    const double wide = std::exp(random.uniform(std::log(ratio[0]), std::log(ratio[1])));
    const int64_t columns = std::llround(std::sqrt(pixels * wide)), rows = std::llround(std::sqrt(pixels / wide));
    if (rows < 1 || columns < 1 || rows > height || columns > width) continue;
    const int64_t top = random.below(static_cast<uint32_t>(height - rows + 1));
    return {top, random.below(static_cast<uint32_t>(width - columns + 1)), rows, columns};
  }
  int64_t rows = height, columns = width;
  if (w / h < ratio[0]) rows = std::clamp<int64_t>(std::llround(w / ratio[0]), 1, height);
  if (w / h > ratio[1]) columns = std::clamp<int64_t>(std::llround(h * ratio[1]), 1, width);
  return {(height - rows) / 2, (width - columns) / 2, rows, columns};
}

}  // namespace gpunn::data
