// Session's state to a checkpoint and back.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "training/flat_tensors.hpp"
#include "training/optimizer_ops.hpp"
#include "training/session.hpp"
#include "training/transfer.hpp"

namespace gpunn::training {

namespace {

constexpr const char* kTotals = "totals";

// What a checkpoint has beside the parameters, each as a flat array: the optimizer's states and the average.
std::vector<std::pair<std::string, Has>> kept_arrays(const Experiment& experiment) {
  std::vector<std::pair<std::string, Has>> arrays;
  for (const std::string& state : optimizer_states(experiment.optimizer)) arrays.emplace_back(state, Has::trained);
  if (experiment.ema > 0) arrays.emplace_back(variable::kAverage, Has::all);
  return arrays;
}

}  // namespace

void Session::save_state(storage::Checkpoint& checkpoint) {
  training_bound();
  checkpoint.parameters = take_apart(layout_, variables_->read(variable::kParameters));
  checkpoint.buffers.clear();
  if (buffers_.total > 0) checkpoint.buffers = take_apart(buffers_, variables_->read(variable::kBuffers));
  checkpoint.optimizer.clear();
  for (const auto& [name, which] : kept_arrays(experiment_)) {
    checkpoint.optimizer[name] = take_apart(layout_, variables_->read(name), which);
  }
  storage::StoredTensor totals;
  totals.name = kTotals;
  totals.type = {DType::f64, {4}};
  totals.values = variables_->read(variable::kTotals);
  checkpoint.state.clear();
  checkpoint.state.push_back(std::move(totals));
  const int64_t done = step();
  schedule_.save(checkpoint);
  // The sampler, the schedule but for what it saved itself, and all random numbers are functions of the step; they are
  // named so that a reader of the file need not know.
  checkpoint.counters["step"] = done;
  checkpoint.counters["sampler_position"] = done % steps_per_epoch_;
  checkpoint.counters["random_counter"] = done;
  checkpoint.counters["schedule_position"] = done;
}

void Session::restore_parameters(const storage::Checkpoint& checkpoint) {
  std::string differences = model_mismatches(checkpoint);
  const auto average = checkpoint.optimizer.find(variable::kAverage);
  if (experiment_.ema > 0) {
    differences += average == checkpoint.optimizer.end() ? "\n  the average of the parameters, training.ema, is missing"
                                                         : mismatches(layout_, average->second, "average of");
  }
  if (!differences.empty()) not_this_model(differences);
  write_model(checkpoint);
  if (experiment_.ema > 0) variables_->write(variable::kAverage, put_together(layout_, average->second));
}

std::string Session::model_mismatches(const storage::Checkpoint& checkpoint) const {
  return mismatches(layout_, checkpoint.parameters, "parameter") + mismatches(buffers_, checkpoint.buffers, "buffer");
}

void Session::write_model(const storage::Checkpoint& checkpoint) {
  variables_->write(variable::kParameters, put_together(layout_, checkpoint.parameters));
  if (buffers_.total > 0) variables_->write(variable::kBuffers, put_together(buffers_, checkpoint.buffers));
}

void Session::initialise_from(const Start& start) {
  const auto fill = [&](const ParameterLayout& layout, const char* variable) {
    std::vector<std::byte> flat = variables_->read(variable);
    for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
      const nn::Parameter& parameter = layout.parameters[i];
      const storage::StoredTensor* tensor = start.find(parameter.name, parameter.shape);
      if (tensor == nullptr) continue;
      std::ranges::copy(tensor->values, flat.begin() + layout.offset[i] * static_cast<int64_t>(sizeof(float)));
    }
    variables_->write(variable, flat);
    return flat;
  };
  const std::vector<std::byte> parameters = fill(layout_, variable::kParameters);
  if (experiment_.ema > 0) variables_->write(variable::kAverage, parameters);
  if (buffers_.total > 0) fill(buffers_, variable::kBuffers);
}

void Session::restore_state(const storage::Checkpoint& checkpoint) {
  training_bound();
  std::string differences = model_mismatches(checkpoint);
  const std::vector<std::pair<std::string, Has>> arrays = kept_arrays(experiment_);
  for (const auto& [state, which] : arrays) {
    const auto found = checkpoint.optimizer.find(state);
    if (found == checkpoint.optimizer.end()) {
      differences += "\n  optimizer state '" + state + "' is missing";
    } else {
      differences += mismatches(layout_, found->second, "optimizer state '" + state + "' of", which);
    }
  }
  for (const auto& [state, tensors] : checkpoint.optimizer) {
    if (std::ranges::find(arrays, state, &std::pair<std::string, Has>::first) == arrays.end()) {
      differences += "\n  optimizer state '" + state + "' is not one of this optimizer";
    }
  }
  const auto step = checkpoint.counters.find("step");
  if (step == checkpoint.counters.end() || step->second < 0) differences += "\n  the counter 'step' is missing";
  const bool has_totals = checkpoint.state.size() == 1 && checkpoint.state[0].name == kTotals &&
                          checkpoint.state[0].type == TensorType{DType::f64, {4}};
  if (!has_totals) differences += "\n  the state 'totals' f64[4] is missing";
  if (!differences.empty()) not_this_model(differences);

  write_model(checkpoint);
  for (const auto& [name, which] : arrays) {
    variables_->write(name, put_together(layout_, checkpoint.optimizer.at(name), which));
  }
  variables_->write(variable::kTotals, checkpoint.state[0].values);
  variables_->write(variable::kStep, std::as_bytes(std::span(&step->second, 1)));
  if (experiment_.accumulate > 1) {
    const int64_t passes = step->second * experiment_.accumulate;
    variables_->write(variable::kPass, std::as_bytes(std::span(&passes, 1)));
  }
  go_to(step->second);
  schedule_.restore(checkpoint, step->second);
  upload_rates();
  // Losses of a future that is about to be replayed are not this state's.
  const std::vector<std::byte> nothing(kLossHistorySize * sizeof(float));
  variables_->write(variable::kLossHistory, nothing);
  if (records_gradient_norm(experiment_)) variables_->write(variable::kGradientNorms, nothing);
}

}  // namespace gpunn::training
