#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "tasks/batch.hpp"

namespace gpunn::tasks {

struct TaskContext;

// The values that a step program has of a batch after the forward pass.
struct BatchResults {
  const ModelOutputs& outputs;
  const Batch& batch;
  graph::ValueId losses = graph::kNoValue;  // f32[N]
};

// A tensor on the device that each batch adds to. It is zero when an evaluation or an epoch of training begins, and
// several ranks sum theirs. The type is f32 or an integer, so that devices without f64 serve it; kTotals alone is f64.
// The host reads integers as f64, which is exact up to 2^53.
struct Accumulator {
  std::string name;  // of the variable, and of the tensor in a checkpoint
  TensorType type;
  // Appends the ops that add a batch to the tensor `sum`, in place. Rows from batch.count on must not be added.
  std::function<void(graph::Graph& g, const TaskContext& context, const BatchResults& results, graph::ValueId sum)> add;
};

// The accumulator of every task, as METRICS_ACCUMULATE defines it: f64[4], whose elements Total names.
inline constexpr const char* kTotals = "totals";
enum class Total { loss, correct, correct5, rows };

// The values of accumulators, read from the device.
class Accumulated {
 public:
  void set(const std::string& name, std::vector<double> values) { values_[name] = std::move(values); }
  // In row-major order. Throws Error if there is no such accumulator.
  std::span<const double> of(std::string_view name) const;
  double total(Total which) const { return of(kTotals)[static_cast<std::size_t>(which)]; }
  double mean_loss() const;  // 0 without rows

 private:
  std::map<std::string, std::vector<double>, std::less<>> values_;
};

}  // namespace gpunn::tasks
