#include "training/session.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>

#include "common/text.hpp"
#include "config/checked_backends.hpp"
#include "tasks/classification.hpp"
#include "training/augmentation.hpp"
#include "training/batch_stream.hpp"
#include "training/check/step_checker.hpp"
#include "training/memory_check.hpp"
#include "training/mixup.hpp"
#include "training/notices.hpp"
#include "training/open_backend.hpp"
#include "training/optimizer_ops.hpp"
#include "training/residency.hpp"
#include "training/session_bound.hpp"
#include "training/targets.hpp"
#include "training/training_length.hpp"
#include "training/variable_access.hpp"

namespace gpunn::training {

using graph::Storage;

namespace {

// Of what the programs keep from step to step, each by its name once.
uint64_t persistent_bytes_of(std::initializer_list<const graph::Graph*> programs) {
  std::map<std::string, uint64_t> bytes;
  for (const graph::Graph* program : programs) {
    for (const graph::Value& value : program->values()) {
      const bool root = value.view_of == graph::kNoValue;
      if (root && value.storage != Storage::arena && value.storage != Storage::data) {
        bytes[value.name] = value.type.bytes();
      }
    }
  }
  uint64_t total = 0;
  for (const auto& [name, size] : bytes) total += size;
  return total;
}

std::string notes_of(const Dataset& dataset) {
  std::string text;
  for (const std::string& note : dataset.notes) text = joined(text, note);
  return text;
}

}  // namespace

Session::Session(const Experiment& experiment, execution::Profiler* profiler, EvaluationPart part)
    : Session(experiment, load_for(experiment.data, part), profiler) {}

Session::Session(Experiment experiment, Dataset dataset, execution::Profiler* profiler)
    : experiment_(std::move(experiment)),
      profiler_(profiler),
      dataset_(std::move(dataset)),
      registry_(experiment_.plugins) {
  require_named_plugins(experiment_, registry_);
  const TrainingLength length = training_length(experiment_, dataset_);
  require_augmentable(experiment_, dataset_);
  require_targets(experiment_, dataset_);
  scale_targets(dataset_);
  const Shape sample = sample_shape(dataset_);
  std::vector<nn::Parameter> parameters = nn::model_parameters(experiment_.model, sample);
  std::vector<UpdateRule> rules = update_rules(parameters, experiment_);
  std::vector<nn::Parameter> buffers = nn::model_buffers(experiment_.model, sample);
  frozen_norms(experiment_, parameters, rules, buffers);  // a mistake is told before a device is touched

  train_split_ = split_type("train", experiment_, dataset_.train.samples, dataset_.classes);
  test_split_ = split_type("test", experiment_, dataset_.test.samples, dataset_.classes);
  steps_per_epoch_ = length.steps_per_epoch;
  total_steps_ = length.steps;
  schedule_ = Schedule(experiment_, steps_per_epoch_, total_steps_);

  if (profiler_ != nullptr) config::require_one_backend(experiment_.backend, "a profile");
  backend_ = open_backend(experiment_, registry_, config::trained_backend(experiment_.backend));
  if (const auto two = config::checked_backends(experiment_.backend))
    second_ = open_backend(experiment_, registry_, two->checked);
  if (profiler_ != nullptr) profiler_->attach(*backend_);
  variables_ = std::make_unique<execution::Variables>(*backend_);
  layout_ = lay_out(std::move(parameters), std::move(rules), backend_->info().alignment);
  buffers_ = lay_out(std::move(buffers), backend_->info().alignment);

  place_data();
  upload_normalisation();
  upload_class_targets();
  initialise_parameters();
  initialise_updates();
}

std::string Session::backend_name() const {
  const auto two = config::checked_backends(experiment_.backend);
  if (!two) return backend_->name();
  // As they were given, a path too; but "auto" may choose another one tomorrow.
  const std::string checked = checker_ != nullptr ? checker_->comparison().checked : second_->name();
  return config::CheckedBackends{two->trained == "auto" ? backend_->name() : two->trained,
                                 two->checked == "auto" ? checked : two->checked}
      .text();
}

Session::~Session() {
  const auto where_it_can = [](const auto& action) {
    try {
      action();
    } catch (const std::exception&) {  // a lost device uses nothing
    }
  };
  where_it_can([&] {
    if (training_ != nullptr && training_->stream != nullptr) training_->stream->drain();
  });
  where_it_can([&] {
    if (profiler_ != nullptr) profiler_->detach();
  });
  where_it_can([&] { backend_->synchronize(); });  // nothing is freed that is still in use
}

void Session::place_data() {
  residency_ = choose_residency(experiment_.data.residency, resident_bytes(dataset_), backend_->info());
  if (residency_ == Residency::stream) {
    const uint64_t alignment = backend_->info().alignment;
    train_split_.ring = lay_out_ring(train_split_.samples, train_split_.words_of_row(),
                                     training_sampling(experiment_, train_split_).batch, alignment);
    test_split_.ring = lay_out_ring(test_split_.samples, test_split_.words_of_row(), evaluation_batch(), alignment);
    return;
  }
  upload(train_split_, dataset_.train);
  upload(test_split_, dataset_.test);
  for (Split* split : {&dataset_.train, &dataset_.test}) split->values = {};
}

void Session::upload(const SplitType& type, const Split& split) {
  const execution::HostSpan span(profiler_, "data upload");
  variables_->create(type.samples_variable(), split.samples, Storage::data);
  variables_->write(type.samples_variable(), split.values);
  variables_->create(type.rows_variable(), type.rows_type(split.rows()), Storage::data);
  if (type.targets > 0) {
    variables_->write(type.rows_variable(), split.fields.at(kTargetField).values);
  } else {
    variables_->write(type.rows_variable(), bytes_of(split.labels));
  }
}

void Session::upload_normalisation() {
  const DataConfig& data = experiment_.data;
  const std::vector<double>& mean = data.mean.empty() ? dataset_.mean : data.mean;
  const std::vector<double>& stddev = data.stddev.empty() ? dataset_.stddev : data.stddev;
  const auto channels = static_cast<std::size_t>(dataset_.train.samples.shape[1]);
  if (mean.size() != channels || stddev.size() != channels) {
    throw Error(experiment_.file.string() + ": data.mean and data.stddev must have one number for each of the " +
                    std::to_string(channels) + " channels of '" + dataset_.name + "', have " +
                    std::to_string(mean.size()) + " and " + std::to_string(stddev.size()),
                ExitCode::usage);
  }
  const Normalisation normalisation = normalise(dataset_.train.samples.dtype, mean, stddev);
  const TensorType type{DType::f32, {static_cast<int64_t>(channels)}};
  for (const auto& [name, values] :
       {std::pair{variable::kScale, &normalisation.scale}, std::pair{variable::kShift, &normalisation.shift}}) {
    variables_->create(name, type, Storage::data);
    variables_->write(name, bytes_of(*values));
  }
}

void Session::upload_class_targets() {
  if (!task().has_labels() || !tasks::has_class_targets(experiment_)) return;
  const std::vector<float> table = tasks::class_target_table(experiment_.loss, dataset_.classes, dataset_.name);
  variables_->create(tasks::kClassTargets, {DType::f32, {dataset_.classes, dataset_.classes}}, Storage::data);
  variables_->write(tasks::kClassTargets, bytes_of(table));
}

void Session::upload_mixup() {
  const double alpha = experiment_.augmentation.mixup;
  if (alpha == 0) return;
  const std::vector<float> shares = mixup_shares(alpha, experiment_.seed, std::max<int64_t>(total_steps_, 1));
  variables_->create(variable::kMixupShares, {DType::f32, {static_cast<int64_t>(shares.size())}}, Storage::state);
  variables_->write(variable::kMixupShares, bytes_of(shares));
}

void Session::initialise_parameters() {
  initialise(variable::kParameters, layout_, Storage::parameters);
  if (buffers_.total > 0) initialise(variable::kBuffers, buffers_, Storage::state);
}

void Session::initialise_updates() {
  if (experiment_.ema > 0) {
    variables_->create(variable::kAverage, layout_.type(), Storage::optimizer);
    variables_->write(variable::kAverage, variables_->read(variable::kParameters));
  }
  if (experiment_.optimizer.kind == OptimizerKind::lars) {
    for (std::size_t i = 0; i < layout_.ranges.size(); ++i) {
      const std::vector<int64_t> bounds = layout_.bounds(layout_.ranges[i]);
      variables_->create(bounds_variable(i), {DType::i64, {static_cast<int64_t>(bounds.size())}}, Storage::data);
      variables_->write(bounds_variable(i), bytes_of(bounds));
    }
  }
}

void Session::initialise(const char* variable, const ParameterLayout& layout, Storage storage) {
  std::vector<float> flat(static_cast<std::size_t>(layout.total), 0.0F);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const std::vector<float> values = nn::initial_values(layout.parameters[i], experiment_.seed, i);
    std::ranges::copy(values, flat.begin() + layout.offset[i]);
  }
  variables_->create(variable, layout.type(), storage);
  variables_->write(variable, bytes_of(flat));
}

