// Session's state to a checkpoint and back.
#include <string>
#include <vector>

#include "training/flat_tensors.hpp"
#include "training/optimizer_ops.hpp"
#include "training/programs.hpp"
#include "training/session.hpp"
#include "training/variable_access.hpp"

namespace gpunn::training {

namespace {

constexpr const char* kStoredTotals = "totals";

}  // namespace

void Session::save_state(storage::Checkpoint& checkpoint) {
  training_step();
  state_->save(checkpoint);
  storage::StoredTensor totals;
  totals.name = kStoredTotals;
  totals.type = {DType::f64, {4}};
  totals.values = variables().read(variable::kTotals);
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

void Session::restore_state(const storage::Checkpoint& checkpoint) {
  training_step();
  std::string differences = state_->mismatches(checkpoint);
  const auto step = checkpoint.counters.find("step");
  if (step == checkpoint.counters.end() || step->second < 0) differences += "\n  the counter 'step' is missing";
  const bool has_totals = checkpoint.state.size() == 1 && checkpoint.state[0].name == kStoredTotals &&
                          checkpoint.state[0].type == TensorType{DType::f64, {4}};
  if (!has_totals) differences += "\n  the state 'totals' f64[4] is missing";
  if (!differences.empty()) not_this_model(differences);

  state_->restore(checkpoint);
  variables().write(variable::kTotals, checkpoint.state[0].values);
  variables().write(variable::kStep, std::as_bytes(std::span(&step->second, 1)));
  if (experiment_->accumulate > 1) {
    const int64_t passes = step->second * experiment_->accumulate;
    variables().write(variable::kPass, std::as_bytes(std::span(&passes, 1)));
  }
  if (training_->stream != nullptr) training_->stream->seek(step->second);
  schedule_.restore(checkpoint, step->second);
  upload_rates();
  // Losses of a future that is about to be replayed are not this state's.
  const std::vector<std::byte> nothing(kLossHistorySize * sizeof(float));
  variables().write(variable::kLossHistory, nothing);
  if (records_gradient_norm(*experiment_)) variables().write(variable::kGradientNorms, nothing);
}

}  // namespace gpunn::training
