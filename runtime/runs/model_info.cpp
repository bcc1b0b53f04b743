#include "runs/model_info.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>

#include "common/text.hpp"
#include "data/described.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "storage/model_info.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShownClasses = 5;

std::string named_classes(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kShownClasses); ++i) shown.push_back(in_quotes(names[i]));
  std::string text = join(shown, ", ");
  if (names.size() > kShownClasses) text += " and " + std::to_string(names.size() - kShownClasses) + " more";
  return text;
}

// Those of `names` that `others` lacks.
std::vector<std::string> lacking(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  std::vector<std::string> sorted = others, result;
  std::ranges::sort(sorted);
  for (const std::string& name : names) {
    if (!std::ranges::binary_search(sorted, name)) result.push_back(name);
  }
  return result;
}

// How the data's classes differ from the model's; empty: they are the same.
std::string class_differences(const std::vector<std::string>& model, const std::vector<std::string>& data) {
  if (model == data) return "";
  const std::vector<std::string> missing = lacking(model, data), added = lacking(data, model);
  std::vector<std::string> parts;
  if (missing.size() == 1 && added.size() == 1) {
    parts.push_back(in_quotes(missing[0]) + " is missing and " + in_quotes(added[0]) +
                    " is new, as if the one had been renamed");
  } else {
    if (!missing.empty()) parts.push_back("missing: " + named_classes(missing));
    if (!added.empty()) parts.push_back("new: " + named_classes(added));
  }
  if (parts.empty()) {
    const auto [first, other] = std::ranges::mismatch(model, data);
    const auto index = first - model.begin();
    parts.push_back("they are in another order: number " + std::to_string(index) + " is " +
                    (other == data.end() ? "missing" : in_quotes(*other)) + ", the model's is " +
                    (first == model.end() ? "missing" : in_quotes(*first)));
  }
  return join(parts, "; ");
}

std::optional<PhotographInfo> photographs_of(const Experiment& experiment) {
  const auto* settings = std::get_if<PhotographSet>(&experiment.data.kind);
  if (settings == nullptr) return std::nullopt;
  return PhotographInfo{.scale = settings->scale, .colours = settings->colours, .input = settings->input};
}

std::vector<std::string> utf8_names(std::vector<std::string> names) {
  for (std::string& name : names) name = storage::as_utf8(name);
  return names;
}

std::string rows_text(const PartDigest& part) { return std::to_string(part.rows) + " rows"; }

}  // namespace

ModelInfo model_info(const Experiment& experiment, const Dataset& dataset) {
  ModelInfo info;
  info.fields = typed_fields(dataset);
  Field& input = info.fields.input();
  if (input.kind.empty()) input.kind = fields::input_kind(input.type);
  const bool has_usual_name = input.name == Schema().input().name;
  if (has_usual_name && input.type.shape.size() != 3 && info.fields.of(Role::input).size() == 1)
    input.name = "features";
  if (!experiment.data.mean.empty()) input.mean = experiment.data.mean;
  if (!experiment.data.stddev.empty()) input.stddev = experiment.data.stddev;
  for (Field& field : info.fields.fields) field.names = utf8_names(std::move(field.names));
  info.task = experiment.task;
  info.photographs = photographs_of(experiment);
  info.data = dataset.digest;
  return info;
}

ModelInfo model_info(const storage::Checkpoint& checkpoint, const Experiment& experiment, const fs::path& file) {
  if (checkpoint.model) {
    ModelInfo info = *checkpoint.model;
    if (!info.photographs) info.photographs = photographs_of(experiment);  // written before it was in checkpoints
    return info;
  }
  try {
    return model_info(experiment, load_for(experiment.data, EvaluationPart::test));
  } catch (const Error& error) {
    throw Error("the checkpoint " + file.string() +
                    " is of format version 1, which does not hold class names and normalisation, so its data set is "
                    "needed: " +
                    error.what(),
                error.code());
  }
}

