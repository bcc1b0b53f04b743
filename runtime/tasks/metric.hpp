// How the metrics of tasks are computed.
#pragma once

#include <gpunn/evaluation.hpp>
#include <gpunn/metric.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tasks/accumulator.hpp"
#include "tasks/evaluated_rows.hpp"

namespace gpunn::tasks {

// A metric over one evaluation, or over one epoch of training.
class MetricTally {
 public:
  virtual ~MetricTally() = default;
  // Adds evaluated rows to accumulators in host memory. Called only if TaskMetric::on_host is set.
  virtual void add(const EvaluatedRows& /*rows*/) {}
  // The value from these accumulators and from `sums`, those of the device; kUndefined if the rows do not define it.
  virtual double value(const Accumulated& sums) const = 0;
  // The value of each output, such as a class or a target column; empty for metrics of whole rows.
  virtual std::vector<double> by_output(const Accumulated& /*sums*/) const { return {}; }
};

// A metric of a task: its name and direction, and its accumulators on the device, on the host, or on both.
struct TaskMetric {
  Metric metric;
  std::unique_ptr<MetricTally> (*tally)() = nullptr;
  bool on_host = false;  // the evaluation copies the outputs of every row to host memory, and shows them to the tally
  // Accumulators on the device that the tally reads, besides kTotals.
  std::vector<Accumulator> (*accumulators)(const TaskContext& context) = nullptr;
  bool while_training = false;  // also measured on the batches of training; not for metrics on the host
  int64_t above_outputs = 0;    // applies to models of more outputs than this
};

template <class Tally>
std::unique_ptr<MetricTally> make_tally() {
  return std::make_unique<Tally>();
}

// The tally of a metric that is a function of the device's sums.
template <double (*function)(const Accumulated& sums)>
class OfSums : public MetricTally {
 public:
  double value(const Accumulated& sums) const override { return function(sums); }
};

// The batches that metrics are of: those of an epoch of training, or of an evaluation.
enum class Phase { training, evaluation };

// Several metrics over the same rows.
class MetricTallies {
 public:
  // Those of the metrics that the phase measures.
  explicit MetricTallies(std::span<const TaskMetric> metrics, Phase phase = Phase::evaluation);
  void add(const EvaluatedRows& rows);
  // Without rows, metrics on the host are undefined. `outputs` is the number of the model's outputs.
  Scores scores(const Accumulated& sums, int64_t outputs) const;
  // A report for each name with the metrics that have a value for each output.
  std::vector<OutputReport> by_output(const Accumulated& sums, std::span<const std::string> names) const;

 private:
  struct One {
    TaskMetric metric;
    std::unique_ptr<MetricTally> tally;
  };
  std::vector<One> tallies_;
};

bool any_on_host(std::span<const TaskMetric> metrics);

}  // namespace gpunn::tasks
