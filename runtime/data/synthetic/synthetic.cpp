#include "data/synthetic/synthetic.hpp"

#include <gpunn/error.hpp>

#include <string>

namespace gpunn::data {

namespace {

constexpr int64_t kMostRows = 10'000'000;

}  // namespace

int64_t synthetic_rows(int64_t asked, int64_t usual, const char* key) {
  if (asked < 0 || asked > kMostRows) {
    throw Error(std::string("data.") + key + " is " + std::to_string(asked) + "; expected 0 (the set's own " +
                    std::to_string(usual) + ") to " + std::to_string(kMostRows),
                ExitCode::usage);
  }
  return asked == 0 ? usual : asked;
}

}  // namespace gpunn::data
