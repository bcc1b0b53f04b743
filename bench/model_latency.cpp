// Measures the time of a call of a trained model: model_latency RUN [BACKEND [ROWS [THREADS [CALLERS]]]]. Samples are
// random; they and the results are in host memory. CALLERS threads call at the same time.
#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/plugins.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsMeasured = 2;
constexpr std::size_t kFewestCalls = 30;

// Microseconds of each call.
std::vector<double> measure(const gpunn::Model& model, int64_t rows, unsigned seed) {
  const gpunn::ModelTensor& input = model.inputs().front();
  const gpunn::ModelTensor& output = model.outputs().back();
  gpunn::Shape shape = input.row.shape, answer_shape = output.row.shape;
  shape.insert(shape.begin(), rows);
  answer_shape.insert(answer_shape.begin(), rows);
  std::vector<std::byte> samples(static_cast<std::size_t>(rows) * input.row.bytes());
  std::minstd_rand random(seed);
  if (input.row.dtype == gpunn::DType::u8) {
    for (std::byte& value : samples) value = static_cast<std::byte>(random() & 0xFF);
  }
  std::vector<float> answers(static_cast<std::size_t>(gpunn::element_count(answer_shape)));
  const gpunn::ArrayView in{.name = input.name, .dtype = input.row.dtype, .shape = shape, .data = samples.data()};
  const gpunn::MutableArrayView out{
      .name = output.name, .dtype = output.row.dtype, .shape = answer_shape, .data = answers.data()};
  for (int i = 0; i < 5; ++i) model.run(in, out);
  std::vector<double> times;
  times.reserve(1 << 20);
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point last = begin; times.size() < times.capacity();) {
    model.run(in, out);
    const Clock::time_point now = Clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(now - last).count());
    last = now;
    if (times.size() >= kFewestCalls && std::chrono::duration<double>(now - begin).count() > kSecondsMeasured) break;
  }
  std::sort(times.begin(), times.end());
  return times;
}

int measure_model(int argc, char** argv) {
  const auto number = [&](int place, long fallback) { return argc > place ? std::atol(argv[place]) : fallback; };
  const int64_t rows = number(3, 1), callers = std::max(1L, number(5, 1));
  gpunn::ModelOptions options{.max_batch = rows, .calls = callers};
  if (argc > 2) options.backend = argv[2];
  if (argc > 4) options.threads = number(4, 0);
  const Clock::time_point begin = Clock::now();
  const gpunn::Model model = gpunn::Model::load(argv[1], options);
  std::printf("%s on %s (%s): loaded in %.1f ms\n", model.experiment().name.c_str(), model.backend().c_str(),
              model.device().c_str(), std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  std::vector<std::vector<double>> times(static_cast<std::size_t>(callers));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < times.size(); ++i) {
    threads.emplace_back([&, i] { times[i] = measure(model, rows, static_cast<unsigned>(i + 1)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& one : times) {
    std::printf("%lld rows: median %.1f us, least %.1f, 99 %% below %.1f, of %zu calls\n", static_cast<long long>(rows),
                one[one.size() / 2], one.front(), one[one.size() * 99 / 100], one.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: model_latency RUN [BACKEND [ROWS [THREADS [CALLERS]]]]\n", stderr);
    return 2;
  }
  int code = 0;
  try {
    code = measure_model(argc, argv);
  } catch (const gpunn::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = static_cast<int>(error.code());
  }
  gpunn::shutdown_plugins();
  return code;
}
