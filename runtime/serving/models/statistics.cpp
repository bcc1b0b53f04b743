#include "serving/models/statistics.hpp"

namespace gpunn::serving {

StatisticsReport Statistics::report() const {
  const std::lock_guard lock(mutex_);
  StatisticsReport report = report_;
  report.pending = pending_.load(std::memory_order_relaxed);
  return report;
}

void Statistics::add_failure(Failure why, std::chrono::nanoseconds total) {
  const std::lock_guard lock(mutex_);
  ++report_.failures[static_cast<std::size_t>(why)];
  report_.fail.add(total);
}

void Statistics::add_execution(int64_t rows, std::chrono::nanoseconds input, std::chrono::nanoseconds infer,
                               std::chrono::nanoseconds output, uint64_t requests) {
  const std::lock_guard lock(mutex_);
  report_.last_inference =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  report_.inferences += static_cast<uint64_t>(rows);
  ++report_.executions;
  // Each request of a batch takes as long as the batch does.
  const auto times = static_cast<std::chrono::nanoseconds::rep>(requests);
  report_.input.add(input * times, requests);
  report_.infer.add(infer * times, requests);
  report_.output.add(output * times, requests);
  BatchSpent& batch = report_.batches[rows];
  batch.input.add(input);
  batch.infer.add(infer);
  batch.output.add(output);
}

void Statistics::add_success(RequestSpent spent) {
  const std::lock_guard lock(mutex_);
  report_.success.add(spent.total);
  report_.queue.add(spent.queue);
}

}  // namespace gpunn::serving
