#include <gpunn/bench_inference.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "execution/backend.hpp"
#include "inference/context.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "inference/forward_weights.hpp"
#include "inference/open_model.hpp"
#include "runs/own_files.hpp"
#include "runs/trained_model.hpp"

namespace gpunn {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewestCalls = 30;
constexpr std::size_t kMostCalls = 1 << 20;
constexpr double kShareOnDevice = 0.25;  // of the time of the calls

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Bytes of any values, numbers from -1 to 1, or integers of 0.
std::vector<std::byte> random_samples(const TensorType& row, int64_t rows) {
  std::vector<std::byte> samples(static_cast<std::size_t>(rows) * row.bytes());
  std::minstd_rand random(1);
  if (row.dtype == DType::u8) {
    std::ranges::generate(samples, [&] { return static_cast<std::byte>(random() >> 8U & 0xFFU); });
  } else if (row.dtype == DType::f32) {
    std::uniform_real_distribution<float> draw(-1, 1);
    auto* const values = reinterpret_cast<float*>(samples.data());
    std::generate_n(values, samples.size() / sizeof(float), [&] { return draw(random); });
  }
  return samples;
}

// A model with one context, as Model::Impl has several.
struct Measured {
  inference::OpenedModel opened;
  std::unique_ptr<inference::Context> context;

  Measured(const std::filesystem::path& path, const ModelOptions& options) {
    inference::check_options(options);
    if (inference::is_engine(path)) {
      opened = inference::open_engine(path, options);
      inference::require_planned(opened.model, options.max_batch);
      context = std::make_unique<inference::Context>(opened.model, std::move(opened.backend), opened.weights, nullptr);
      opened.weights = {};
      return;
    }
    training::TrainedFile trained = training::read_trained(path, options.overrides);
    opened = inference::open_model(trained.checkpoint, trained.file,
                                   inference::with_options(std::move(trained.experiment), options), options);
    const inference::Weights weights = inference::forward_weights(
        opened.model, inference::forward_program(opened.model, 1), trained.checkpoint, trained.file);
    context = std::make_unique<inference::Context>(opened.model, std::move(opened.backend), weights, nullptr);
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;
};

InferenceBenchRow measure_calls(const Measured& measured, int64_t rows, const InferenceBenchOptions& options) {
  inference::Context& context = *measured.context;
  const inference::ForwardModel& model = measured.opened.model;
  std::vector<std::vector<std::byte>> samples;
  std::vector<fields::Standardiser> standardisers;
  for (const inference::ForwardInput& input : model.inputs) {
    samples.push_back(random_samples(input.sample, rows));
    standardisers.push_back(inference::input_standardiser(input, input.sample.dtype));
  }
  std::vector<inference::InputSource> inputs;
  for (std::size_t i = 0; i < samples.size(); ++i) inputs.push_back({samples[i].data(), &standardisers[i]});
  const std::size_t output = model.output_variables().size() - 1;
  std::vector<std::byte> answers(static_cast<std::size_t>(rows) * context.row_bytes(output));
  const inference::OutputTarget target{.output = output, .data = answers.data()};
  const auto call = [&] { context.run(rows, inputs, {&target, 1}); };
  call();
  const execution::Backend* const used = &context.backend();
  execution::require_wanted_kernels({&used, 1}, used->options().kernels, false);
  for (int64_t i = 1; i < options.warmup; ++i) call();
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point last = begin; times.size() < kMostCalls;) {
    call();
    const Clock::time_point now = Clock::now();
    times.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
    if (times.size() >= kFewestCalls && seconds_since(begin) > options.seconds) break;
  }
  std::ranges::sort(times);
  InferenceBenchRow row{.rows = rows, .calls = static_cast<int64_t>(times.size())};
  row.least_seconds = times.front();
  row.p50_seconds = times[times.size() / 2];
  row.p99_seconds = times[times.size() * 99 / 100];
  row.rows_per_second = static_cast<double>(rows) / row.p50_seconds;
  row.device_seconds = context.time_program(rows, kShareOnDevice * options.seconds);
  row.memory_bytes = context.memory_bytes();
  if (options.profile) row.profile = context.profile(rows, *options.profile);
  return row;
}

}  // namespace

InferenceBenchReport bench_inference(const std::filesystem::path& model, const InferenceBenchOptions& options,
                                     const ModelOptions& model_options) {
  if (options.batches.empty()) throw Error("bench infer needs at least one number of rows", ExitCode::usage);
  if (options.profile && !options.profile->file.empty()) {
    training::require_output(options.profile->file);
    require_writable(options.profile->file, {model});
    if (options.batches.size() > 1) {
      throw Error("a trace has the calls of one number of rows; name one batch, or no file", ExitCode::usage);
    }
  }
  InferenceBenchReport report;
  for (const int64_t rows : options.batches) {
    ModelOptions one = model_options;
    one.max_batch = rows;
    one.calls = 1;
    const Clock::time_point begin = Clock::now();
    const Measured loaded(model, one);
    if (report.rows.empty()) {
      const execution::Backend& backend = loaded.context->backend();
      report.model = loaded.opened.model.experiment.name;
      report.backend = backend.name();
      report.device = backend.info().name;
      report.load_seconds = seconds_since(begin);
    }
    report.rows.push_back(measure_calls(loaded, rows, options));
  }
  return report;
}

}  // namespace gpunn
