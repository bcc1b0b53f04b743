#include "common/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gpunn {

void for_row_stretches(int64_t rows, int64_t stretch, const std::function<void(int64_t first, int64_t last)>& work,
                       int64_t most_threads) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  int64_t thrower = rows;
  const auto take_stretches = [&] {
    for (int64_t first = next.fetch_add(stretch); first < rows; first = next.fetch_add(stretch)) {
      try {
        work(first, std::min(rows, first + stretch));
      } catch (...) {
        // Stretches are handed out in order: all below this one are done or at work, and will tell if they fail.
        next = rows;
        const std::lock_guard lock(mutex);
        if (first < thrower) {
          thrower = first;
          thrown = std::current_exception();
        }
      }
    }
  };
  const int64_t stretches = (rows + stretch - 1) / stretch;
  const int64_t threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1,
                                              std::max<int64_t>(1, std::min(most_threads, stretches)));
  {
    std::vector<std::jthread> team;
    for (int64_t i = 1; i < threads; ++i) team.emplace_back(take_stretches);
    take_stretches();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace gpunn
