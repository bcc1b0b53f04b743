#include "data/synthetic.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gpunn::data {

namespace {

constexpr int64_t kMostRows = 10'000'000;
constexpr int64_t kStretch = 256;
constexpr int64_t kMostThreads = 32;

}  // namespace

int64_t synthetic_rows(int64_t asked, int64_t usual, const char* key) {
  if (asked < 0 || asked > kMostRows) {
    throw Error(std::string("data.") + key + " is " + std::to_string(asked) + "; expected 0 (the set's own " +
                    std::to_string(usual) + ") to " + std::to_string(kMostRows),
                ExitCode::usage);
  }
  return asked == 0 ? usual : asked;
}

void for_row_stretches(int64_t rows, const std::function<void(int64_t first, int64_t last)>& make) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (int64_t first = next.fetch_add(kStretch); first < rows; first = next.fetch_add(kStretch)) {
        make(first, std::min(rows, first + kStretch));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  };
  const int64_t stretches = (rows + kStretch - 1) / kStretch;
  const int64_t threads =
      std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, std::min(kMostThreads, stretches));
  {
    std::vector<std::jthread> team;
    for (int64_t i = 1; i < threads; ++i) team.emplace_back(work);
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace gpunn::data
