#include "training/network.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "common/text.hpp"
#include "config/checked_backends.hpp"
#include "data/described.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "nn/model.hpp"
#include "program/programs.hpp"
#include "program/variable_access.hpp"
#include "runs/model_info.hpp"
#include "runs/own_files.hpp"
#include "runs/preparation.hpp"
#include "runs/trained_model.hpp"
#include "runs/transfer.hpp"
#include "session/training_length.hpp"
#include "storage/safetensors.hpp"
#include "training/profiled.hpp"
#include "training/trainer.hpp"

namespace gpunn {

namespace {

using storage::StoredTensor;

[[noreturn]] void refuse(const std::string& message) { throw Error(message, ExitCode::usage); }

std::vector<StoredTensor> first_values(const std::vector<nn::Parameter>& tensors, uint64_t seed) {
  std::vector<StoredTensor> result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result.push_back(
        storage::stored_floats(tensors[i].name, tensors[i].shape, nn::initial_values(tensors[i], seed, i)));
  }
  return result;
}

// Named by their numbers; none where the last layer does not give [rows, outputs].
std::vector<std::string> numbered_outputs(const Experiment& experiment, const Schema& fields) {
  const Shape shape = nn::output_shape(experiment.model, training::model_samples(fields));
  if (shape.size() != 2) return {};
  const bool one_for_two = tasks::find(experiment.task).implied_loss(shape, 2) == experiment.loss.type();
  std::vector<std::string> names;
  for (int64_t i = 0; i < (one_for_two ? 2 : shape[1]); ++i) names.push_back(std::to_string(i));
  return names;
}

std::span<const float> floats_in(const StoredTensor& tensor) {
  return {reinterpret_cast<const float*>(tensor.values.data()), tensor.values.size() / sizeof(float)};
}

// A part of zeros with a single row.
Split stand_in(const Split& like, const Dataset& set) {
  Split part;
  part.samples = like.samples;
  part.samples.shape.front() = 1;
  part.values.resize(part.samples.bytes());
  for (const Field& field : set.fields) {
    const bool needed = field.role == Role::target || (field.role == Role::input && &field != &set.fields.input());
    if (needed) part.fields[field.name] = fields::kind_of(field).blank(field, 1);
  }
  return part;
}

// Of Checkpoint::optimizer.
bool is_of_average(const std::pair<const std::string, std::vector<StoredTensor>>& state) {
  return state.first == training::variable::kAverage || state.first == training::variable::kAverageBuffers;
}

// Calls `ended` at the end of each epoch, before the listener of the program is told of it.
class AtEpochs final : public TrainingListener {
 public:
  AtEpochs(TrainingListener* listener, std::function<void()> ended) : next_(listener), ended_(std::move(ended)) {}
  void on_message(const std::string& text) override {
    if (next_ != nullptr) next_->on_message(text);
  }
  void on_start(const RunStart& start) override {
    if (next_ != nullptr) next_->on_start(start);
  }
  void on_step(const StepReport& step) override {
    if (next_ != nullptr) next_->on_step(step);
  }
  void on_losses(int64_t first, const std::vector<float>& losses) override {
    if (next_ != nullptr) next_->on_losses(first, losses);
  }
  void on_epoch(const EpochReport& epoch) override {
    ended_();
    if (next_ != nullptr) next_->on_epoch(epoch);
  }

 private:
  TrainingListener* next_;
  std::function<void()> ended_;
};

}  // namespace

Network::Impl::Impl(Experiment given_experiment, ModelInfo given_info)
    : experiment(std::move(given_experiment)), info(std::move(given_info)) {
  const nn::SampleTypes samples = training::model_samples(info.fields);
  state.parameters = first_values(nn::model_parameters(experiment.model, samples), experiment.seed);
  state.buffers = first_values(nn::model_buffers(experiment.model, samples), experiment.seed);
  begin_average();
  if (info.fields.target().names.empty()) info.fields.target().names = numbered_outputs(experiment, info.fields);
  describe();
}

Network::Impl::Impl(Experiment given_experiment, ModelInfo given_info, storage::Checkpoint given_state)
    : experiment(std::move(given_experiment)), info(std::move(given_info)), state(std::move(given_state)) {
  describe();
}

