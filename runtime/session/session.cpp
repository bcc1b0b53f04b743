#include "session/session.hpp"

#include <gpunn/float_formats.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <numeric>

#include "common/text.hpp"
#include "config/checked_backends.hpp"
#include "feed/batch_stream.hpp"
#include "feed/model_samples.hpp"
#include "feed/targets.hpp"
#include "program/augmentation.hpp"
#include "program/gradient_buckets.hpp"
#include "program/loss_scale.hpp"
#include "program/mixup.hpp"
#include "program/optimizer_ops.hpp"
#include "program/variable_access.hpp"
#include "session/check/step_checker.hpp"
#include "session/frozen_features.hpp"
#include "session/memory_check.hpp"
#include "session/notices.hpp"
#include "session/open_backend.hpp"
#include "session/training_length.hpp"
#include "tasks/classification.hpp"

namespace gpunn::training {

using graph::Storage;

namespace {

// The bytes of all values that the step programs keep from step to step, each name counted once.
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

struct Session::Parts {
  std::unique_ptr<const Experiment> experiment;
  execution::Profiler* profiler = nullptr;
  std::shared_ptr<distributed::Team> team = nullptr;
  Ranks ranks = {};
  std::unique_ptr<execution::ProgramRunner> runner = nullptr;
  std::unique_ptr<DataFeed> data = nullptr;
  std::unique_ptr<TrainingState> state = nullptr;
  Origin origin = {};
  TrainingLength length = {};
  Schedule schedule = {};
  std::unique_ptr<execution::Backend> second = nullptr;
  std::unique_ptr<tasks::FrozenFeatures> frozen = nullptr;
};

Session::Session(Parts parts)
    : experiment_(std::move(parts.experiment)),
      profiler_(parts.profiler),
      team_(std::move(parts.team)),
      ranks_(parts.ranks),
      runner_(std::move(parts.runner)),
      data_(std::move(parts.data)),
      state_(std::move(parts.state)),
      length_(parts.length),
      schedule_(std::move(parts.schedule)),
      second_(std::move(parts.second)),
      frozen_(std::move(parts.frozen)) {}

Session::Session(Session&&) noexcept = default;

Session Session::open(const Experiment& experiment, execution::Profiler* profiler, EvaluationPart part) {
  return open(experiment, load_for(experiment.data, part), profiler);
}

Session Session::open(const Experiment& given, Dataset dataset, execution::Profiler* profiler,
                      std::shared_ptr<distributed::Team> team, const Origin& origin) {
  const Ranks ranks = team == nullptr ? Ranks{} : Ranks{team->rank(), team->world()};
  return open(Parts{.experiment = std::make_unique<const Experiment>(given),
                    .profiler = profiler,
                    .team = std::move(team),
                    .ranks = ranks,
                    .origin = origin},
              std::move(dataset));
}

Session Session::open_planned(const Experiment& given, Dataset dataset, int world) {
  return open(Parts{.experiment = std::make_unique<const Experiment>(given), .ranks = {0, world}}, std::move(dataset));
}

Session Session::open(Parts parts, Dataset dataset) {
  execution::Profiler* const profiler = parts.profiler;
  const Ranks ranks = parts.ranks;
  const Experiment& experiment = *parts.experiment;
  const plugins::PluginRegistry registry(experiment.plugins);
  require_named_plugins(experiment, registry);
  // A mistake is told before a device is touched.
  parts.length = training_length(experiment, dataset, parts.origin);
  require_divisible(experiment, ranks);
  require_augmentable(experiment, dataset);
  require_targets(experiment, dataset);
  require_weights(dataset);
  require_samples(experiment, dataset);
  const nn::SampleTypes samples = model_samples(dataset);
  std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, samples);
  std::vector<UpdateRule> rules = update_rules(parameters, experiment);
  std::vector<nn::Parameter> buffers = nn::model_buffers(experiment.model, samples);
  frozen_norms(experiment, parameters, rules, buffers);
  parts.frozen = load_frozen_of(experiment);
  parts.schedule = Schedule(experiment, parts.length);
  if (profiler != nullptr) config::require_one_backend(experiment.backend, "a profile");

