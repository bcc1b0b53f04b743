#include "bench/statistics.hpp"

#include <algorithm>
#include <chrono>

namespace gpunn::bench {

BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs) {
  if (options.repeats < 1) throw Error("repeats must be at least 1", ExitCode::usage);
  for (int64_t i = 0; i < options.warmup; ++i) sample();
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    sample();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / runs);
  }
  std::ranges::sort(seconds);
  BenchReport report;
  report.repeats = options.repeats;
  report.min_seconds = seconds.front();
  report.max_seconds = seconds.back();
  const std::size_t middle = seconds.size() / 2;
  report.median_seconds = seconds.size() % 2 == 1 ? seconds[middle] : 0.5 * (seconds[middle - 1] + seconds[middle]);
  return report;
}

void add_pool(const execution::Backend& backend, BenchReport& report) {
  const execution::PoolStatistics& pool = backend.pool_statistics();
  report.pool_requests = pool.requests;
  report.pool_hits = pool.hits;
  report.pool_hit_rate = pool.hit_rate();
  report.pool_peak_bytes = pool.peak_bytes;
}

}  // namespace gpunn::bench
