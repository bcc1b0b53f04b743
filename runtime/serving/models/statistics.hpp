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

// A count and the total time.
struct Spent {
  uint64_t count = 0;
  std::chrono::nanoseconds time{0};
  void add(std::chrono::nanoseconds more, uint64_t times = 1) {
    count += times;
    time += more;
  }
};

// Statistics of executions with one number of rows.
struct BatchSpent {
  Spent input, infer, output;
};

// Counts of the requests to a model so far.
struct StatisticsReport {
  std::chrono::milliseconds last_inference{0};  // since 1970; 0: there was none
  uint64_t inferences = 0;                      // rows
  uint64_t executions = 0;                      // batches
  Spent success, fail, queue, input, infer, output;
  std::map<int64_t, BatchSpent> batches;  // by rows
  std::array<uint64_t, kFailureNames.size()> failures{};
  uint64_t pending = 0;  // requests that wait for their batch
};

// A request's part of a batch: its waiting time and its total time.
struct RequestSpent {
  std::chrono::nanoseconds queue{0}, total{0};
};

// Counts for statistics and metrics. Threads may share it.
class Statistics {
 public:
  StatisticsReport report() const;
  void add_failure(Failure why, std::chrono::nanoseconds total);

  // Records an execution of `rows` rows. add_success records each of its requests.
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
