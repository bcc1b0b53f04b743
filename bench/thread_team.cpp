// Measures the overhead of a parallel loop: thread_team [MICROSECONDS [THREADS...]]. Each thread has one task of this
// length, on the cpu backend's team and on OpenMP's; then the same with an equally long gap before each loop. Prints
// the median time of a loop minus that of a task.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <omp.h>

#include "threads/parallel.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kLoops = 2000;
constexpr double kGaps[] = {0, 20, 100, 1000};  // microseconds

void be_busy(double microseconds) {
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(Microseconds(microseconds));
  while (Clock::now() < end) {
  }
}

template <class Loop>
double median_overhead(double task, double gap, const Loop& loop) {
  std::vector<double> times(gap > 500 ? kLoops / 10 : kLoops);
  for (double& time : times) {
    be_busy(gap);
    const Clock::time_point begin = Clock::now();
    loop();
    time = Microseconds(Clock::now() - begin).count() - task;
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void measure(double task, int threads) {
  const auto on_team = [=] { gpunn::cpu::parallel_for(threads, threads, [=](int64_t, int) { be_busy(task); }); };
  const auto on_openmp = [=] {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int i = 0; i < threads; ++i) be_busy(task);
  };
  for (const double gap : kGaps) {
    std::printf("%7d  %8.1f  %8.0f  %8.2f  %8.2f\n", threads, task, gap, median_overhead(task, gap, on_team),
                median_overhead(task, gap, on_openmp));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double task = argc > 1 ? std::atof(argv[1]) : 10;
  std::vector<int> threads;
  for (int i = 2; i < argc; ++i) threads.push_back(std::max(1, std::atoi(argv[i])));
  if (threads.empty()) {
    for (int count = 2; count < omp_get_num_procs(); count *= 2) threads.push_back(count);
    threads.push_back(omp_get_num_procs());
  }
  std::printf("THREADS   TASK us    GAP us   TEAM us  OPENMP us\n");
  for (const int count : threads) measure(task, count);
}