  if (ranks.world > 1) config::require_one_backend(experiment.backend, "a training with several ranks");
  auto backend = open_backend(experiment, registry, config::trained_backend(experiment.backend), parts.team.get());
  backend->join(parts.team);
  if (parts.team == nullptr) backend->plan_ranks(ranks.world);
  if (const auto two = config::checked_backends(experiment.backend)) {
    parts.second = open_backend(experiment, registry, two->checked, nullptr);
  }
  if (profiler != nullptr) profiler->attach(*backend);
  const gpunn_device_info device = backend->info();
  const uint64_t alignment = parameter_alignment(experiment.precision, device.alignment);
  const bool shards = shards_optimizer(experiment, ranks);
  ParameterLayout layout = lay_out(std::move(parameters), std::move(rules), alignment, shards ? ranks.world : 1);
  StateSharing sharing;
  if (shards) sharing = {parts.team, gradient_buckets(layout, bucket_elements(experiment))};
  parts.state = std::make_unique<TrainingState>(experiment, std::move(layout), lay_out(std::move(buffers), alignment),
                                                std::move(sharing));
  require_memory_for_weights(experiment, parts.state->parameters(), parts.state->buffers(), device);
  parts.runner = std::make_unique<execution::ProgramRunner>(std::move(backend));
  parts.data = std::make_unique<DataFeed>(experiment, std::move(dataset), ranks, parts.length.shift);
  Session session(std::move(parts));
  session.data_->place(*session.runner_, profiler);
  session.upload_tables();
  if (session.frozen_ != nullptr) place_frozen(*session.runner_, session.experiment_->loss, *session.frozen_);
  session.state_->initialise(session.variables());
  return session;
}

std::string Session::backend_name() const {
  const auto two = config::checked_backends(experiment_->backend);
  if (!two) return runner_->backend().name();
  // As they were given, a path too; but "auto" may choose another one tomorrow.
  const std::string checked = checker_ != nullptr ? checker_->comparison().checked : second_->name();
  return config::CheckedBackends{two->trained == "auto" ? runner_->backend().name() : two->trained,
                                 two->checked == "auto" ? checked : two->checked}
      .text();
}

Session::~Session() {
  if (runner_ == nullptr) return;  // moved from
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
  where_it_can([&] { backend().synchronize(); });  // nothing is freed that is still in use
}

void Session::upload_tables() {
  for (const tasks::Table& table : task().tables(context().of_task())) {
    variables().create(table.name, {DType::f32, table.shape}, Storage::data);
    variables().write(table.name, bytes_of(table.values));
  }
}

void Session::upload_mixup() {
  const AugmentationConfig& a = experiment_->augmentation;
  if (a.mixup == 0 && a.cutmix == 0) return;
  const auto upload = [&](const char* name, const TensorType& type, const std::vector<float>& values) {
    variables().create(name, type, Storage::state);
    variables().write(name, bytes_of(values));
  };
  const int64_t steps = std::max<int64_t>(total_steps(), 1);
  const TensorType table{DType::f32, {steps}};
  if (a.cutmix == 0) return upload(variable::kMixupShares, table, mixup_shares(a.mixup, experiment_->seed, steps));
  const Shape& sample = dataset().train.samples.shape;
  const MixTables tables = mix_tables(a.mixup, a.cutmix, sample[2], sample[3], experiment_->seed, steps);
  upload(variable::kMixupShares, table, tables.pixels);
  upload(variable::kMixTargets, table, tables.targets);
  upload(variable::kMixTop, table, tables.top);
  upload(variable::kMixLeft, table, tables.left);
  upload(variable::kMixBottom, table, tables.bottom);
  upload(variable::kMixRight, table, tables.right);
  const auto numbered = [&](const char* name, const Shape& shape) {
    std::vector<float> places(static_cast<std::size_t>(element_count(shape)));
    std::iota(places.begin(), places.end(), 0.0F);
    variables().create(name, {DType::f32, shape}, Storage::data);
    variables().write(name, bytes_of(places));
  };
  numbered(variable::kMixRows, {1, 1, sample[2], 1});
  numbered(variable::kMixColumns, {1, 1, 1, sample[3]});
}

ProgramContext Session::context_of(const Experiment& experiment) const {
  return {.experiment = experiment,
          .layout = layout(),
          .fields = dataset().fields,
          .outputs = dataset().fields.target().count(),
          .total_steps = total_steps(),
          .buffers = buffers(),
          .alignment = runner_->backend().info().alignment,
          .frozen = frozen_.get(),
          .ranks = ranks(),
          .shifted = length_.shift != 0};
}

// Fused no further than both backends can have it, where there are two.
execution::RunnableProgram Session::compile_training() const {
  graph::Graph program = training_program(context(), data_->train());
  if (second_ == nullptr) {
    if (experiment_->precision != Precision::bf16) return runner_->compile_fastest(program);
    // The values of a small network never leave the chip where its step is one kernel, which is faster than its ops in
    // half precision. What it computes in f32 is within what half precision allows.
    Experiment wide = *experiment_;
    wide.precision = Precision::fp32;
    execution::RunnableProgram fused = runner_->compile(training_program(context_of(wide), data_->train()));
    if (!execution::is_fused_as_whole(fused.compiled)) return runner_->compile_fastest(program);
    execution::RunnableProgram low = runner_->compile(std::move(program));
    return execution::is_fused_as_whole(low.compiled) ? std::move(low) : std::move(fused);
  }
  const std::array<const execution::Backend*, 2> both = {&runner_->backend(), second_.get()};
  return {execution::place_and_plan(execution::lower(std::move(program), both), runner_->backend(),
                                    execution::FuseSubgraphs::none)};
}

StreamedProgram& Session::training_step() {
  if (training_ == nullptr) {
    const auto steps = static_cast<int64_t>(schedule_.rates().size());
    variables().create(variable::kLearningRates, {DType::f32, {steps}}, Storage::state);
    upload_rates();
    upload_mixup();
    training_ =
        std::make_unique<StreamedProgram>(StreamedProgram{compile_training(), data_->training_stream(total_steps())});
    check_memory();
    const execution::CompiledProgram& compiled = training_->program.compiled;
    runner_->reserve(std::max(compiled.plan.arena_bytes, evaluation_arena_bytes()));
    runner_->ready(training_->program);
    write_counters(0);
    if (second_ != nullptr) {
      checker_ = std::make_unique<StepChecker>(
          Trained{runner_->backend(), runner_->variables(), compiled, layout(), data_->resident()}, std::move(second_));
    }
    std::vector<const execution::Backend*> backends = {&runner_->backend()};
    if (checker_ != nullptr) backends.push_back(&checker_->checked());
    execution::require_wanted_kernels(backends, experiment_->kernels, experiment_->kernels_where_named);
  }
  return *training_;
}

std::optional<LoaderCounts> Session::loader() const {
  if (training_ == nullptr || training_->stream == nullptr) return std::nullopt;
  return training_->stream->counts();
}

uint64_t Session::evaluation_arena_bytes() {
  return data_->evaluates() ? evaluation_step().program.compiled.plan.arena_bytes : 0;
}

// Before the first byte of the arena is asked for.
void Session::check_memory() {
  const execution::CompiledProgram& training = training_->program.compiled;
  const graph::Graph& evaluation = data_->evaluates() ? evaluation_step().program.compiled.graph : training.graph;
  const MemoryNeed need{.arena = std::max(training.plan.arena_bytes, evaluation_arena_bytes()),
                        .persistent = persistent_bytes_of({&training.graph, &evaluation}),
                        .data = variables().bytes(Storage::data)};
  std::function<uint64_t(int64_t)> arena_of;
  if (data_->resident()) {  // a ring is as large as its batches
    arena_of = [this](int64_t batch) {
      Experiment smaller = *experiment_;
      smaller.data.batch_size = batch;
      return arena_bytes_of(smaller);
    };
  }
  require_memory(experiment_->file.string(), need, with_host_limits(runner_->backend().info()),
                 experiment_->data.batch_size, arena_of);
}

uint64_t Session::arena_bytes_of(const Experiment& other) const {
  ProgramContext with = context_of(other);
  const auto arena_bytes = [this](graph::Graph program) {
    return execution::compile(std::move(program), runner_->backend()).plan.arena_bytes;
  };
  const uint64_t training_arena = arena_bytes(training_program(with, data_->train()));
  if (!data_->evaluates()) return training_arena;
  with.outputs = data_->outputs_of(dataset().test);
  if (data_->evaluates_singly())
    return std::max(training_arena, arena_bytes(evaluation_program(with, data_->test(), 1)));
  const int64_t batch = other.data.eval_batch_size > 0 ? other.data.eval_batch_size : other.data.batch_size;
  return std::max(training_arena,
                  arena_bytes(evaluation_program(with, data_->test(), std::min(batch, data_->test().rows()))));
}

StreamedProgram& Session::evaluation_step() {
  if (evaluation_ == nullptr) {
    ProgramContext evaluated = context();
    evaluated.outputs = data_->outputs_of(dataset().test);
    evaluation_ = std::make_unique<StreamedProgram>(
        StreamedProgram{runner_->compile(evaluation_program(evaluated, data_->test(), data_->evaluation_batch())),
                        data_->evaluation_stream(ranks())});
  }
  return *evaluation_;
}

const execution::CompiledProgram& Session::training() { return training_step().program.compiled; }

void Session::train_steps(int64_t count) {
  StreamedProgram& step = training_step();
  for (; count > 0 && checker_ != nullptr; --count) {
    step.run(1, [&](int64_t) { checker_->step(runner_->ready(step.program)); });
  }
  for (; count > 0 && profiler_ != nullptr && !profiler_->finished(); --count) {
    step.run(1, [&](int64_t) {
      execution::Executable& op_by_op = runner_->ready_op_by_op(step.program);  // first: it sees to the arena
      profiler_->step(runner_->ready(step.program), op_by_op, step.program.compiled);
    });
  }
  if (count > 0) step.run(count, [&](int64_t steps) { runner_->ready(step.program).run(steps); });
}

std::optional<BackendComparison> Session::comparison() const {
  return checker_ == nullptr ? std::nullopt : std::optional(checker_->comparison());
}

void Session::train_step_observed(const std::function<void(const graph::Node&)>& after) {
  execution::Executable& executable = runner_->ready_op_by_op(training_step().program);
  training_->run(1, [&](int64_t) { executable.run_observed(after); });
}

std::optional<double> Session::first_non_finite(graph::ValueId id) {
  const graph::Value& value = training().graph.value(id);
  const std::size_t bytes = value.type.bytes();
  std::vector<std::byte> host(bytes);
  runner_->backend().download(host.data(), runner_->ready_op_by_op(training_->program).address(id), bytes);
  const auto search = [&]<class T>(T) -> std::optional<double> {
    for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
      T element;
      std::memcpy(&element, host.data() + i, sizeof(T));
      if (!std::isfinite(static_cast<double>(element))) return static_cast<double>(element);
    }
    return std::nullopt;
  };
  if (value.type.dtype == DType::f32) return search(0.0F);
  if (value.type.dtype == DType::f64) return search(0.0);
  if (value.type.dtype == DType::bf16) return search(BFloat16());
  if (value.type.dtype == DType::f16) return search(Half());
  return std::nullopt;
}

