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

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"
#include "fields/kind.hpp"
#include "graph/graph.hpp"
#include "tasks/accumulator.hpp"
#include "tasks/batch.hpp"
#include "tasks/metric.hpp"
#include "tasks/report.hpp"

namespace gpunn::tasks {

struct FrozenFeatures;

// Returns a value of this type for an op to write to.
using PlaceOf = std::function<graph::ValueId(const TensorType& type)>;

// The inputs that a task needs to append its ops to a step program.
struct TaskContext {
  const Experiment& experiment;
  int64_t outputs = 0;                     // that the data asks for: classes, labels or target columns
  const FrozenFeatures* frozen = nullptr;  // of a loss that compares images by their features
  int32_t world = 1;                       // ranks that have a part of the batch each, at the same time
  const Field* target = nullptr;           // the field that is learnt, if the data is known
};

// Numbers that step programs read, the same in every step: an f32 variable of Storage::data.
struct Table {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// What a trained model of a task answers, as programs and the service ask for it.
struct Answers {
  // The names of the model's two outputs: the last layer's numbers, and their meaning.
  std::array<const char*, 2> outputs = {"logits", "probabilities"};
  std::string_view what = "classes";      // in messages: "model 'm' answers with classes"
  std::string_view address = "classify";  // the address of the service that gives them, /v1/ADDRESS; empty: none does
  bool named = true;                      // a number for each name of the target
  bool probabilities = true;              // these numbers are probabilities
  bool images = false;                    // images, which Task::command() writes
  int64_t box_numbers = 0;                // the numbers of a box; 0: the answers are not boxes
  int64_t least = 1;                      // `predict` gives this many of a row, however few classes are asked for
};

// The predictions of a row.
struct PredictedRow {
  std::span<const float> values;          // in row-major order
  const Shape& shape;                     // of the row
  const std::vector<std::string>& names;  // of the target: classes, labels or columns
  int64_t top = 1;                        // answers to give, at most
  bool with_probabilities = false;        // those of label maps, too
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
  // What an evaluation shows besides the metrics: figures of each class or output, the worst rows.
  virtual std::unique_ptr<Report> make_report(const ReportInputs& inputs) const = 0;
  virtual Answers answers() const { return {}; }
  // The meaning of a row's predictions, in the units of the data: for classes and labels the `top` most probable; equal
  // ones keep their order.
  virtual Decoded decode(const PredictedRow& row) const;
  // The command that puts a trained model of the task to use, without the program's name: "predict RUN --row 0".
  virtual std::string command(const std::string& model) const { return "predict " + model + " --row 0"; }
  // Keys of the section `loss` that its losses have, but for other tasks.
  virtual std::span<const std::string_view> unused_loss_keys() const { return {}; }
  // Whether it learns a class of each sample.
  bool has_labels() const { return fields::find(target_kind()).is_class(); }

  // Finds values of the data's keys that are not for this task. The data set has what the task learns.
  virtual void check_data(const DataConfig& /*data*/, const config::GivenKeys& /*given*/,
                          config::Diagnostics& /*found*/) const {}
  // A target that fits outputs [N, ...] of this shape, for plans and benchmarks without data; nothing if the task can't
  // compare such outputs with a target.
  virtual std::optional<Field> imagined_target(const Shape& outputs) const;
  // The keys that choose test samples, for a data set that has none: "put data.test_fraction: ...".
  virtual std::string test_data_advice() const;

  // The loss by which outputs [N, ...] of this shape have `names` meanings, if there is only one such loss.
  virtual std::optional<LossKind> implied_loss(const Shape& /*outputs*/, int64_t /*names*/) const { return {}; }

  // Whether a model that ends in a layer of this type is of this task, whatever the data.
  virtual bool is_of_layer(std::string_view /*type*/) const { return false; }
  // Whether there is a loss to train such a model by.
  virtual bool trains_layer(std::string_view /*type*/) const { return true; }

  // Throws ConfigError, with loss, last layer and data, if the model's outputs do not fit them.
  virtual void require_output(const graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const = 0;
  // The variables that its losses read. Throws ConfigError if the settings of the loss do not fit the data.
  virtual std::vector<Table> tables(const TaskContext& /*context*/) const { return {}; }
  // The loss of each row, f32[N], of outputs that fit, as the training minimises it and as evaluations report it.
  virtual graph::ValueId add_training_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                           const Batch& batch) const = 0;
  virtual graph::ValueId add_evaluation_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                             const Batch& batch) const = 0;
  // Adds a batch to kTotals: its losses and rows, and of a task that has ranks also those.
  virtual void add_to_totals(graph::Graph& g, const TaskContext& context, const BatchResults& results,
                             graph::ValueId totals) const;
  // [N, numbers] that ranks a row's outputs before they become a prediction; most often the output itself.
  virtual graph::ValueId add_scores(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const = 0;
  // Appends the ops that make predictions [N, ...] of the scores. The last op writes to place(type), which is called
  // once with the type of the predictions: f32 or i32.
  virtual void add_predictions(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                               graph::ValueId scores, const PlaceOf& place) const;

 protected:
  // The op that makes predictions of the scores, of the same type; for tasks that need no other.
  virtual gpunn_op prediction_op(const graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const;
};

// kTotals, and the accumulators of the metrics that the phase measures; each name once.
std::vector<Accumulator> accumulators_of(const Task& task, const TaskContext& context, Phase phase);

const std::vector<const Task*>& all();
// Adds a task of the program, which must outlive all uses, before an experiment names it. Throws Error(usage) if there
// is a task of this name.
void add(const Task& task);
const Task& find(std::string_view name);  // throws Error(usage) where there is none
std::vector<std::string> names();

// The possible values of a monitor: "loss", each metric, and with "train_" in front those that the training keeps.
std::vector<std::string> monitor_names(const Task& task);
std::vector<std::string> monitor_names();  // of all tasks, each once

// A metric by the name under which a monitor watches it. Other names give a loss: less is better.
Metric monitored(std::string_view name);

}  // namespace gpunn::tasks
