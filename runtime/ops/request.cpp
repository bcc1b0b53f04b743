#include "ops/request.hpp"

#include <gpunn/error.hpp>

namespace gpunn::ops {

void bad(const Written& written, const std::string& expected) {
  throw Error("bench op " + written.op + ": expected " + expected + ", got '" + written.text + "'", ExitCode::usage);
}

int64_t take(Written& written, const std::string& option, int64_t otherwise) {
  const auto found = written.options.find(option);
  if (found == written.options.end()) return otherwise;
  const int64_t value = found->second;
  written.options.erase(found);
  return value;
}

int32_t take_int(Written& written, const std::string& option, int32_t otherwise) {
  return static_cast<int32_t>(take(written, option, otherwise));
}

}  // namespace gpunn::ops
