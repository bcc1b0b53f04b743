#pragma once

#include <gpunn/data.hpp>
#include <gpunn/export.h>
#include <gpunn/training.hpp>

#include <cstddef>
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

// One target column, label or class of pixels of the test data.
struct OutputReport {
  int64_t index = 0;
  std::string name;
  std::optional<int64_t> rows = {};  // of a label: rows that have it; of a class of pixels: its pixels
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

// A test image with what is there and what the model found.
struct WorstPicture {
  int64_t row = 0;  // counts from 0
  double loss = 0;
  std::string picture;  // a PNG file's bytes
};

// Counts by the true class, row by row, and the predicted class.
struct ConfusionMatrix {
  std::vector<std::string> names;  // of the rows and the columns
  std::vector<int64_t> counts;     // [names, names]; empty if there are more than kMostConfusionClasses names
  std::string note;                // for readers: what is counted; empty: rows of the data
  std::size_t side() const { return counts.empty() ? 0 : names.size(); }
  int64_t at(std::size_t truth, std::size_t predicted) const { return counts[truth * names.size() + predicted]; }
  int64_t row_sum(std::size_t truth) const {
    int64_t sum = 0;
    for (std::size_t i = 0; i < side(); ++i) sum += at(truth, i);
    return sum;
  }
};

// How well a detector finds the objects of the evaluated images.
struct DetectionReport {
  std::vector<DetectedClass> classes;
  // Names and values: "VOC, 11 points", "COCO, small objects", ... Undefined without objects of the kind.
  std::vector<std::pair<std::string, double>> figures;
};

// Above this number of classes there is no confusion matrix: it would take more than 128 MiB.
inline constexpr int64_t kMostConfusionClasses = 4096;

// A model's results on the test data. The task fills in the parts that it has; the others are empty.
struct ClassEvalReport {
  EvalReport total;
  std::string output;                 // what one output is called: "label"
  std::string counted = "rows";       // what OutputReport::rows and the confusion matrix count: or "pixels"
  std::vector<OutputReport> outputs;  // of labels and columns; of models that make images, one for each image
  std::vector<ImageReport> images;    // of models that make images: the first ones
  std::vector<RowReport> worst_rows;  // of labels and columns: largest loss first
  // Of a regression: all rows, [rows, outputs], in the units of the data set.
  std::vector<double> target_values, predicted_values;
  std::vector<ClassReport> classes;
  // Means of the defined figures: over the classes that are the label or the prediction of at least one row.
  double macro_precision = 0, macro_recall = 0, macro_f1 = 0;
  // Rows whose outputs are NaN are not counted. The last name of a detection is "nothing": boxes without an object, and
  // objects that were not detected.
  ConfusionMatrix confusion;
  std::optional<DetectionReport> detection;
  std::vector<Mistake> mistakes;             // largest loss first
  std::vector<WorstPicture> worst_pictures;  // largest loss first
  std::string pictures_note;                 // for readers: what these show
};

// Returns at most `mistakes` of the worst rows or images.
GPUNN_API ClassEvalReport evaluate_classes(const TrainedModel& model, int64_t mistakes = 0,
                                           TrainingListener* listener = nullptr);

}  // namespace gpunn
