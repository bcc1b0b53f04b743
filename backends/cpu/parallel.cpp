#include "parallel.hpp"

#include <atomic>

namespace gpunn::cpu {
namespace {

constexpr int kMostThreads = 1024;
std::atomic<int> team_size{0};

}  // namespace

int thread_count() {
  const int threads = team_size.load(std::memory_order_relaxed);
  return threads > 0 ? threads : std::clamp(omp_get_max_threads(), 1, kMostThreads);
}

void set_thread_count(int threads) { team_size.store(std::clamp(threads, 0, kMostThreads), std::memory_order_relaxed); }

}  // namespace gpunn::cpu
