#include "runs/training_state.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "optim/optimizer/optimizer_rows.hpp"
#include "program/flat_tensors.hpp"
#include "program/gradient_buckets.hpp"
#include "program/loss_scale.hpp"
#include "program/optimizer_ops.hpp"
#include "program/programs.hpp"
#include "program/variable_access.hpp"
#include "runs/trained_model.hpp"
#include "runs/transfer.hpp"

namespace gpunn::training {

using graph::Storage;

TrainingState::TrainingState(const Experiment& experiment, ParameterLayout parameters, ParameterLayout buffers,
                             StateSharing sharing)
    : experiment_(experiment),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      sharing_(std::move(sharing)) {}

namespace {

// Calls `copy` with each piece of a rank's array and of the whole one, in bytes: first in the rank's, in the whole,
// size.
template <class Copy>
void for_pieces(const std::vector<distributed::Share>& buckets, Ranks ranks, const Copy& copy) {
  std::size_t begin = 0;
  for (const distributed::Share& bucket : buckets) {
    const distributed::Share own = shard_of(bucket, ranks);
    const auto size = static_cast<std::size_t>(own.count()) * sizeof(float);
    copy(begin, static_cast<std::size_t>(own.begin) * sizeof(float), size);
    begin += size;
  }
}

// Calls `copy` with each piece of a row of a state, of `arrays` rows: where it lies in the state and in the row, and
// its size, in bytes.
template <class Copy>
void for_ranges(const ParameterLayout& layout, int64_t arrays, int64_t row, const Copy& copy) {
  for (const UpdateRange& range : layout.ranges) {
    const int64_t size = range.end - range.begin;
    const auto bytes = [](int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(float); };
    copy(bytes(arrays * range.state_begin + row * size), bytes(range.state_begin), bytes(size));
  }
}

std::vector<std::byte> row_of(const ParameterLayout& layout, const OptimizerState& state,
                              const std::vector<std::byte>& variable, int64_t row) {
  if (state.rows == 0) return variable;
  std::vector<std::byte> values(variable.size() / static_cast<std::size_t>(state.rows));
  for_ranges(layout, state.rows, row, [&](std::size_t from, std::size_t to, std::size_t size) {
    std::memcpy(values.data() + to, variable.data() + from, size);
  });
  return values;
}

void put_row(const ParameterLayout& layout, const OptimizerState& state, std::vector<std::byte>& variable, int64_t row,
             const std::vector<std::byte>& values) {
  if (state.rows == 0) {
    variable = values;
    return;
  }
  for_ranges(layout, state.rows, row, [&](std::size_t to, std::size_t from, std::size_t size) {
    std::memcpy(variable.data() + to, values.data() + from, size);
  });
}

}  // namespace

ParameterLayout TrainingState::own_layout() const {
  if (sharing_.team == nullptr) return parameters_;
  return sharded(parameters_, sharing_.buckets, {sharing_.team->rank(), sharing_.team->world()});
}

std::vector<std::byte> TrainingState::whole_row(const Kept& kept, const std::vector<std::byte>& variable,
                                                int64_t row) const {
  std::vector<std::byte> own = row_of(own_layout(), kept.state, variable, row);
  if (sharing_.team == nullptr || kept.which == Has::all) return own;
  const int world = sharing_.team->world();
  std::vector<std::byte> all(own.size() * static_cast<std::size_t>(world)), whole(parameters_.trained_type().bytes());
  sharing_.team->all_gather(own, all);
  for (int rank = 0; rank < world; ++rank) {
    const std::byte* const of_rank = all.data() + own.size() * static_cast<std::size_t>(rank);
    for_pieces(sharing_.buckets, {rank, world}, [&](std::size_t from, std::size_t to, std::size_t size) {
      std::memcpy(whole.data() + to, of_rank + from, size);
    });
  }
  return whole;
}

void TrainingState::set_row(const Kept& kept, std::vector<std::byte>& variable, int64_t row,
                            const std::vector<std::byte>& whole) const {
  if (sharing_.team == nullptr || kept.which == Has::all) {
    return put_row(parameters_, kept.state, variable, row, whole);
  }
  std::vector<std::byte> own(whole.size() / static_cast<std::size_t>(sharing_.team->world()));
  const Ranks ranks{sharing_.team->rank(), sharing_.team->world()};
  for_pieces(sharing_.buckets, ranks, [&](std::size_t to, std::size_t from, std::size_t size) {
    std::memcpy(own.data() + to, whole.data() + from, size);
  });
  put_row(own_layout(), kept.state, variable, row, own);
}

std::vector<TrainingState::Kept> TrainingState::kept_arrays() const {
  std::vector<Kept> arrays;
  for (OptimizerState& state : optimizer_states(experiment_.optimizer)) {
    arrays.push_back({std::move(state), Has::trained});
  }
  if (experiment_.ema > 0) arrays.push_back({{variable::kAverage}, Has::all});
  return arrays;
}

void TrainingState::fill(const char* variable, const ParameterLayout& layout, Storage storage) {
  std::vector<float> flat(static_cast<std::size_t>(layout.total), 0.0F);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const std::vector<float> values = nn::initial_values(layout.parameters[i], experiment_.seed, i);
    std::ranges::copy(values, flat.begin() + layout.offset[i]);
  }
  variables_->create(variable, layout.type(), storage);
  variables_->write(variable, bytes_of(flat));
}

