#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/metric.hpp>
#include <gpunn/model.hpp>
#include <gpunn/ops.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fields/kind.hpp"
#include "graph/graph.hpp"
#include "tasks/accumulator.hpp"
#include "tasks/batch.hpp"
#include "tasks/detection/boxes.hpp"

namespace gpunn::tasks {

struct FrozenFeatures;

// For rows whose targets are images: the model's inputs, [rows, C, H, W] with input_shape for one, and the shape of a
// target.
struct ScoredImages {
  Shape input_shape, target_shape;
  std::span<const float> inputs;
  int64_t scale = 1;  // how many times larger targets are than what was made of them
};

// Rows of an evaluation, in host memory: predictions and targets, [rows, outputs] each, both in the units of the data
// set.
struct ScoredRows {
  int64_t outputs = 0;  // of a row's predictions; of its targets too, where target_size is 0
  std::span<const float> predictions, targets;
  std::optional<ScoredImages> images = {};
  int64_t target_size = 0;
  // Numbers of a regression replace the two arrays above. They are in the units of the data set, and the mean of the
  // training targets is subtracted from both.
  std::span<const double> predicted_numbers = {}, target_numbers = {};
  std::span<const TrueImage> originals = {};  // of rows with boxes: the files' images, if the data has them
};

// Gathers the rows of an evaluation to a number.
class RowMetric {
 public:
  virtual ~RowMetric() = default;
  virtual void add(const ScoredRows& rows) = 0;
  virtual double value() const = 0;  // kUndefined if the rows do not define it
  // The value for each output; empty for a metric of whole rows.
  virtual std::vector<double> by_output() const { return {}; }
};

// A metric of a task with the way to it: from accumulators that the device keeps, or on the host from each row of an
// evaluation.
struct TaskMetric {
  Metric metric;
  bool while_training = false;  // also measured on the batches of training; not a metric of rows
  double (*of_sums)(const Accumulated& sums) = nullptr;
  std::vector<Accumulator> (*accumulators)(const TaskContext& context) = nullptr;  // that of_sums() reads, but kTotals
  std::unique_ptr<RowMetric> (*of_rows)() = nullptr;
  int64_t above_outputs = 0;  // applies to models of more outputs than these
};

// The inputs that a task needs to append its ops to a step program.
struct TaskContext {
  const Experiment& experiment;
  int64_t outputs = 0;                     // that the data asks for: classes, labels or target columns
  const FrozenFeatures* frozen = nullptr;  // of a loss that compares images by their features
  int32_t world = 1;                       // ranks that have a part of the batch each, at the same time
};

// The purpose of a model: its targets in the data, its loss, its metrics, and the meaning of its output. A task is a
// file in this folder and a line in task.cpp; it holds no state.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::string_view name() const = 0;                // as experiments have it
  virtual std::string_view help() const = 0;                // one clause: what a sample has and what is learnt
  virtual std::string_view target_kind() const = 0;         // the kind of field that it learns
  virtual std::string_view output() const = 0;              // what an output stands for, in messages: "class"
  virtual std::string_view target() const = 0;              // several of them: "classes"
  virtual std::span<const TaskMetric> metrics() const = 0;  // the most telling first: what `monitor` is by default
  virtual std::span<const LossKind> losses() const = 0;     // the default first
  // The metrics of each output.
  virtual std::span<const TaskMetric> output_metrics() const { return {}; }
  // A row's targets, or predictions, as a reader has them: "cat, dog".
  virtual std::string row_text(std::span<const float> values, const std::vector<std::string>& names) const = 0;
  // The names of a trained model's two outputs: the last layer's numbers, and their meaning.
  virtual std::array<const char*, 2> output_names() const { return {"logits", "probabilities"}; }
  // The meaning of a row's predictions, in the units of the data: for classes and labels the `top` most probable; equal
  // ones keep their order.
  virtual Decoded decode(std::span<const float> predictions, const std::vector<std::string>& names, int64_t top) const;
  // Whether an output is one of what the data names; else rows are of other sizes, and the names are told with them.
  virtual bool names_outputs() const { return true; }
  // The command that puts a trained model of the task to use, without the program's name: "predict RUN --row 0".
  virtual std::string command(const std::string& model) const { return "predict " + model + " --row 0"; }
  // Whether it learns a class of each sample.
  bool has_labels() const { return fields::find(target_kind()).is_class(); }

  // Whether a model that ends in a layer of this type is of this task, whatever the data.
  virtual bool is_of_layer(std::string_view /*type*/) const { return false; }
  // Whether there is a loss to train such a model by.
  virtual bool trains_layer(std::string_view /*type*/) const { return true; }

  // Throws ConfigError, with loss, last layer and data, if the model's outputs do not fit them.
  virtual void require_output(const graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const = 0;
  // The loss of each row, f32[N], of outputs that fit, as the training minimises it and as evaluations report it.
  virtual graph::ValueId add_training_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                           const Batch& batch) const = 0;
  virtual graph::ValueId add_evaluation_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                             const Batch& batch) const = 0;
  // Adds a batch to kTotals: its losses and rows, and of a task that has ranks also those.
  virtual void add_to_totals(graph::Graph& g, const TaskContext& context, const BatchResults& results,
                             graph::ValueId totals) const;
  // f32[N, outputs] that ranks a row's outputs before they become a prediction; most often the output itself.
  virtual graph::ValueId add_scores(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const = 0;
  // The op, from f32[N, outputs] to the same, that makes predictions of the scores.
  virtual gpunn_op prediction_op(const graph::Graph& g, const TaskContext& context,
                                 const ModelOutputs& outputs) const = 0;
};

// The batches that metrics are of: those of an epoch of training, or of an evaluation.
enum class Phase { training, evaluation };

// kTotals, and the accumulators of the metrics that the phase measures; each name once.
std::vector<Accumulator> accumulators_of(const Task& task, const TaskContext& context, Phase phase);

const std::vector<const Task*>& all();
const Task& find(std::string_view name);  // throws Error(usage) where there is none
std::vector<std::string> names();

// A row of a regression, as a reader has it: "price 1.25, rent 7". `stddev` has the deviation of each target column, or
// is empty.
std::string numbers_text(std::span<const double> values, const std::vector<std::string>& names,
                         std::span<const double> stddev);

// The possible values of a monitor: "loss", each metric, and with "train_" in front those that the training keeps.
std::vector<std::string> monitor_names(const Task& task);
std::vector<std::string> monitor_names();  // of all tasks, each once

// A metric by the name under which a monitor watches it. Other names give a loss: less is better.
Metric monitored(std::string_view name);

}  // namespace gpunn::tasks
