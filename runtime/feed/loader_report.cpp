#include "feed/loader_report.hpp"

#include <fmt/format.h>

namespace gpunn::training {

namespace {

constexpr double kNoticeableWait = 0.05;  // of the time

}  // namespace

LoaderReport loader_report(const LoaderCounts& before, const LoaderCounts& after) {
  const double seconds = after.filling_seconds - before.filling_seconds;
  return {.samples_per_second = seconds > 0 ? static_cast<double>(after.samples - before.samples) / seconds : 0,
          .waited_seconds = after.waited_seconds - before.waited_seconds};
}

bool loader_limits(const LoaderReport& loader, double seconds) {
  return seconds > 0 && loader.waited_seconds >= kNoticeableWait * seconds;
}

std::string loader_text(const LoaderReport& loader, double samples_per_second, double seconds) {
  const double share = seconds > 0 ? loader.waited_seconds / seconds : 0;
  const std::string figures =
      fmt::format("the host makes {:.0f} samples/s, the training takes {:.0f}; the device waited {:.1f} % of the time",
                  loader.samples_per_second, samples_per_second, 100 * share);
  if (!loader_limits(loader, seconds)) return figures + ": the device limits the training";
  return figures +
         ": making batches limits the training. More cores help, or data.decode: once; for images much larger than "
         "the samples, also smaller ones (`gpunn data pack --decoded --shorter-side N`)";
}

}  // namespace gpunn::training
