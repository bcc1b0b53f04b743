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

// One class of the test data. The figures of a class that is neither the label nor the prediction of any row are
// undefined. Else a quotient with divisor 0 is 0, as scikit-learn has it by default.
struct ClassReport {
  int64_t index = 0;
  std::string name;
  int64_t rows = 0;       // of this class
  int64_t predicted = 0;  // predicted as this class, rightly or wrongly
  int64_t correct = 0;    // of this class and predicted as this class
  double precision = 0;   // correct / predicted
  double recall = 0;      // correct / rows
  double f1 = 0;          // the harmonic mean of the two, 2 correct / (predicted + rows)
};

// A test row that was predicted as another class than its own.
struct Mistake {
  int64_t row = 0;  // counts from 0
  int64_t label = 0, predicted = 0;
  double probability = 0;        // of the predicted class
  double label_probability = 0;  // of the true class
  double loss = 0;
};

// One target column or label of the test data.
struct OutputReport {
  int64_t index = 0;
  std::string name;
  std::optional<int64_t> rows = {};  // of a label: rows that have it
  Scores scores;
};

// A test row that was predicted badly.
struct RowReport {
  int64_t row = 0;  // counts from 0
  double loss = 0;
  std::string target, prediction;  // for readers: "cat, dog"
};

// A test image, and what the model made of its small form: bytes [channels, height, width] each.
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
  double ap = 0;                          // at an overlap of 0.5, all points; undefined without objects
  double coco_ap = 0;                     // mean over the overlaps from 0.5 to 0.95; undefined without objects
  std::vector<double> precision, recall;  // a point for each detection, in order of falling score
};

// A test image with its objects and the detected objects.
struct DetectedImage {
  int64_t row = 0;  // counts from 0
  double loss = 0;
  std::string picture;  // a PNG file's bytes
};

// How well a detector finds the objects of the evaluated images.
struct DetectionReport {
  std::vector<DetectedClass> classes;
  // Names and values: "VOC, 11 points", "COCO, small objects", ... Undefined without objects of the kind.
  std::vector<std::pair<std::string, double>> figures;
  // [classes + 1, classes + 1]: objects by their class and by the class of the detection that covers them. The last row
  // holds detections that cover no object, the last column objects that were not detected. Counts detections with a
  // score of at least `least_score`.
  std::vector<int64_t> confusion;
  double least_score = 0.5;
  std::vector<DetectedImage> worst;  // by falling loss
};

// Above this number of classes there is no confusion matrix: it would take more than 128 MiB.
inline constexpr int64_t kMostConfusionClasses = 4096;

// A model's results on the test data, for each class, or for each output if there are no classes.
struct ClassEvalReport {
  EvalReport total;
  std::string targets = "class";      // the kind of the field that is learnt
  std::string output;                 // what one output is called: "label"
  std::vector<OutputReport> outputs;  // of data without classes; of images one for each image
  std::vector<ImageReport> images;    // of images: the first ones
  std::vector<RowReport> worst_rows;  // of data without classes: largest loss first
  // Of all rows, [rows, outputs], in the units of the data set; of numbers.
  std::vector<double> target_values, predicted_values;
  std::vector<ClassReport> classes;
  // Means of the defined figures: over the classes that are the label or the prediction of at least one row.
  double macro_precision = 0, macro_recall = 0, macro_f1 = 0;
  // [classes, classes]: true class by row, predicted class by column. Rows whose outputs are NaN are not counted. Empty
  // if there are more than kMostConfusionClasses classes.
  std::vector<int64_t> confusion;
  std::optional<DetectionReport> detection;  // of boxes
  std::vector<Mistake> mistakes;             // largest loss first

  int64_t confused(int64_t label, int64_t predicted) const {
    return confusion[static_cast<std::size_t>(label) * classes.size() + static_cast<std::size_t>(predicted)];
  }
};

// Returns at most `mistakes` of the worst rows or images.
GPUNN_API ClassEvalReport evaluate_classes(const TrainedModel& model, int64_t mistakes = 0,
                                           TrainingListener* listener = nullptr);

}  // namespace gpunn
