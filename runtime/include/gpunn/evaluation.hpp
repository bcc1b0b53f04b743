#pragma once

#include <gpunn/data.hpp>
#include <gpunn/export.h>
#include <gpunn/training.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpunn {

// One class of the test data. If the divisor is 0, so is the quotient.
struct ClassReport {
  int64_t index = 0;
  std::string name;
  int64_t rows = 0;       // of this class
  int64_t predicted = 0;  // taken for this class, rightly or not
  int64_t correct = 0;    // both
  double precision = 0;   // correct / predicted
  double recall = 0;      // correct / rows
  double f1 = 0;          // the harmonic mean of the two, 2 correct / (predicted + rows)
};

// A row of the test data that was taken for another class than its own.
struct Mistake {
  int64_t row = 0;  // counts from 0
  int64_t label = 0, predicted = 0;
  double probability = 0;        // of the predicted class
  double label_probability = 0;  // of its own
  double loss = 0;
};

// A target column or a label of the test data, by itself.
struct OutputReport {
  int64_t index = 0;
  std::string name;
  std::optional<int64_t> rows = {};  // of a label: that have it
  Scores scores;
};

// A row of the test data that was foretold badly.
struct RowReport {
  int64_t row = 0;  // counts from 0
  double loss = 0;
  std::string target, prediction;  // for readers: "cat, dog"
};

// An image of the test data and what the model made of its small form: bytes [channels, height, width] each.
struct ImageReport {
  std::string name;
  int64_t channels = 1, height = 0, width = 0;
  std::vector<uint8_t> bicubic, enlarged, original;
  Scores scores;
};

// A class of a detection's test data.
struct DetectedClass {
  std::string name;
  int64_t objects = 0, detections = 0;
  double ap = 0;                          // at an overlap of 0.5, all points; NaN without objects
  std::vector<double> precision, recall;  // as less and less certain detections are taken in
};

// An image of the test data with what is there and what was found.
struct DetectedImage {
  int64_t row = 0;  // counts from 0
  double loss = 0;
  std::string picture;  // a PNG file's bytes
};

// How well a detector finds the objects of the evaluated images.
struct DetectionReport {
  std::vector<DetectedClass> classes;
  // Names and values: "VOC, 11 points", "COCO, small objects", ...
  std::vector<std::pair<std::string, double>> figures;
  // [classes + 1, classes + 1]: objects by their class and by that of the detection that covers them; the last row has
  // detections of nothing, the last column objects that are not detected. Of scores of at least `least_score`.
  std::vector<int64_t> confusion;
  double least_score = 0.5;
  std::vector<DetectedImage> worst;  // by falling loss
};

// A matrix of as many takes 128 MiB.
inline constexpr int64_t kMostConfusionClasses = 4096;

// A model on its test data, class by class, or output by output where there are no classes.
struct ClassEvalReport {
  EvalReport total;
  TargetKind targets = TargetKind::one_class;
  std::string output;                 // what an output stands for: "label"
  std::vector<OutputReport> outputs;  // of data without classes; of TargetKind::image each image
  std::vector<ImageReport> images;    // of TargetKind::image: the first so many
  std::vector<RowReport> worst_rows;  // likewise: those with the largest loss, by falling loss
  // Of all rows, [rows, outputs], in the units of the data set; of TargetKind::numbers.
  std::vector<float> target_values, predicted_values;
  std::vector<ClassReport> classes;
  // Means over the classes that are the label or the prediction of any row.
  double macro_precision = 0, macro_recall = 0, macro_f1 = 0;
  // [classes, classes]: rows by their own class, and within it by the predicted one. A row whose outputs are NaN is not
  // counted here. Empty where there are more than kMostConfusionClasses.
  std::vector<int64_t> confusion;
  std::optional<DetectionReport> detection;  // of TargetKind::boxes
  std::vector<Mistake> mistakes;             // those with the largest loss, by falling loss

  int64_t confused(int64_t label, int64_t predicted) const {
    return confusion[static_cast<std::size_t>(label) * classes.size() + static_cast<std::size_t>(predicted)];
  }
};

// `mistakes`: at most so many of them, of the worst rows or of the images are told.
GPUNN_API ClassEvalReport evaluate_classes(const TrainedModel& model, int64_t mistakes = 0,
                                           TrainingListener* listener = nullptr);

}  // namespace gpunn
