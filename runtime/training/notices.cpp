#include "training/notices.hpp"

namespace gpunn::training {

std::string fallback_notice(const Dataset& dataset) {
  if (dataset.fallback_of.empty()) return "";
  return "WARNING: data set '" + dataset.fallback_of + "' was not found: '" + dataset.name +
         "' is used instead, as offline_fallback allows. Its figures are not figures of '" + dataset.fallback_of + "'.";
}

std::string schedule_notice(const Schedule& schedule) {
  std::string text;
  for (const std::string& warning : schedule.warnings()) text = joined(text, "WARNING: " + warning);
  return text;
}

std::string joined(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : "\n") + other;
}

}  // namespace gpunn::training