// The tensors as the model has them, which those of the state have to be.
void Network::Impl::describe() {
  const nn::SampleTypes samples = training::model_samples(info.fields);
  std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, samples);
  const std::vector<nn::Parameter> buffers = nn::model_buffers(experiment.model, samples);
  const std::vector<training::UpdateRule> rules = training::update_rules(parameters, experiment);
  Field& target = info.fields.target();
  const std::string_view kind = tasks::find(experiment.task).target_kind();
  const bool is_column_each = target.type.shape == Shape{target.count()};
  if (target.kind != kind || (target.type.shape.size() == 1 && !is_column_each)) {
    Field learnt = fields::target_field(kind, std::move(target.names));
    learnt.ids = std::move(target.ids);
    learnt.mean = std::move(target.mean);
    learnt.stddev = std::move(target.stddev);
    target = std::move(learnt);
  }
  std::vector<NetworkTensor> described;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    described.push_back({parameters[i].name, parameters[i].layer, parameters[i].shape, false, !rules[i].frozen});
  }
  for (const nn::Parameter& buffer : buffers) {
    described.push_back({buffer.name, buffer.layer, buffer.shape, true, false});
  }
  const std::string differences =
      training::mismatches(training::lay_out(std::move(parameters), sizeof(float)), state.parameters, "parameter") +
      training::mismatches(training::lay_out(buffers, sizeof(float)), state.buffers, "buffer");
  if (!differences.empty()) refuse("the settings are for another model than that of the weights:" + differences);
  tensors = std::move(described);
}

void Network::Impl::set(Experiment given_experiment, ModelInfo given_info) {
  Impl changed(std::move(given_experiment), std::move(given_info), state);  // a copy: a refused call changes nothing
  if (changed.experiment.ema == 0) std::erase_if(changed.state.optimizer, is_of_average);
  changed.begin_average();
  if (changed.info.fields.target().names.empty()) {
    changed.info.fields.target().names = numbered_outputs(changed.experiment, changed.info.fields);
  }
  const nn::SampleTypes samples = training::model_samples(changed.info.fields);
  std::vector<nn::Parameter> parameters = nn::model_parameters(changed.experiment.model, samples);
  std::vector<training::UpdateRule> rules = training::update_rules(parameters, changed.experiment);
  const training::TrainingState layout(
      changed.experiment, training::lay_out(std::move(parameters), std::move(rules), sizeof(float)),
      training::lay_out(nn::model_buffers(changed.experiment.model, samples), sizeof(float)));
  if (!layout.mismatches(changed.state).empty()) changed.forget_training();
  *this = std::move(changed);
}

void Network::Impl::begin_average() {
  if (experiment.ema == 0) return;
  state.optimizer.try_emplace(training::variable::kAverage, state.parameters);
  if (!state.buffers.empty()) state.optimizer.try_emplace(training::variable::kAverageBuffers, state.buffers);
}

void Network::Impl::forget_training() {
  std::erase_if(state.optimizer, [](const auto& one) { return !is_of_average(one); });
  state.counters.clear();
  state.metrics.clear();
  state.state.clear();
}

int64_t Network::Impl::counter(const char* name) const {
  const auto found = state.counters.find(name);
  return found == state.counters.end() ? 0 : found->second;
}

std::vector<StoredTensor*> Network::Impl::find(const std::string& name) {
  std::vector<StoredTensor*> result;
  const auto add_from = [&](std::vector<StoredTensor>& among) {
    const auto found = std::ranges::find(among, name, &StoredTensor::name);
    if (found != among.end()) result.push_back(&*found);
  };
  for (auto& average : state.optimizer) {
    if (is_of_average(average)) add_from(average.second);
  }
  add_from(state.parameters);
  add_from(state.buffers);
  if (!result.empty()) return result;
  std::vector<std::string> names;
  for (const NetworkTensor& tensor : tensors) names.push_back(tensor.name);
  refuse("the network has no tensor " + in_quotes(name) + did_you_mean_or_list(name, names));
}

storage::Checkpoint Network::Impl::checkpoint() const {
  storage::Checkpoint whole = state;
  whole.experiment = resolved_yaml(experiment);
  whole.model = complete_info();
  if (whole.backend.empty()) whole.backend = experiment.backend;
  return whole;
}

ModelInfo Network::Impl::complete_info() const {
  ModelInfo complete = info;
  for (Field& field : complete.fields.fields) {
    if (field.role != Role::input) continue;
    if (field.kind.empty()) field.kind = fields::input_kind(field.type);
    if (!fields::kind_of(field).is_normalised()) continue;
    const auto channels = static_cast<std::size_t>(field.type.shape.front());
    if (field.mean.empty()) field.mean.assign(channels, 0.0);
    if (field.stddev.empty()) field.stddev.assign(channels, 1.0);
  }
  complete.task = experiment.task;
  return complete;
}

