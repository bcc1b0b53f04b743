#include <gpunn/bench_inference.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <vector>

namespace gpunn {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewestCalls = 30;
constexpr std::size_t kMostCalls = 1 << 20;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Bytes of any values, or numbers from -1 to 1.
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

InferenceBenchRow measure_calls(const Model& model, int64_t rows, const InferenceBenchOptions& options) {
  const ModelTensor& input = model.inputs().front();
  const ModelTensor& output = model.outputs().back();
  const Shape shape = batch_shape(input.row.shape, rows), answer_shape = batch_shape(output.row.shape, rows);
  const std::vector<std::byte> samples = random_samples(input.row, rows);
  std::vector<float> answers(static_cast<std::size_t>(element_count(answer_shape)));
  const ArrayView in{.name = input.name, .dtype = input.row.dtype, .shape = shape, .data = samples.data()};
  const MutableArrayView out{
      .name = output.name, .dtype = output.row.dtype, .shape = answer_shape, .data = answers.data()};
  for (int64_t i = 0; i < options.warmup; ++i) model.run(in, out);
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point last = begin; times.size() < kMostCalls;) {
    model.run(in, out);
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
  row.memory_bytes = model.memory_bytes();
  return row;
}

}  // namespace

InferenceBenchReport bench_inference(const std::filesystem::path& model, const InferenceBenchOptions& options,
                                     const ModelOptions& model_options) {
  if (options.batches.empty()) throw Error("bench infer wants at least one number of rows", ExitCode::usage);
  InferenceBenchReport report;
  for (const int64_t rows : options.batches) {
    ModelOptions one = model_options;
    one.max_batch = rows;
    one.calls = 1;
    const Clock::time_point begin = Clock::now();
    const Model loaded = Model::load(model, one);
    if (report.rows.empty()) {
      report.model = loaded.experiment().name;
      report.backend = loaded.backend();
      report.device = loaded.device();
      report.load_seconds = seconds_since(begin);
    }
    report.rows.push_back(measure_calls(loaded, rows, options));
  }
  return report;
}

}  // namespace gpunn
