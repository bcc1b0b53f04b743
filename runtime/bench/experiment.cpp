#include <gpunn/bench.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "bench/statistics.hpp"
#include "config/checked_backends.hpp"
#include "feed/evaluation_part.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"
#include "nn/model.hpp"
#include "ops/op.hpp"
#include "session/session.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace {

constexpr int64_t kStepsPerSample = 10;

// Samples for a model whose data a program would bring: random numbers of [-1, 1), of each class equally many.
Dataset random_samples(const Experiment& experiment) {
  const ModelSpec& model = experiment.model;
  if (model.inputs.front().shape.empty()) {
    throw Error(experiment.file.string() +
                    ": the model names no input, and the experiment no data to measure it on; "
                    "give data.dataset, or the model's 'input'",
                ExitCode::usage);
  }
  Dataset set;
  set.name = kArrays;
  set.source = "random samples";
  set.unwatched = true;
  const Shape output = nn::output_shape(model, model.inputs.front().shape);
  const std::optional<Field> imagined = tasks::find(experiment.task).imagined_target(output);
  if (!imagined) {
    throw Error(experiment.file.string() + ": the task " + experiment.task + " has no loss for outputs of " +
                    to_string(output) + "; set a task that has one",
                ExitCode::usage);
  }
  set.fields.target() = *imagined;
  Split& part = set.train;
  const int64_t rows = experiment.data.batch_size * experiment.accumulate;
  part.samples = {DType::f32, model.inputs.front().shape};
  part.samples.shape.insert(part.samples.shape.begin(), rows);
  std::vector<float> values(static_cast<std::size_t>(part.samples.elements()));
  std::mt19937 generator(static_cast<uint32_t>(experiment.seed));
  constexpr float kHalf = 0x1p31F;
  for (float& value : values) value = static_cast<float>(generator()) / kHalf - 1;
  const auto bytes = std::as_bytes(std::span(values));
  part.values.assign(bytes.begin(), bytes.end());
  const Field& target = set.fields.target();
  part.fields[target.name] = fields::kind_of(target).blank(target, rows);
  return set;
}

training::Session open_measured(const Experiment& experiment) {
  if (experiment.data.dataset != kArrays) return training::Session::open(experiment);
  return training::Session::open(
      experiment, training::prepared_for(random_samples(experiment), experiment.data, EvaluationPart::validation,
                                         training::Digest::none));
}

}  // namespace

BenchReport bench_experiment(const Experiment& experiment, const BenchOptions& options) {
  Experiment measured = experiment;
  if (options.backend != "auto") measured.backend = options.backend;
  measured.plugins.insert(measured.plugins.end(), options.plugins.begin(), options.plugins.end());
  if (options.threads > 0) measured.threads = options.threads;
  if (!options.kernels.empty()) measured.kernels = options.kernels;
  config::require_one_backend(measured.backend, "a benchmark");
  training::Session session = open_measured(measured);
  session.training();

  // A sample is a run of steps long enough for the clock: several steps are put on the stream before it is waited for,
  // and share a launch where they can, as in a training. Captured graphs are there from the second step on.
  session.train_steps(2);
  const execution::Executable& executable = session.training_executable();
  const int64_t a_launch = std::max<int64_t>(executable.runs_per_launch(), 1);
  const int64_t steps = (kStepsPerSample + a_launch - 1) / a_launch * a_launch;
  execution::Backend& backend = session.backend();
  int64_t samples = 0, allocations = 0, synchronizations = 0;
  const auto sample = [&] {
    const int64_t allocated = backend.allocations(), synchronized = backend.synchronizations();
    session.train_steps(steps);
    if (samples++ >= options.warmup) {
      allocations += backend.allocations() - allocated;
      synchronizations += backend.synchronizations() - synchronized;
    }
    backend.synchronize();
  };
  BenchReport report = bench::measure(sample, options, static_cast<int>(steps));
  report.allocations = allocations;
  report.synchronizations = synchronizations;
  report.captured = executable.captured();
  report.eager_reason = executable.eager_reason();
  report.arena_bytes = session.arena_bytes();
  report.persistent_bytes = session.persistent_bytes();
  report.data_bytes = session.data_bytes();
  bench::add_pool(backend, report);
  report.what = measured.name;
  report.notice = session.notice();
  report.backend = session.backend().name();
  report.samples_per_second = static_cast<double>(session.samples_per_step()) / report.median_seconds;
  report.peak_bytes = session.arena_bytes() + session.persistent_bytes();
  double flops = 0;
  const graph::Graph& program = session.training().graph;
  for (const graph::Node& node : program.nodes()) flops += ops::flops_of(program.signature(node));
  report.gflops = flops / report.median_seconds * 1e-9;
  return report;
}

}  // namespace gpunn