ProgramContext Session::context() const {
  return {.experiment = experiment_,
          .layout = layout_,
          .outputs = dataset_.classes,
          .total_steps = total_steps_,
          .buffers = buffers_};
}

void* Session::arena(uint64_t bytes) {
  if (arena_.data() == nullptr || arena_.bytes() < bytes) {
    backend_->synchronize();
    arena_ = {};
    arena_ = backend_->allocate(bytes);
  }
  return arena_.data();
}

std::unique_ptr<Session::Bound> Session::bind(graph::Graph program) {
  auto bound = std::make_unique<Bound>();
  bound->program = execution::compile(std::move(program), *backend_);
  return bound;
}

// Fused no further than both backends can have it, where there are two.
std::unique_ptr<Session::Bound> Session::bind_training(graph::Graph program) {
  if (second_ == nullptr) return bind(std::move(program));
  const std::array<const execution::Backend*, 2> both = {backend_.get(), second_.get()};
  auto bound = std::make_unique<Bound>();
  bound->program =
      execution::place_and_plan(execution::lower(std::move(program), both), *backend_, execution::Claiming::none);
  return bound;
}

execution::Executable& Session::ready(Bound& bound) {
  void* memory = arena(bound.program.plan.arena_bytes);
  if (bound.executable == nullptr || bound.arena != memory) {
    bound.executable = nullptr;
    bound.executable = std::make_unique<execution::Executable>(*backend_, *variables_, bound.program.graph,
                                                               bound.program.plan, memory, bound.program.claims.taken);
    bound.arena = memory;
  }
  return *bound.executable;
}

