#include "session/notices.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <sstream>

#include "common/text.hpp"
#include "config/values.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "nn/model.hpp"
#include "session/session.hpp"

namespace gpunn::training {

namespace {

std::string rate_text(double rate) {
  std::ostringstream text;
  text.precision(4);
  text << rate;
  return text.str();
}

}  // namespace

std::string fallback_notice(const Dataset& dataset) {
  if (dataset.fallback_of.empty()) return "";
  return "WARNING: data set '" + dataset.fallback_of + "' was not found: '" + dataset.name +
         "' is used instead, as data.offline_fallback allows. Its figures are not figures of '" + dataset.fallback_of +
         "'.";
}

std::string schedule_notice(const Schedule& schedule) {
  std::string text;
  for (const std::string& warning : schedule.warnings()) text = joined(text, "WARNING: " + warning);
  return text;
}

// A schedule without a length of its own is as long as the training, which may have become longer or shorter. One that
// reacts to the training has no length, and its rates follow from the state in the checkpoint.
std::string stretched_schedule_notice(const Session& session, int64_t step, int64_t steps_before, bool resumable) {
  const Experiment& experiment = session.experiment();
  const int64_t steps = session.total_steps();
  const ScheduleRow& row = config::row_of(schedule_rows(), experiment.schedule);
  if (row.reacts || steps_before <= 0 || steps_before == steps || step >= steps) return "";
  TrainingLength before = session.length();
  before.steps = steps_before;
  const Schedule old(experiment, before);
  const int64_t last = std::max(step + 1, std::min(steps_before, steps));
  bool differs = false;
  for (int64_t i = step; i < last && !differs; ++i) {
    differs = static_cast<float>(old.rate_of(i)) != session.learning_rate_of_step(i);
  }
  if (!differs) return "";
  return "WARNING: schedule " + std::string(row.kind.name) + " was made for " + std::to_string(steps_before) +
         " steps and now extends over " + std::to_string(steps) + ": the next learning rate is " +
         rate_text(session.learning_rate_of_step(step)) + ", by the old schedule it would be " +
         rate_text(old.rate_of(step)) + ". To keep the old one, " +
         (resumable ? "resume with --keep-schedule, which sets" : "set") + " schedule.length to " +
         config::number_text(schedule_length(experiment, before));
}

std::string moving_statistics_notice(const Experiment& experiment, const ParameterLayout& parameters,
                                     const ParameterLayout& buffers) {
  const std::vector<std::string> norms =
      frozen_norms(experiment, parameters.parameters, parameters.rules, buffers.parameters);
  if (norms.empty() || experiment.freeze_statistics) return "";
  const std::string which =
      norms.size() == 1 ? "the batch norm " + norms.front()
                        : std::to_string(norms.size()) + " batch norms (" + norms.front() + " to " + norms.back() + ")";
  return "note: training.freeze holds weight and bias of " + which +
         ", but the running statistics still follow the batches; training.freeze_statistics: true keeps them";
}

// A normalised single number is 0, whatever it was: the layers in front get no gradient, and the running variance goes
// to 0.
std::string single_number_notice(const Experiment& experiment, const nn::SampleTypes& samples, int world) {
  const int64_t ranks = experiment.global_batch_norm ? 1 : world;
  const int64_t passes = std::max(experiment.micro_batches, ranks);
  if (experiment.data.batch_size > passes || experiment.freeze_statistics) return "";
  graph::Graph g;
  const auto values_of = [&](const std::vector<nn::Parameter>& tensors) {
    std::vector<graph::ValueId> values;
    for (const nn::Parameter& one : tensors) {
      values.push_back(g.add_value(one.name, {DType::f32, one.shape}, graph::Storage::data));
    }
    return values;
  };
  const std::vector<graph::ValueId> parameters = values_of(nn::model_parameters(experiment.model, samples));
  const std::vector<graph::ValueId> buffers = values_of(nn::model_buffers(experiment.model, samples));
  nn::build_forward(g, experiment.model, nn::add_inputs(g, samples, 1), parameters, {.buffers = buffers});
  for (const graph::Node& node : g.nodes()) {
    if (node.op != GPUNN_OP_BATCH_NORM) continue;
    const Shape& shape = g.value(node.inputs[0]).type.shape;
    if (element_count(shape) > shape[1]) continue;
    return "WARNING: the batch norm " + node.name +
           " gets one row at a time, and a single number per channel: its output is its bias, and the layers in front "
           "of it learn nothing. Give data.batch_size a larger value";
  }
  return "";
}

std::string data_text(const Dataset& dataset) {
  const Schema fields = typed_fields(dataset);
  const std::vector<const Field*> inputs = fields.of(Role::input);
  std::vector<std::string> samples;
  for (const Field* input : inputs) {
    samples.push_back((inputs.size() == 1 ? "" : input->name + " ") + to_string(input->type));
  }
  return dataset.name + ": " + std::to_string(dataset.train.rows()) + " samples to train on, " +
         std::to_string(dataset.test.rows()) + " to evaluate on, each " + join(samples, " and ") + ", " +
         fields::kind_of(dataset.fields.target()).amount(dataset.fields.target()) +
         (dataset.from_registry ? "; sizes from the registry, no data was read" : "");
}

std::string joined(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : "\n") + other;
}

}  // namespace gpunn::training
