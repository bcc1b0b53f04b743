// Session's state to a checkpoint and back.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "program/flat_tensors.hpp"
#include "program/loss_scale.hpp"
#include "program/optimizer_ops.hpp"
#include "program/programs.hpp"
#include "program/variable_access.hpp"
#include "session/session.hpp"

namespace gpunn::training {

namespace {

constexpr std::array kLossScaling = {variable::kLossScale, variable::kGoodSteps, variable::kSkippedSteps};

const storage::StoredTensor* find_state(const storage::Checkpoint& checkpoint, const std::string& name,
                                        const TensorType& type) {
  const auto found = std::ranges::find(checkpoint.state, name, &storage::StoredTensor::name);
  return found == checkpoint.state.end() || !(found->type == type) ? nullptr : &*found;
}

}  // namespace

void Session::save_state(storage::Checkpoint& checkpoint) {
  training_step();
  state_->save(checkpoint);
  checkpoint.state.clear();
  sums_of(tasks::Phase::training).save(checkpoint, team_.get());
  if (scales_loss(*experiment_)) {
    for (const char* name : kLossScaling) checkpoint.state.push_back({name, {DType::f32, {}}, variables().read(name)});
  }
  const int64_t done = step();
  schedule_.save(checkpoint);
  // The schedule but for what it saved itself, and all random numbers are functions of the step; they are named so that
  // a reader of the file need not know.
  checkpoint.counters["step"] = done;
  checkpoint.counters["epoch"] = length_.epoch_of(done);
  checkpoint.counters["sampler_position"] = length_.in_epoch(done);
  checkpoint.counters["steps_per_epoch"] = steps_per_epoch();
  checkpoint.counters["total_steps"] = total_steps();
  checkpoint.counters["random_counter"] = done;
  checkpoint.counters["schedule_position"] = done;
}

void Session::restore_state(const storage::Checkpoint& checkpoint) {
  training_step();
  std::string differences = state_->mismatches(checkpoint);
  const auto step = checkpoint.counters.find("step");
  if (step == checkpoint.counters.end() || step->second < 0) differences += "\n  the counter 'step' is missing";
  SumVariables sums = sums_of(tasks::Phase::training);
  differences += sums.missing(checkpoint);
  if (!differences.empty()) not_this_model(differences);

  state_->restore(checkpoint);
  // The first rank keeps the sums of all from here on.
  if (ranks().rank == 0) {
    sums.restore(checkpoint);
  } else {
    sums.reset();
  }
  // A run that was of another precision begins with the first scale.
  if (scales_loss(*experiment_)) {
    for (const char* name : kLossScaling) {
      const storage::StoredTensor* const stored = find_state(checkpoint, name, {DType::f32, {}});
      if (stored != nullptr) variables().write(name, stored->values);
    }
  }
  write_counters(step->second);
  if (training_->stream != nullptr) training_->stream->seek(step->second);
  schedule_.restore(checkpoint, step->second);
  upload_rates();
  // Losses of a future that is about to be replayed are not this state's.
  const std::vector<std::byte> nothing(kLossHistorySize * sizeof(float));
  variables().write(variable::kLossHistory, nothing);
  if (records_gradient_norm(*experiment_)) variables().write(variable::kGradientNorms, nothing);
}

}  // namespace gpunn::training