execution::Executable& Session::ready_op_by_op(Bound& bound) {
  if (bound.program.claims.taken.empty()) return ready(bound);
  if (!bound.op_by_op_plan) bound.op_by_op_plan = execution::plan_op_by_op(bound.program, *backend_);
  // Of either plan: the program with its claims is run beside this one, and must not have the arena moved.
  void* memory = arena(std::max(bound.op_by_op_plan->arena_bytes, bound.program.plan.arena_bytes));
  if (bound.op_by_op == nullptr || bound.op_by_op_arena != memory) {
    bound.op_by_op = nullptr;
    bound.op_by_op = std::make_unique<execution::Executable>(*backend_, *variables_, bound.program.graph,
                                                             *bound.op_by_op_plan, memory);
    bound.op_by_op_arena = memory;
  }
  return *bound.op_by_op;
}

Session::Bound& Session::training_bound() {
  if (training_ == nullptr) {
    const auto steps = static_cast<int64_t>(schedule_.rates().size());
    variables_->create(variable::kLearningRates, {DType::f32, {steps}}, Storage::state);
    upload_rates();
    upload_mixup();
    training_ = bind_training(training_program(context(), train_split_));
    if (train_split_.ring) {
      training_->stream = std::make_unique<BatchStream>(*backend_, *variables_, dataset_.train, train_split_,
                                                        training_sampling(experiment_, train_split_), profiler_);
    }
    check_memory();
    arena(std::max(training_->program.plan.arena_bytes, evaluation_bound().program.plan.arena_bytes));
    ready(*training_);
    if (second_ != nullptr) {
      checker_ = std::make_unique<StepChecker>(
          Trained{*backend_, *variables_, training_->program, layout_, !train_split_.ring}, std::move(second_));
    }
    std::vector<const execution::Backend*> backends = {backend_.get()};
    if (checker_ != nullptr) backends.push_back(&checker_->checked());
    execution::require_wanted_kernels(backends, experiment_.kernels, experiment_.kernels_where_named);
  }
  return *training_;
}

// Before the first byte of the arena is asked for.
void Session::check_memory() {
  const execution::CompiledProgram& training = training_->program;
  const execution::CompiledProgram& evaluation = evaluation_bound().program;
  const MemoryNeed need{.arena = std::max(training.plan.arena_bytes, evaluation.plan.arena_bytes),
                        .persistent = persistent_bytes_of({&training.graph, &evaluation.graph}),
                        .data = variables_->bytes(Storage::data)};
  std::function<uint64_t(int64_t)> arena_of;
  if (!train_split_.ring && !test_split_.ring) {  // a ring is as large as its batches
    arena_of = [this](int64_t batch) {
      Experiment smaller = experiment_;
      smaller.data.batch_size = batch;
      const ProgramContext with = {.experiment = smaller,
                                   .layout = layout_,
                                   .outputs = dataset_.classes,
                                   .total_steps = total_steps_,
                                   .buffers = buffers_};
      const int64_t evaluated = smaller.data.eval_batch_size > 0 ? smaller.data.eval_batch_size : batch;
      const auto arena_bytes = [this](graph::Graph program) {
        return execution::compile(std::move(program), *backend_).plan.arena_bytes;
      };
      return std::max(arena_bytes(training_program(with, train_split_)),
                      arena_bytes(evaluation_program(with, test_split_, std::min(evaluated, test_split_.rows()))));
    };
  }
  require_memory(experiment_.file.string(), need, backend_->info(), experiment_.data.batch_size, arena_of);
}