Experiment experiment_of(const storage::Checkpoint& checkpoint, const fs::path& file,
                         const std::vector<Override>& overrides) {
  Experiment experiment = parse_experiment(checkpoint.experiment, file.string() + ":experiment", overrides);
  if (checkpoint.model) {
    const Field& input = checkpoint.model->fields.input();
    if (experiment.data.mean.empty()) experiment.data.mean = input.mean;
    if (experiment.data.stddev.empty()) experiment.data.stddev = input.stddev;
  }
  return experiment;
}

void take_scales(const storage::Checkpoint& checkpoint, Dataset& dataset) {
  if (!checkpoint.model) return;
  const Field first = dataset.fields.input();
  take_normalisation(checkpoint.model->fields, dataset.fields);
  dataset.fields.input().mean = first.mean;
  dataset.fields.input().stddev = first.stddev;
  dataset.fields.target().mean = checkpoint.model->fields.target().mean;
  dataset.fields.target().stddev = checkpoint.model->fields.target().stddev;
}

void require_data_of(const ModelInfo& model, const Dataset& dataset) {
  std::vector<std::string> differences;
  Schema fields = typed_fields(dataset);
  for (const auto& [taken, given] : paired_inputs(model.fields, fields)) {
    const std::string of_input =
        model.fields.of(Role::input).size() > 1 ? " of the input " + in_quotes(taken->name) : "";
    if (given == nullptr) {
      differences.push_back("the model takes the input " + in_quotes(taken->name) + ", which the data lacks");
      continue;
    }
    if (!(given->type == taken->type)) {
      differences.push_back("a sample" + of_input + " is " + to_string(given->type) + ", the model takes " +
                            to_string(taken->type));
    }
    if (!taken->names.empty() && !given->names.empty() && taken->names != given->names) {
      differences.push_back("the columns" + of_input + " are " + named_classes(given->names) + ", the model's are " +
                            named_classes(taken->names));
    }
  }
  const std::string classes = class_differences(model.fields.target().names, utf8_names(dataset.fields.target().names));
  if (!classes.empty()) {
    differences.push_back("the " + std::string(tasks::find(model.task).target()) + " differ: " + classes);
  }
  if (differences.empty()) return;
  throw Error(data::described(dataset) + " is not of the kind that the model was trained on:\n  " +
                  join(differences, "\n  ") +
                  "\nGive it the data that it was trained on, or such data at another place with --set data.path=...",
              ExitCode::usage);
}

std::string resumed_data_notice(const storage::Checkpoint& checkpoint, const Dataset& dataset) {
  if (!checkpoint.model) return "";
  require_data_of(*checkpoint.model, dataset);
  const PartDigest& begun = checkpoint.model->data.train;
  const PartDigest& now = dataset.digest.train;
  if (begun == now) return "";
  if (begun.rows != now.rows) {
    throw Error("the training part of '" + dataset.name + "' had " + rows_text(begun) + " when the run began and has " +
                    rows_text(now) +
                    " now: its place in the data would be lost. Resume with the same data, or begin a new run with "
                    "init_from",
                ExitCode::usage);
  }
  return "WARNING: the training rows of '" + dataset.name + "' (" + dataset.source +
         ") are not those that the run began with: what follows is not what an uninterrupted run would have given";
}

std::string evaluated_data_notice(const storage::Checkpoint& checkpoint, const Dataset& dataset) {
  if (!checkpoint.model) return "";
  const bool test = dataset.evaluated == EvaluationPart::test;
  const DataDigest& model = checkpoint.model->data;
  const PartDigest& then = test ? model.test : model.validation;
  const PartDigest& now = test ? dataset.digest.test : dataset.digest.validation;
  if (then == now) return "";
  const std::string part = name_of(dataset.evaluated);
  return "note: the " + part + " rows of '" + dataset.name +
         "' are not those of the time of training: " + rows_text(then) + " then, " + rows_text(now) +
         (then.rows == now.rows ? " of other content now" : " now");
}

}  // namespace gpunn::training
