#include <cstdlib>
#include <string_view>

#include "launch.hpp"

namespace gpunn::cuda_tiled {

bool early_launches() {
  static const bool allowed = [] {
    const char* given = std::getenv("GPUNN_EARLY_LAUNCH");  // NOLINT(concurrency-mt-unsafe): once, and never set here
    return given == nullptr || std::string_view(given) != "0";
  }();
  return allowed;
}

}  // namespace gpunn::cuda_tiled
