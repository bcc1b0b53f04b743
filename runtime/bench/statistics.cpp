#include "bench/statistics.hpp"

#include <gpunn/progress.hpp>

#include <algorithm>
#include <chrono>

namespace gpunn::bench {

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs) {
  if (options.repeats < 1) throw Error("repeats must be at least 1", ExitCode::usage);
  LongWork work("timing", static_cast<uint64_t>(options.warmup + options.repeats));
  for (int64_t i = 0; i < options.warmup; ++i, work.advance()) sample();
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.repeats; ++i, work.advance()) {
    const auto start = std::chrono::steady_clock::now();
    sample();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / runs);
  }
  std::ranges::sort(seconds);
  BenchReport report;
  report.repeats = options.repeats;
  report.min_seconds = seconds.front();
  report.max_seconds = seconds.back();
  report.median_seconds = median_of_sorted(seconds);
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
