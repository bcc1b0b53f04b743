#include "feed/targets.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.hpp"
#include "data/described.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "tasks/losses.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

void require_targets(const Experiment& experiment, const Dataset& dataset) {
  const tasks::Task& task = tasks::find(experiment.task);
  const Field& target = dataset.fields.target();
  if (task.target_kind() == target.kind) return;
  std::string fitting;
  for (const tasks::Task* other : tasks::all()) {
    if (fitting.empty() && other->target_kind() == target.kind) fitting = other->name();
  }
  throw Error(experiment.file.string() + ": " + data::described(dataset) + " has " +
                  fields::kind_of(target).of_sample(target) + ", the task " + experiment.task + " with the loss " +
                  tasks::name_of(experiment.loss.type()) + " learns " + std::string(task.target()) +
                  ", which the last layer '" + experiment.model.output_layer().name + "' gives; set task: " + fitting +
                  ", or choose data with " + std::string(task.target()),
              ExitCode::usage);
}

void require_weights(const Dataset& dataset) {
  for (const Field* field : dataset.fields.of(Role::weight)) {
    for (const auto& [name, split] : {std::pair<const char*, const Split&>{"training", dataset.train},
                                      {"validation", dataset.validation},
                                      {"test", dataset.test}}) {
      const auto found = split.fields.find(field->name);
      if (found == split.fields.end()) continue;
      bool any = false;
      for (std::size_t row = 0; row < static_cast<std::size_t>(split.rows()); ++row) {
        const double weight = fields::element_of(found->second.type.dtype, found->second.bytes(), row);
        any = any || weight > 0;
        if (weight >= 0) continue;
        throw Error(dataset.source + ": the weight of row " + std::to_string(row) + " of the " + name + " part is " +
                        fmt::format("{:g}", weight) + "; expected 0 or more",
                    ExitCode::usage);
      }
      if (any || split.rows() == 0) continue;
      throw Error(dataset.source + ": all weights of the " + std::string(name) + " part are 0; expected one above 0",
                  ExitCode::usage);
    }
  }
}

void require_samples(const Experiment& experiment, const Dataset& dataset) {
  const ModelSpec& model = experiment.model;
  const std::vector<std::string> names = nn::names_of(model_samples(dataset));
  nn::matched_inputs(model, names);
  for (const std::string& name : names) {
    if (names.size() == 1 || std::ranges::find(model.inputs, name, &InputSpec::name) != model.inputs.end()) continue;
    throw Error(model.file.string() + ": " + data::described(dataset) + " has the inputs " + join(names, ", ") +
                    ", and the model " + model.name + " takes no input '" + name +
                    "'. Give the model an input of this name, or leave it out of the data",
                ExitCode::usage);
  }
  const Shape sample = sample_shape(dataset), &wanted = model.inputs.front().shape;
  if (model.inputs.size() > 1 || wanted.empty() || wanted == sample) return;
  throw Error(model.file.string() + ": the model " + model.name + " takes samples of " + to_string(wanted) +
                  "; those of " + data::described(dataset) + " are " + to_string(sample),
              ExitCode::usage);
}

fields::Standardiser field_standardiser(const Field& field, DType dtype) {
  TensorType rows{dtype, field.type.shape};
  rows.shape.insert(rows.shape.begin(), 1);
  if (dtype == DType::u8) return {rows, {}, {}};
  return {rows, field.mean, field.stddev};
}

}  // namespace gpunn::training
