#include <gpunn/version.hpp>

namespace gpunn {

std::string version() { return GPUNN_VERSION; }

std::string build_record() {
  return std::string("gpunn ") + GPUNN_VERSION + "\ncompiler " + __VERSION__ + "\n";
}

}  // namespace gpunn
