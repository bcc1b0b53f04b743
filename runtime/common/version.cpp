#include <gpunn/version.hpp>

namespace gpunn {

std::string version() { return GPUNN_VERSION; }

std::string build_record() {
  std::string record = std::string("gpunn ") + GPUNN_VERSION + " " + GPUNN_BUILD_TYPE + "\n";
#if defined(__clang__)
  record += "compiler clang " __clang_version__ "\n";
#else
  record += "compiler g++ " __VERSION__ "\n";
#endif
  return record;
}

}  // namespace gpunn
