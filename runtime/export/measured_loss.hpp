// How much worse a model is in eight bits: by the metric of its task, in the evaluation of `gpunn eval`.
#pragma once

#include <gpunn/data.hpp>
#include <gpunn/metric.hpp>
#include <gpunn/quantization.hpp>

#include <filesystem>
#include <string>

#include "runs/trained_model.hpp"

namespace gpunn::interchange {

class MeasuredLoss {
 public:
  // Evaluates the model itself. Both must outlive this object.
  MeasuredLoss(const training::TrainedFile& trained, const Dataset& data);

  // Empty: there is a figure to compare. Else why there is none.
  const std::string& reason() const { return reason_; }
  // Evaluates an ONNX file of the model in eight bits and completes the report.
  void compare(const std::filesystem::path& file, QuantizeReport& report) const;

 private:
  EvalReport evaluate(Experiment experiment, const storage::Checkpoint& checkpoint) const;
  void choose_figure();

  const training::TrainedFile& trained_;
  const Dataset& data_;
  EvalReport before_;
  Score figure_;
  std::string reason_;
};

// The loss in the direction of the metric: points of a share, else percent of the value before. Negative for a gain;
// infinite if the value after is undefined.
double lost(const Metric& metric, double before, double after);
// "1.25 points", or "1.25 %".
std::string lost_text(const Metric& metric, double loss);

}  // namespace gpunn::interchange
