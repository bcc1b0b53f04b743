#include "threads/parallel.hpp"

#include <atomic>

#include <omp.h>

#include "threads/thread_team.hpp"

namespace gpunn::cpu {
namespace {

std::atomic<int> team_size{0};

}  // namespace

int thread_count() {
  const int threads = team_size.load(std::memory_order_relaxed);
  return threads > 0 ? threads : std::clamp(omp_get_max_threads(), 1, ThreadTeam::kMostThreads);
}

void set_thread_count(int threads) {
  team_size.store(std::clamp(threads, 0, ThreadTeam::kMostThreads), std::memory_order_relaxed);
}

void run_on_team(int threads, int64_t tasks, void (*body)(const void* context, int64_t task, int thread),
                 const void* context) {
  ThreadTeam::of_process().run(threads, tasks, body, context);
}

}  // namespace gpunn::cpu
