// Session's state to a checkpoint and back.
#include <algorithm>
#include <cstring>
#include <map>

#include "training/session.hpp"

namespace gpunn::training {

namespace {

constexpr const char* kTotals = "totals";

std::vector<storage::StoredTensor> take_apart(const ParameterLayout& layout, const std::vector<std::byte>& flat) {
  std::vector<storage::StoredTensor> tensors;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const nn::Parameter& parameter = layout.parameters[i];
    const TensorType type{DType::f32, parameter.shape};
    const auto first = flat.begin() + layout.offset[i] * static_cast<int64_t>(sizeof(float));
    tensors.push_back({parameter.name, type, {first, first + static_cast<int64_t>(type.bytes())}});
  }
  return tensors;
}

// Everything that keeps `tensors` from being this layout's, a line each.
std::string mismatches(const ParameterLayout& layout, const std::vector<storage::StoredTensor>& tensors,
                       const std::string& what) {
  std::map<std::string, const storage::StoredTensor*> stored;
  for (const storage::StoredTensor& tensor : tensors) stored.emplace(tensor.name, &tensor);
  std::string text;
  for (const nn::Parameter& parameter : layout.parameters) {
    const auto found = stored.find(parameter.name);
    const TensorType expected{DType::f32, parameter.shape};
    if (found == stored.end()) {
      text += "\n  " + what + " '" + parameter.name + "' " + to_string(expected) + " is missing";
    } else {
      if (found->second->type != expected) {
        text += "\n  " + what + " '" + parameter.name + "' is " + to_string(found->second->type) + ", the model's is " +
                to_string(expected);
      }
      stored.erase(found);
    }
  }
  for (const auto& [name, tensor] : stored) {
    text += "\n  " + what + " '" + name + "' " + to_string(tensor->type) + " is not in the model";
  }
  return text;
}

std::vector<std::byte> put_together(const ParameterLayout& layout, const std::vector<storage::StoredTensor>& tensors) {
  std::vector<std::byte> flat(layout.type().bytes());
  std::map<std::string, const storage::StoredTensor*> stored;
  for (const storage::StoredTensor& tensor : tensors) stored.emplace(tensor.name, &tensor);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const std::vector<std::byte>& values = stored.at(layout.parameters[i].name)->values;
    std::memcpy(flat.data() + static_cast<std::size_t>(layout.offset[i]) * sizeof(float), values.data(), values.size());
  }
  return flat;
}

[[noreturn]] void not_this_model(const std::string& differences) {
  throw Error("the checkpoint is of another model or optimizer:" + differences, ExitCode::usage);
}

}  // namespace

void Session::save_state(storage::Checkpoint& checkpoint) {
  training_bound();
  checkpoint.parameters = take_apart(layout_, variables_->read(variable::kParameters));
  checkpoint.optimizer.clear();
  for (const std::string& state : optimizer_states(experiment_.optimizer)) {
    checkpoint.optimizer[state] = take_apart(layout_, variables_->read(state));
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
  const std::string differences = mismatches(layout_, checkpoint.parameters, "parameter");
  if (!differences.empty()) not_this_model(differences);
  variables_->write(variable::kParameters, put_together(layout_, checkpoint.parameters));
}

void Session::restore_state(const storage::Checkpoint& checkpoint) {
  training_bound();
  std::string differences = mismatches(layout_, checkpoint.parameters, "parameter");
  const std::vector<std::string> states = optimizer_states(experiment_.optimizer);
  for (const std::string& state : states) {
    const auto found = checkpoint.optimizer.find(state);
    if (found == checkpoint.optimizer.end()) {
      differences += "\n  optimizer state '" + state + "' is missing";
    } else {
      differences += mismatches(layout_, found->second, "optimizer state '" + state + "' of");
    }
  }
  for (const auto& [state, tensors] : checkpoint.optimizer) {
    if (std::ranges::find(states, state) == states.end()) {
      differences += "\n  optimizer state '" + state + "' is not one of this optimizer";
    }
  }
  const auto step = checkpoint.counters.find("step");
  if (step == checkpoint.counters.end() || step->second < 0) differences += "\n  the counter 'step' is missing";
  const bool has_totals = checkpoint.state.size() == 1 && checkpoint.state[0].name == kTotals &&
                          checkpoint.state[0].type == TensorType{DType::f64, {4}};
  if (!has_totals) differences += "\n  the state 'totals' f64[4] is missing";
  if (!differences.empty()) not_this_model(differences);

  variables_->write(variable::kParameters, put_together(layout_, checkpoint.parameters));
  for (const std::string& state : states) {
    variables_->write(state, put_together(layout_, checkpoint.optimizer.at(state)));
  }
  variables_->write(variable::kTotals, checkpoint.state[0].values);
  variables_->write(variable::kStep, std::as_bytes(std::span(&step->second, 1)));
  go_to(step->second);
  schedule_.restore(checkpoint, step->second);
  upload_rates();
  // Losses of a future that is about to be replayed are not this state's.
  variables_->write(variable::kLossHistory, std::vector<std::byte>(kLossHistorySize * sizeof(float)));
}

}  // namespace gpunn::training
