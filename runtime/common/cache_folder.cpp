#include "common/cache_folder.hpp"

#include <cstdlib>

namespace gpunn {

std::filesystem::path cache_folder() {
  const auto absolute = [](const char* variable) {
    const char* const text = std::getenv(variable);
    const std::filesystem::path path = text == nullptr ? "" : text;
    return path.is_absolute() ? path : std::filesystem::path();
  };
  if (const auto cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache / "gpunn";
  const auto home = absolute("HOME");
  return home.empty() ? home : home / ".cache" / "gpunn";
}

}  // namespace gpunn
