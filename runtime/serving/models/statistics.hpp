#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

namespace gpunn::serving {

// Why a request failed, in Triton's words: REJECTED before it ran, CANCELED by its client, failed in the BACKEND,
// OTHER.
enum class Failure { rejected, canceled, backend, other };
inline constexpr std::array<const char*, 4> kFailureNames = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};

// So many of something took so long in all.
struct Spent {
  uint64_t count = 0;
  std::chrono::nanoseconds time{0};
  void add(std::chrono::nanoseconds more, uint64_t times = 1) {
    count += times;
    time += more;
  }
};

// Of the executions with one number of rows.
struct BatchSpent {
  Spent input, infer, output;
};

// What became of the requests to a model so far.
struct StatisticsReport {
  std::chrono::milliseconds last_inference{0};  // since 1970; 0: there was none
  uint64_t inferences = 0;                      // rows
  uint64_t executions = 0;                      // batches
  Spent success, fail, queue, input, infer, output;
  std::map<int64_t, BatchSpent> batches;  // by rows
  std::array<uint64_t, kFailureNames.size()> failures{};
  uint64_t pending = 0;  // requests that wait for their batch
};

// Part of a batch: what one request waited, and how long it took in all.
struct RequestSpent {
  std::chrono::nanoseconds queue{0}, total{0};
};

// Counts for statistics and metrics. Threads may share it.
class Statistics {
 public:
  StatisticsReport report() const;
  void add_failure(Failure why, std::chrono::nanoseconds total);

  // An execution of `rows` rows. Each of its requests is told by add_success.
  void add_execution(int64_t rows, std::chrono::nanoseconds input, std::chrono::nanoseconds infer,
                     std::chrono::nanoseconds output, uint64_t requests);
  void add_success(RequestSpent spent);

  void enter_queue() { pending_.fetch_add(1, std::memory_order_relaxed); }
  void leave_queue() { pending_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  StatisticsReport report_;
  std::atomic<uint64_t> pending_{0};
};

}  // namespace gpunn::serving