int64_t Session::evaluation_batch() const {
  const DataConfig& data = experiment_.data;
  return std::min(data.eval_batch_size > 0 ? data.eval_batch_size : data.batch_size, test_split_.rows());
}

Session::Bound& Session::evaluation_bound() {
  if (evaluation_ == nullptr) {
    evaluation_ = bind(evaluation_program(context(), test_split_, evaluation_batch()));
    evaluation_->stream = evaluation_stream();
  }
  return *evaluation_;
}

const execution::CompiledProgram& Session::training() { return training_bound().program; }

void Session::train_steps(int64_t count) {
  Bound& bound = training_bound();
  for (; count > 0 && checker_ != nullptr; --count) {
    bound.run(1, [&](int64_t) { checker_->step(ready(bound)); });
  }
  for (; count > 0 && profiler_ != nullptr && !profiler_->finished(); --count) {
    bound.run(1, [&](int64_t) {
      execution::Executable& op_by_op = ready_op_by_op(bound);  // first: it sees to the arena
      profiler_->step(ready(bound), op_by_op, bound.program);
    });
  }
  if (count > 0) bound.run(count, [&](int64_t steps) { ready(bound).run(steps); });
}

std::optional<BackendComparison> Session::comparison() const {
  return checker_ == nullptr ? std::nullopt : std::optional(checker_->comparison());
}

void Session::train_step_observed(const std::function<void(const graph::Node&)>& after) {
  execution::Executable& executable = ready_op_by_op(training_bound());
  training_->run(1, [&](int64_t) { executable.run_observed(after); });
}

void Session::go_to(int64_t step) {
  if (training_->stream != nullptr) training_->stream->seek(step);
}

std::optional<double> Session::first_non_finite(graph::ValueId id) {
  const graph::Value& value = training().graph.value(id);
  const std::size_t bytes = value.type.bytes();
  std::vector<std::byte> host(bytes);
  backend_->download(host.data(), ready_op_by_op(*training_).address(id), bytes);
  const auto search = [&]<class T>(T) -> std::optional<double> {
    for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
      T element;
      std::memcpy(&element, host.data() + i, sizeof(T));
      if (!std::isfinite(element)) return static_cast<double>(element);
    }
    return std::nullopt;
  };
  if (value.type.dtype == DType::f32) return search(0.0F);
  if (value.type.dtype == DType::f64) return search(0.0);
  return std::nullopt;
}

const execution::CompiledProgram& Session::evaluation() { return evaluation_bound().program; }

std::string Session::notice() const {
  return joined(joined(joined(join(experiment_.notes, "\n"), fallback_notice(dataset_)), notes_of(dataset_)),
                backend_->notice());
}

std::string Session::streaming_notice() const {
  if (residency_ == Residency::device || experiment_.data.residency != Residency::automatic) return "";
  return "data set '" + dataset_.name + "', " + human_bytes(resident_bytes(dataset_)) +
         ", is streamed from the host: " + "the device has " + human_bytes(backend_->info().free_bytes) +
         " free, and at most half is given to data";
}

uint64_t Session::arena_bytes() const { return arena_.bytes(); }
uint64_t Session::data_bytes() const { return variables_->bytes(Storage::data); }

uint64_t Session::persistent_bytes() const {
  uint64_t total = 0;
  for (const Storage s : {Storage::parameters, Storage::gradients, Storage::optimizer, Storage::state}) {
    total += variables_->bytes(s);
  }
  return total;
}

void Session::upload_rates() { variables_->write(variable::kLearningRates, bytes_of(schedule_.rates())); }

bool Session::epoch_ended(const EpochReport& epoch) {
  training_bound();
  const bool changed = schedule_.epoch_ended(epoch);
  if (changed) upload_rates();
  return changed;
}

int64_t Session::step() { return training_bound(), read_scalar<int64_t>(*variables_, variable::kStep); }
Totals Session::totals() const { return read_totals(*variables_, variable::kTotals); }
void Session::reset_totals() { variables_->write(variable::kTotals, bytes_of(std::vector<double>(4, 0.0))); }

std::vector<float> Session::losses(int64_t first, int64_t last) const {
  return history(variable::kLossHistory, first, last);
}

std::vector<float> Session::gradient_norms(int64_t first, int64_t last) const {
  if (!records_gradient_norm(experiment_)) return {};
  return history(variable::kGradientNorms, first, last);
}

std::vector<float> Session::history(const char* variable, int64_t first, int64_t last) const {
  const std::vector<std::byte> bytes = variables_->read(variable);
  std::vector<float> result;
  for (int64_t step = first; step < last; ++step) {
    float value = 0;
    std::memcpy(&value, bytes.data() + static_cast<std::size_t>(step % kLossHistorySize) * sizeof(float),
                sizeof(float));
    result.push_back(value);
  }
  return result;
}

}  // namespace gpunn::training