const execution::CompiledProgram& Session::evaluation() { return evaluation_step().program.compiled; }

std::string Session::notice() const {
  const std::string of_features = frozen_ == nullptr ? "" : join(frozen_->notes, "\n");
  return joined(joined(joined(joined(join(experiment_->notes, "\n"), fallback_notice(dataset())), notes_of(dataset())),
                       of_features),
                runner_->backend().notice());
}

void Session::upload_rates() { variables().write(variable::kLearningRates, bytes_of(schedule_.rates())); }

bool Session::epoch_ended(const EpochReport& epoch) {
  training_step();
  const bool changed = schedule_.epoch_ended(epoch);
  if (changed) upload_rates();
  return changed;
}

// The counters of the step program, after so many steps.
void Session::write_counters(int64_t step) {
  write_scalar<int64_t>(variables(), variable::kStep, step);
  if (length_.shift != 0) write_scalar<int64_t>(variables(), variable::kPosition, step + length_.shift);
  // The number of the next pass through the model, of all ranks.
  const Division division = data_->division();
  if (division.parts == 1 && !division.divided) return;
  write_scalar<int64_t>(variables(), variable::kPass, step * division.parts + division.mine.begin);
}

int64_t Session::step() { return training_step(), read_scalar<int64_t>(variables(), variable::kStep); }

