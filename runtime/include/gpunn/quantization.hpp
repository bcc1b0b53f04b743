#pragma once

#include <gpunn/evaluation_part.hpp>
#include <gpunn/export.h>
#include <gpunn/metric.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// How the range that eight bits stand for follows from the numbers of the calibration.
enum class CalibrationMethod { maximum, entropy, percentile };

// How ranges are calibrated, and how much may be lost.
struct QuantizeOptions {
  CalibrationMethod method = CalibrationMethod::entropy;
  double percentile = 99.99;   // of the numbers of a tensor that are not 0: the share within the range
  int64_t images = 512;        // samples, spread evenly over the part
  std::string part = "train";  // of the data: "train", "validation" or "test"
  // The most that the task's metric may lose on the test rows: points of a metric in percent, else percent of its value
  // before. More is an error, and nothing is written. Default: 0.4, unless nothing can be measured; a given number is
  // an error then.
  std::optional<double> most_lost = {};
  std::filesystem::path cache = {};  // of ranges: read where it is of the same model, data and options, else written
};

// A tensor in eight bits.
struct QuantizedLayer {
  std::string name;  // of the layer that gives it
  double scale = 1;
  int64_t zero_point = 0;
  double decibels = 0;  // of the tensor over its error, of the model in eight bits
};

// The layers in eight bits, and what they cost.
struct QuantizeReport {
  std::filesystem::path file;
  int64_t images = 0;
  bool from_cache = false;
  std::vector<QuantizedLayer> layers;
  std::vector<std::string> convolutions;  // that the backend runs in eight bits
  std::vector<std::string> dense;         // likewise, of dense layers
  // The loss on the rows that `gpunn eval` evaluates: of the first metric of the task that they define.
  int64_t rows = 0;
  EvaluationPart part = EvaluationPart::test;
  std::optional<Metric> metric;
  std::optional<double> before, after;
  std::optional<double> lost;                             // points if metric->is_share, else percent of `before`
  std::string not_measured;                               // why there is none of these; else empty
  std::optional<double> accuracy_before, accuracy_after;  // the same, of a classification
};

// Writes a trained model whose convolutions and dense layers are in eight bits as an ONNX file, with QuantizeLinear and
// DequantizeLinear around them (QDQ): Model::load, `gpunn eval` and ONNX Runtime read it. Filters have a scale each, by
// their largest weight; the ranges of other tensors come from calibration. Throws Error: usage for an option that is
// wrong or a model without any of these, failed if more than `most_lost` is lost.
GPUNN_API QuantizeReport quantize(const TrainedModel& model, const std::filesystem::path& file,
                                  const QuantizeOptions& options = {}, TrainingListener* listener = nullptr);

}  // namespace gpunn