void Network::Impl::require_samples(const Dataset& dataset) const {
  for (const Split* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    if (part->samples.shape.empty()) continue;
    Schema fields = dataset.fields;
    fields.input().type =
        fields::device_type({part->samples.dtype, {part->samples.shape.begin() + 1, part->samples.shape.end()}});
    for (const auto& [taken, given] : training::paired_inputs(info.fields, fields)) {
      if (given != nullptr && given->type == taken->type) continue;
      const bool several = info.fields.of(Role::input).size() > 1;
      refuse("the network takes samples of " + to_string(taken->type) +
             (several ? " as " + in_quotes(taken->name) : "") + ", found " +
             (given == nullptr ? "none" : to_string(given->type)));
    }
  }
  if (dataset.fields.target().count() != static_cast<int64_t>(info.fields.target().names.size())) {
    refuse("the network has " + std::to_string(info.fields.target().names.size()) + " outputs; " +
           data::described(dataset) + " needs " + std::to_string(dataset.fields.target().count()));
  }
}

// What the network was trained with before stays as it is.
void Network::Impl::take_settings_into(Dataset& dataset) const {
  training::take_normalisation(info.fields, dataset.fields);
  require_samples(dataset);
  dataset.fields.target().names = info.fields.target().names;
}

RunResult Network::Impl::train(Dataset dataset, const RunOptions& options) {
  take_settings_into(dataset);
  const bool measured = !info.fields.target().mean.empty();
  dataset.fields.target().mean = info.fields.target().mean;
  dataset.fields.target().stddev = info.fields.target().stddev;
  dataset = training::prepared_for(std::move(dataset), experiment.data, EvaluationPart::validation,
                                   options.run_folder.empty() ? training::Digest::none : training::Digest::whole);
  if (measured) {
    dataset.fields.target().mean = info.fields.target().mean;
    dataset.fields.target().stddev = info.fields.target().stddev;
  }
  Experiment more = experiment;
  // Each call begins an epoch: one that was broken off is left as it is, since this data may be another.
  training::Origin origin = training::origin_of(state);
  if (origin.in_epoch > 0) ++origin.epoch;
  origin.in_epoch = 0;
  more.epochs += origin.epoch;
  if (more.max_steps > 0) more.max_steps += origin.step;
  ModelInfo trained_info = training::model_info(more, dataset);

  return training::profiled(more, options, [&](execution::Profiler* profiler) {
    training::Session session = training::Session::open(more, std::move(dataset), profiler, nullptr, origin);
    // What a callback reads of the network is of the epoch that ended, where that is kept.
    const training::Trainer* training = nullptr;
    AtEpochs listener(options.listener, [&] {
      state = training->last_checkpoint();
      info = trained_info;
    });
    RunOptions told = options;
    told.listener = &listener;
    training::Trainer trainer(session,
                              options.run_folder.empty() ? training::RunFolder::none()
                                                         : training::RunFolder::create(more, options.run_folder),
                              told);
    training = &trainer;
    if (origin.step == 0) {
      session.restore_parameters(state);
      trainer.begin();
    } else {
      storage::Checkpoint from = state;
      from.model = trained_info;
      from.counters["steps_per_epoch"] = session.steps_per_epoch();
      for (const char* progress : {"best_epoch", "best_step", "watched_epoch", "stale_epochs"}) {
        from.counters[progress] = 0;
      }
      trainer.begin(from);
    }
    RunResult result;
    try {
      result = trainer.run();
    } catch (...) {
      state = trainer.last_checkpoint();
      info = std::move(trained_info);
      throw;
    }
    state = trainer.checkpoint();
    info = std::move(trained_info);
    return result;
  });
}