SumVariables Session::sums_of(tasks::Phase phase) const {
  ProgramContext of_phase = context();
  if (phase == tasks::Phase::evaluation) of_phase.outputs = data_->outputs_of(dataset().test);
  return {runner_->variables(), phase, tasks::accumulators_of(task(), of_phase.of_task(), phase)};
}

tasks::Accumulated Session::sums() const { return sums_of(tasks::Phase::training).read(team_.get()); }
void Session::reset_sums() { sums_of(tasks::Phase::training).reset(); }

Scores Session::training_scores(const tasks::Accumulated& sums) const {
  return tasks::MetricTallies(task().metrics(), tasks::Phase::training).scores(sums, dataset().fields.target().count());
}

std::vector<float> Session::losses(int64_t first, int64_t last) const {
  return history(variable::kLossHistory, first, last);
}

std::vector<float> Session::gradient_norms(int64_t first, int64_t last) const {
  if (!records_gradient_norm(*experiment_)) return {};
  return history(variable::kGradientNorms, first, last);
}

std::optional<LossScale> Session::loss_scale() const {
  if (!scales_loss(*experiment_)) return std::nullopt;
  return LossScale{.scale = read_scalar<float>(variables(), variable::kLossScale),
                   .skipped_steps = static_cast<int64_t>(read_scalar<float>(variables(), variable::kSkippedSteps))};
}

std::vector<float> Session::history(const char* variable, int64_t first, int64_t last) const {
  const std::vector<std::byte> bytes = variables().read(variable);
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