void TrainingState::initialise(execution::Variables& variables) {
  variables_ = &variables;
  fill(variable::kParameters, parameters_, Storage::parameters);
  if (buffers_.total > 0) fill(variable::kBuffers, buffers_, Storage::state);
  if (experiment_.ema > 0) {
    variables_->create(variable::kAverage, parameters_.type(), Storage::optimizer);
    variables_->write(variable::kAverage, variables_->read(variable::kParameters));
  }
  if (averages_buffers()) {
    variables_->create(variable::kAverageBuffers, buffers_.type(), Storage::optimizer);
    variables_->write(variable::kAverageBuffers, variables_->read(variable::kBuffers));
  }
  if (scales_loss(experiment_)) {
    variables_->create(variable::kLossScale, {DType::f32, {}}, Storage::state);
    write_scalar(*variables_, variable::kLossScale, kFirstLossScale);
  }
  if (config::row_of(optimizer_rows(), experiment_.optimizer).by_parameter) {
    for (std::size_t i = 0; i < parameters_.ranges.size(); ++i) {
      const std::vector<int64_t> bounds = parameters_.bounds(parameters_.ranges[i]);
      variables_->create(bounds_variable(i), {DType::i64, {static_cast<int64_t>(bounds.size())}}, Storage::data);
      variables_->write(bounds_variable(i), bytes_of(bounds));
    }
  }
}