EvalReport Network::Impl::evaluate(Dataset dataset, TrainingListener* listener) const {
  Experiment alone = experiment;
  if (alone.data.eval_batch_size == 0) alone.data.eval_batch_size = alone.data.batch_size;
  alone.data.batch_size = alone.accumulate = 1;
  alone.data.validation_fraction = 0;
  alone.data.scale_targets = false;
  alone.max_steps = 0;
  alone.epochs = 1;
  alone.augmentation = {};
  alone.schedule = {};
  alone.early_stopping.reset();
  alone.backend = config::trained_backend(alone.backend);
  const ModelInfo complete = complete_info();
  if (dataset.test.rows() == 0) refuse("evaluate: no test rows in " + data::described(dataset));
  dataset.train = stand_in(dataset.test, dataset);
  dataset.validation = {};
  dataset.batches = nullptr;
  training::take_normalisation(complete.fields, dataset.fields);
  require_samples(dataset);
  dataset.fields.target().names = info.fields.target().names;
  dataset = training::prepared_for(std::move(dataset), alone.data, EvaluationPart::test, training::Digest::none);
  dataset.fields.target().mean = info.fields.target().mean;
  dataset.fields.target().stddev = info.fields.target().stddev;
  training::Session session = training::Session::open(alone, std::move(dataset));
  session.restore_parameters(state);
  if (listener != nullptr && !session.notice().empty()) listener->on_message(session.notice());
  return session.evaluate();
}

Network::Network(Experiment experiment, ModelInfo info)
    : impl_(std::make_unique<Impl>(std::move(experiment), std::move(info))) {}
Network::Network(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Network::Network(const Network& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(const Network& other) {
  if (this != &other) impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

Network Network::load(const std::filesystem::path& path, const std::vector<Override>& overrides) {
  training::TrainedFile trained = training::read_trained(path, overrides);
  storage::Checkpoint& checkpoint = trained.checkpoint;
  Experiment& experiment = trained.experiment;
  ModelInfo info = training::model_info(checkpoint, experiment, trained.file);
  if (info.fields.target().names.empty()) info.fields.target().names = numbered_outputs(experiment, info.fields);
  auto impl = std::make_unique<Impl>(std::move(experiment), std::move(info), std::move(checkpoint));
  impl->begin_average();
  return Network(std::move(impl));
}

const Experiment& Network::experiment() const { return impl_->experiment; }
const ModelInfo& Network::info() const { return impl_->info; }
void Network::set(Experiment experiment, ModelInfo info) { impl_->set(std::move(experiment), std::move(info)); }
const std::vector<NetworkTensor>& Network::tensors() const { return impl_->tensors; }
std::span<const float> Network::read(const std::string& name) const { return floats_in(*impl_->find(name).front()); }

void Network::write(const std::string& name, std::span<const float> values) {
  for (StoredTensor* tensor : impl_->find(name)) {
    if (values.size() != floats_in(*tensor).size()) {
      refuse("the tensor " + in_quotes(name) + " is " + to_string(tensor->type) + ", found " +
             std::to_string(values.size()) + " values");
    }
    std::memcpy(tensor->values.data(), values.data(), values.size_bytes());
  }
}

std::string Network::read_file(const std::filesystem::path& file, const std::filesystem::path& names, bool strict) {
  Experiment from = impl_->experiment;
  from.init_from = {.file = file, .names = names};
  const std::optional<training::Start> start = training::find_start(from, training::model_samples(impl_->info.fields));
  const training::TransferReport& report = start.value().report;
  if (strict && (!report.kept.empty() || !report.unused.empty())) {
    refuse("not all tensors are in both the file and the network; with strict off those are taken that fit.\n" +
           report.text());
  }
  for (const NetworkTensor& tensor : impl_->tensors) {
    const StoredTensor* stored = start->find(tensor.name, tensor.shape);
    if (stored != nullptr) write(tensor.name, floats_in(*stored));
  }
  const std::string prepared =
      start->stored.model ? impl_->take_preparation(*start->stored.model) : training::kept_preparation(impl_->info);
  return report.text() + "\n  " + prepared;
}

int64_t Network::steps() const { return impl_->counter("step"); }
int64_t Network::epochs() const { return impl_->counter("epoch"); }
void Network::forget_training() { impl_->forget_training(); }

void Network::save(const std::filesystem::path& file) const {
  training::require_output(file);
  const storage::Checkpoint checkpoint = impl_->checkpoint();
  if (file.extension() != ".safetensors") return storage::save_checkpoint(file, checkpoint);
  storage::Safetensors content;
  if (is_prepared()) content.metadata = training::model_metadata(*checkpoint.model);
  content.metadata["format"] = "pt";
  content.tensors = training::model_tensors(checkpoint);
  storage::save_safetensors(file, content);
}

RunResult Network::train(Dataset dataset, const RunOptions& options) {
  return impl_->train(std::move(dataset), options);
}
EvalReport Network::evaluate(Dataset dataset, TrainingListener* listener) const {
  return impl_->evaluate(std::move(dataset), listener);
}

}  // namespace gpunn
