#include "tasks/task.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/words.hpp>

#include <algorithm>
#include <numeric>

#include "fields/values.hpp"

namespace gpunn::tasks {

// A file each.
const Task& classification();
const Task& regression();
const Task& multi_label();
const Task& detection();
const Task& super_resolution();
const Task& style_transfer();
const Task& segmentation();

namespace {

constexpr std::string_view kOfTraining = "train_";
constexpr std::size_t kImageRank = 4;  // [N, C, H, W]

std::vector<const Task*>& known() {
  static std::vector<const Task*> tasks = {&classification(), &regression(), &multi_label(), &super_resolution(),
                                           &style_transfer(), &detection(),  &segmentation()};
  return tasks;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

}  // namespace

Decoded Task::decode(const PredictedRow& row) const {
  std::vector<std::size_t> order(row.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return row.values[a] > row.values[b]; });
  Decoded decoded;
  for (std::size_t k = 0; k < std::min(static_cast<std::size_t>(row.top), order.size()); ++k) {
    decoded.classes.push_back({.index = static_cast<int64_t>(order[k]),
                               .name = row.names[order[k]],
                               .probability = static_cast<double>(row.values[order[k]])});
  }
  return decoded;
}

void Task::add_predictions(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                           graph::ValueId scores, const PlaceOf& place) const {
  const graph::ValueId predictions = place(g.value(scores).type);
  g.add_into(prediction_op(g, context, outputs), "predictions", {}, {scores}, {predictions});
}

gpunn_op Task::prediction_op(const graph::Graph& /*g*/, const TaskContext& /*context*/,
                             const ModelOutputs& /*outputs*/) const {
  return GPUNN_OP_COPY;
}

std::optional<Field> Task::imagined_target(const Shape& outputs) const {
  if (outputs.size() == kImageRank) return std::nullopt;
  Field target = fields::target_field(target_kind(), fields::numbered(outputs.size() < 2 ? 1 : outputs.back()));
  if (outputs.size() > 2 && target.type.dtype == DType::f32) target.type.shape = {outputs.begin() + 1, outputs.end()};
  return target;
}

std::string Task::test_data_advice() const {
  return "put data.test_fraction: 0.2 to take a fifth of the samples, or say with data.test_path where they are";
}

void Task::add_to_totals(graph::Graph& g, const TaskContext& /*context*/, const BatchResults& results,
                         graph::ValueId totals) const {
  g.add(GPUNN_OP_METRICS_ACCUMULATE, "metrics", {}, {results.losses, results.batch.count, totals});
}

std::vector<Accumulator> accumulators_of(const Task& task, const TaskContext& context, Phase phase) {
  std::vector<Accumulator> found = {{kTotals,
                                     {DType::f64, {4}},
                                     [&task](graph::Graph& g, const TaskContext& c, const BatchResults& results,
                                             graph::ValueId sum) { task.add_to_totals(g, c, results, sum); }}};
  for (const TaskMetric& metric : task.metrics()) {
    if (metric.accumulators == nullptr || (phase == Phase::training && !metric.while_training)) continue;
    for (Accumulator& one : metric.accumulators(context)) {
      const bool is_new = std::ranges::find(found, one.name, &Accumulator::name) == found.end();
      if (is_new) found.push_back(std::move(one));
    }
  }
  return found;
}

const std::vector<const Task*>& all() { return known(); }

void add(const Task& task) {
  if (std::ranges::find(known(), task.name(), &Task::name) != known().end()) {
    throw Error("there is a task '" + std::string(task.name()) + "' already; choose another name", ExitCode::usage);
  }
  known().push_back(&task);
}

const Task& find(std::string_view name) {
  for (const Task* task : all()) {
    if (task->name() == name) return *task;
  }
  throw Error("unknown task '" + std::string(name) + "'" + did_you_mean_or_list(name, names()), ExitCode::usage);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Task* task : all()) names.emplace_back(task->name());
  return names;
}

std::vector<std::string> monitor_names(const Task& task) {
  std::vector<std::string> names = {"loss"};
  for (const TaskMetric& one : task.metrics()) names.push_back(one.metric.name);
  names.push_back(std::string(kOfTraining) + "loss");
  for (const TaskMetric& one : task.metrics()) {
    if (one.while_training) names.push_back(std::string(kOfTraining) + one.metric.name);
  }
  return names;
}

std::vector<std::string> monitor_names() {
  std::vector<std::string> names;
  for (const Task* task : all()) {
    for (const std::string& name : monitor_names(*task)) add_once(names, name);
  }
  return names;
}

Metric monitored(std::string_view name) {
  if (name.starts_with(kOfTraining)) {
    Metric metric = monitored(name.substr(kOfTraining.size()));
    metric.name = name;
    metric.title = "training " + metric.title;
    return metric;
  }
  for (const Task* task : all()) {
    for (const TaskMetric& one : task->metrics()) {
      if (one.metric.name == name) return one.metric;
    }
  }
  return {std::string(name), "loss", false, false};
}

}  // namespace gpunn::tasks
