#include <gpunn/clock.hpp>

#include <chrono>
#include <ctime>

#include <fmt/format.h>

namespace gpunn {

namespace {

const std::chrono::steady_clock::time_point kProgramStart = std::chrono::steady_clock::now();

std::string utc_as(const char* format) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof(text), format, &utc)};
}

}  // namespace

std::string utc_time() { return utc_as("%Y-%m-%dT%H:%M:%SZ"); }

std::string utc_name() { return utc_as("%Y-%m-%dT%H-%M-%SZ"); }

double seconds_since_start() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - kProgramStart).count();
}

std::string elapsed_stamp() { return fmt::format("[{:>7.1f} s]", seconds_since_start()); }

}  // namespace gpunn