void TrainingState::initialise_from(const Start& start) {
  const auto take = [&](const ParameterLayout& layout, const char* variable) {
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
  const std::vector<std::byte> parameters = take(parameters_, variable::kParameters);
  if (experiment_.ema > 0) variables_->write(variable::kAverage, parameters);
  if (buffers_.total == 0) return;
  const std::vector<std::byte> buffers = take(buffers_, variable::kBuffers);
  if (averages_buffers()) variables_->write(variable::kAverageBuffers, buffers);
}

void TrainingState::save(storage::Checkpoint& checkpoint) const {
  checkpoint.parameters = take_apart(parameters_, variables_->read(variable::kParameters));
  checkpoint.buffers.clear();
  if (buffers_.total > 0) checkpoint.buffers = take_apart(buffers_, variables_->read(variable::kBuffers));
  checkpoint.optimizer.clear();
  for (const Kept& kept : kept_arrays()) {
    const std::vector<std::byte> values = variables_->read(kept.state.name);
    for (int64_t row = 0; row < kept.state.arrays(); ++row) {
      checkpoint.optimizer[kept.state.in_checkpoint(row)] =
          take_apart(parameters_, whole_row(kept, values, row), kept.which);
    }
  }
  if (averages_buffers()) {
    checkpoint.optimizer[variable::kAverageBuffers] = take_apart(buffers_, variables_->read(variable::kAverageBuffers));
  }
}

std::string TrainingState::model_mismatches(const storage::Checkpoint& checkpoint) const {
  return training::mismatches(parameters_, checkpoint.parameters, "parameter") +
         training::mismatches(buffers_, checkpoint.buffers, "buffer");
}

// A checkpoint of an earlier version has none.
std::string TrainingState::average_buffer_mismatches(const storage::Checkpoint& checkpoint) const {
  const auto found = checkpoint.optimizer.find(variable::kAverageBuffers);
  if (!averages_buffers() || found == checkpoint.optimizer.end()) return "";
  return training::mismatches(buffers_, found->second, "average of buffer");
}

std::string TrainingState::mismatches(const storage::Checkpoint& checkpoint) const {
  std::string differences = model_mismatches(checkpoint);
  std::map<std::string, Has> arrays;
  for (const Kept& kept : kept_arrays()) {
    for (int64_t row = 0; row < kept.state.arrays(); ++row) arrays.emplace(kept.state.in_checkpoint(row), kept.which);
  }
  for (const auto& [state, which] : arrays) {
    const auto found = checkpoint.optimizer.find(state);
    if (found == checkpoint.optimizer.end()) {
      differences += "\n  optimizer state '" + state + "' is missing";
    } else {
      differences += training::mismatches(parameters_, found->second, "optimizer state '" + state + "' of", which);
    }
  }
  differences += average_buffer_mismatches(checkpoint);
  for (const auto& [state, tensors] : checkpoint.optimizer) {
    if (!arrays.contains(state) && !(averages_buffers() && state == variable::kAverageBuffers)) {
      differences += "\n  optimizer state '" + state + "' is not one of this optimizer";
    }
  }
  return differences;
}

void TrainingState::restore(const storage::Checkpoint& checkpoint) {
  write_model(checkpoint);
  for (const Kept& kept : kept_arrays()) {
    std::vector<std::byte> values(variables_->type(kept.state.name).bytes());
    for (int64_t row = 0; row < kept.state.arrays(); ++row) {
      const std::vector<storage::StoredTensor>& tensors = checkpoint.optimizer.at(kept.state.in_checkpoint(row));
      set_row(kept, values, row, put_together(parameters_, tensors, kept.which));
    }
    variables_->write(kept.state.name, values);
  }
}

void TrainingState::restore_model(const storage::Checkpoint& checkpoint) {
  std::string differences = model_mismatches(checkpoint);
  const auto average = checkpoint.optimizer.find(variable::kAverage);
  if (experiment_.ema > 0) {
    differences += average == checkpoint.optimizer.end()
                       ? "\n  the average of the parameters, training.ema, is missing"
                       : training::mismatches(parameters_, average->second, "average of");
  }
  differences += average_buffer_mismatches(checkpoint);
  if (!differences.empty()) not_this_model(differences);
  write_model(checkpoint);
  if (experiment_.ema > 0) {
    variables_->write(variable::kAverage, put_together(parameters_, average->second));
  }
}

void TrainingState::write_model(const storage::Checkpoint& checkpoint) {
  variables_->write(variable::kParameters, put_together(parameters_, checkpoint.parameters));
  if (buffers_.total > 0) {
    variables_->write(variable::kBuffers, put_together(buffers_, checkpoint.buffers));
  }
  if (averages_buffers()) {
    variables_->write(variable::kAverageBuffers, put_together(buffers_, evaluated_buffers(checkpoint)));
  }
}

}  // namespace gpunn::training
