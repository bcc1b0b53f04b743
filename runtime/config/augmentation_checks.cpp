#include <algorithm>

#include "config/experiment_checks.hpp"

namespace gpunn::config {

void check_augmentation(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics) {
  const AugmentationConfig& a = experiment.augmentation;
  const auto check_pixels = [&](const std::string& key, const std::vector<int64_t>& sizes) {
    const bool whole = std::ranges::none_of(sizes, [](int64_t size) { return size < 0; });
    if (!given.sound(key) || (sizes.size() <= 2 && whole)) return;
    diagnostics.add(given.place(key), key + ": expected one integer or two, [rows, columns]");
  };
  check_pixels("augmentation.crop", a.crop);
  check_pixels("augmentation.translate", a.translate);
  check_pixels("augmentation.erase", a.erase);
  if (given.sound("augmentation.scale") && a.scale.size() == 2 && a.scale[0] > a.scale[1]) {
    diagnostics.add(given.place("augmentation.scale"), "augmentation.scale: expected the least first, [least, most]");
  }
  if (!a.crop.empty() && !a.translate.empty()) {
    diagnostics.add(given.place("augmentation.translate"),
                    "augmentation.crop and augmentation.translate are two names of one thing; give one");
  }
}

}  // namespace gpunn::config
