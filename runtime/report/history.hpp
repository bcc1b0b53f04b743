#pragma once

#include <gpunn/evaluation_part.hpp>
#include <gpunn/metric.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace gpunn::reports {

// A line of metrics.jsonl. Missing values, and values that are not numbers, are NaN.
struct Record {
  int64_t step = 0;   // done
  int64_t epoch = 0;  // counts from 1
  double train_loss = 0, learning_rate = 0, samples_per_second = 0;
  std::vector<double> train_scores;  // of History::metrics
  // At the end of an epoch:
  double loss = 0;             // on the part that the run was evaluated on
  std::vector<double> scores;  // likewise, of History::metrics
  double train_seconds = 0;
  bool best = false;
};

struct History {
  std::vector<Metric> metrics;
  std::vector<Record> steps;                   // within epochs
  std::vector<Record> epochs;                  // at their ends
  EvaluationPart part = EvaluationPart::test;  // as the records name it
};

// By rising step, with the figures of these metrics. Lines that are no records are passed over, as the last of a run
// that was killed. No file: no records.
History read_history(const std::filesystem::path& metrics_jsonl, std::vector<Metric> metrics);

}  // namespace gpunn::reports
