// Batch norm of channels-last images by itself, forward and backward, with what is fused behind it, against float64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "catch.hpp"
#include "device_memory.hpp"
#include "normalization/arguments.hpp"
#include "typed_values.hpp"

namespace {

using gpunn::backends::BatchNorm;
using namespace gpunn::cuda_tiled;

struct Case {
  int64_t rows, channels, size;
  std::optional<int> counted = {};
  float offset = 0;  // of x, to take the mean far from zero
};

template <class T>
constexpr double kRoundoff = std::is_same_v<T, float>    ? 0x1p-24
                             : std::is_same_v<T, __half> ? 0x1p-11
                                                         : 0x1p-8;

// What rounding takes of numbers that are smaller than T's normal ones.
template <class T>
constexpr double kSmallest = std::is_same_v<T, __half> ? 0x1p-25 : 0x1p-126;

// Where the rows that count lie in float64, and the largest error as a multiple of what is allowed.
struct Worst {
  double units = 0;
  void add(double off, double allowed) {
    units = std::isfinite(off) ? std::max(units, std::abs(off) / allowed) : HUGE_VAL;
  }
};

template <class T>
struct Problem {
  const Case& test;
  BatchNorm shape{.rows = test.rows,
                  .channels = test.channels,
                  .size = test.size,
                  .epsilon = 1e-5F,
                  .momentum = 0.1F,
                  .counted = test.counted.has_value(),
                  .channels_last = true};
  std::size_t pixels = static_cast<std::size_t>(test.rows * test.size);
  std::size_t channels = static_cast<std::size_t>(test.channels);
  std::size_t counted =
      static_cast<std::size_t>(std::min<int64_t>(test.counted.value_or(1 << 20), test.rows) * test.size);
  std::vector<T> x = values(1, test.offset), more = values(2), dy = values(3), more_dy = values(4), relu_y = values(5);
  std::vector<float> gamma = random_values(test.channels, 6), beta = random_values(test.channels, 7);
  std::vector<double> mean = std::vector<double>(channels), rstd = std::vector<double>(channels);

  explicit Problem(const Case& of) : test(of) {
    for (std::size_t c = 0; c < channels && counted > 0; ++c) {
      double sum = 0, squares = 0;
      for (std::size_t p = 0; p < counted; ++p) sum += at(x, p, c);
      mean[c] = sum / static_cast<double>(counted);
      for (std::size_t p = 0; p < counted; ++p) squares += std::pow(at(x, p, c) - mean[c], 2);
      rstd[c] = 1 / std::sqrt(squares / static_cast<double>(counted) + 1e-5);
    }
  }
  std::vector<T> values(unsigned seed, float offset = 0) const {
    std::vector<float> made = random_values(static_cast<int64_t>(pixels * channels), seed);
    for (float& value : made) value += offset;
    return rounded<T>(made);
  }
  double at(const std::vector<T>& of, std::size_t pixel, std::size_t channel) const {
    return static_cast<double>(static_cast<float>(of[pixel * channels + channel]));
  }
  std::vector<float> floats(const std::vector<double>& of) const { return {of.begin(), of.end()}; }
};

template <class T>
void check_forward(const Case& test, bool residual, bool relu) {
  const Problem<T> problem(test);
  const auto [shape, pixels, channels] = std::tuple(problem.shape, problem.pixels, problem.channels);
  const Memory x = on_device(problem.x), more = on_device(problem.more);
  const Memory gamma(problem.gamma), beta(problem.beta);
  const Memory running_mean(std::vector<float>(channels, 2.0F)), running_var(std::vector<float>(channels, 3.0F));
  const Memory count = on_device(std::vector<int32_t>{test.counted.value_or(0)});
  const Memory y(pixels * channels * sizeof(T)), mean(channels * sizeof(float)), rstd(channels * sizeof(float));
  const Memory parts(parts_of_channels_last(shape));
  const Forward<T> f{.x = static_cast<const T*>(x.data()),
                     .gamma = static_cast<const float*>(gamma.data()),
                     .beta = static_cast<const float*>(beta.data()),
                     .count = test.counted ? static_cast<const int32_t*>(count.data()) : nullptr,
                     .parts = static_cast<const float2*>(parts.data()),
                     .residual = residual ? static_cast<const T*>(more.data()) : nullptr,
                     .relu = relu,
                     .y = static_cast<T*>(y.data()),
                     .mean = static_cast<float*>(mean.data()),
                     .rstd = static_cast<float*>(rstd.data()),
                     .running_mean = static_cast<float*>(running_mean.data()),
                     .running_var = static_cast<float*>(running_var.data()),
                     .epsilon = shape.epsilon,
                     .momentum = shape.momentum};
  batch_norm_channels_last(shape, f, static_cast<float2*>(parts.data()), nullptr);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(parts.border_is_whole());
  const std::vector<T> found = read<T>(y, pixels * channels);
  const std::vector<float> means = mean.read(channels), rstds = rstd.read(channels);
  Worst worst;
  for (std::size_t c = 0; c < channels; ++c) {
    const double deviation = problem.counted > 0 ? 1 / problem.rstd[c] : 0;
    worst.add(means[c] - problem.mean[c], 1e-6 * (std::abs(problem.mean[c]) + deviation) + 1e-30);
    worst.add(rstds[c] - problem.rstd[c], 1e-5 * problem.rstd[c] + 1e-30);
    for (std::size_t p = 0; p < pixels; ++p) {
      double expected = 0;
      if (problem.counted > 0) {
        expected =
            (problem.at(problem.x, p, c) - problem.mean[c]) * problem.rstd[c] * problem.gamma[c] + problem.beta[c];
      }
      const double shift = std::abs(problem.mean[c] * problem.rstd[c] * problem.gamma[c]);
      double size = std::abs(expected);
      if (residual) expected += problem.at(problem.more, p, c);
      size += std::abs(expected);
      if (relu) expected = std::max(0.0, expected);
      worst.add(problem.at(found, p, c) - expected, 2 * kRoundoff<T> * size + 1e-6 * (shift + 1) + 1e-5 * size);
    }
  }
  CHECK(worst.units <= 1);
}

template <class T>
void check_backward(const Case& test, bool more, bool relu, bool masked, bool signs) {
  const Problem<T> problem(test);
  const auto [shape, pixels, channels] = std::tuple(problem.shape, problem.pixels, problem.channels);
  const Memory x = on_device(problem.x), dy = on_device(problem.dy), more_dy = on_device(problem.more_dy);
  const Memory relu_y = on_device(problem.relu_y);
  const Memory gamma(problem.gamma), mean(problem.floats(problem.mean)), rstd(problem.floats(problem.rstd));
  const Memory count = on_device(std::vector<int32_t>{test.counted.value_or(0)});
  const Memory dx(pixels * channels * sizeof(T)), through(pixels * channels * sizeof(T));
  const Memory dgamma(channels * sizeof(float)), dbeta(channels * sizeof(float));
  const Memory parts(parts_of_channels_last(shape)), bits(pixels * channels / 8 + 1);
  const Backward<T> b{.dy = static_cast<const T*>(dy.data()),
                      .more_dy = more ? static_cast<const T*>(more_dy.data()) : nullptr,
                      .relu_y = relu ? static_cast<const T*>(relu_y.data()) : nullptr,
                      .masked = masked ? static_cast<T*>(through.data()) : nullptr,
                      .signs = signs ? static_cast<uint8_t*>(bits.data()) : nullptr,
                      .x = static_cast<const T*>(x.data()),
                      .gamma = static_cast<const float*>(gamma.data()),
                      .mean = static_cast<const float*>(mean.data()),
                      .rstd = static_cast<const float*>(rstd.data()),
                      .count = test.counted ? static_cast<const int32_t*>(count.data()) : nullptr,
                      .parts = static_cast<float2*>(parts.data()),
                      .dx = static_cast<T*>(dx.data()),
                      .dgamma = static_cast<float*>(dgamma.data()),
                      .dbeta = static_cast<float*>(dbeta.data())};
  batch_norm_backward_channels_last(shape, b, nullptr);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(parts.border_is_whole());
  CHECK(bits.border_is_whole());
  const std::vector<T> found = read<T>(dx, pixels * channels), gone = read<T>(through, pixels * channels);
  const std::vector<float> dgammas = dgamma.read(channels), dbetas = dbeta.read(channels);
  Worst worst;
  bool same = true;  // what goes on through the ReLU is rounded as an op by itself rounds it
  for (std::size_t c = 0; c < channels; ++c) {
    const auto gradient = [&](std::size_t p) {
      double value = problem.at(problem.dy, p, c);
      if (more) {
        const auto sum = static_cast<float>(value + problem.at(problem.more_dy, p, c));
        value = static_cast<double>(static_cast<float>(static_cast<T>(sum)));
      }
      return relu && problem.at(problem.relu_y, p, c) <= 0 ? 0.0 : value;
    };
    const auto normal = [&](std::size_t p) {
      return (problem.at(problem.x, p, c) - problem.mean[c]) * problem.rstd[c];
    };
    double sum = 0, products = 0, size = 0;
    for (std::size_t p = 0; p < problem.counted; ++p) {
      sum += gradient(p);
      products += gradient(p) * normal(p);
      size += std::abs(gradient(p)) * (1 + std::abs(normal(p)));
    }
    const double n = std::max<double>(1, static_cast<double>(problem.counted));
    const double far = 1 + std::abs(problem.mean[c] * problem.rstd[c]);  // x - mean loses that much of float
    worst.add(dbetas[c] - sum, 1e-6 * size + 1e-30);
    worst.add(dgammas[c] - products, 1e-6 * size * far + 1e-30);
    for (std::size_t p = 0; p < pixels; ++p) {
      if (masked) same = same && problem.at(gone, p, c) == gradient(p);
      const double scale = problem.gamma[c] * problem.rstd[c];
      const double expected = p < problem.counted ? scale * (gradient(p) - sum / n - normal(p) * products / n) : 0.0;
      const double terms = std::abs(scale) * (std::abs(gradient(p)) + size / n * (2 + std::abs(normal(p))));
      worst.add(problem.at(found, p, c) - expected,
                2 * kRoundoff<T> * std::abs(expected) + 1e-5 * terms + 1e-6 * terms * far + kSmallest<T>);
    }
  }
  CHECK(worst.units <= 1);
  CHECK(same);
}

const std::vector<Case> kCases = {
    {4, 64, 49},   // eights of channels
    {3, 264, 36},  // more than a block's
    {2, 2048, 4},  // few rows, many channels
    {40, 32, 196, std::optional<int>(33)},
    {5, 12, 81},                         // fours
    {5, 37, 64, std::optional<int>(3)},  // one at a time
    {3, 8, 2, std::optional<int>(0)},    // none counts
    {2, 8, 3, std::optional<int>(1)},
    {9, 37, 1024},                   // more pieces than blocks
    {8, 40, 100, std::nullopt, 30},  // a mean far from zero
};

template <class T>
void check_all(const Case& test) {
  INFO(test.rows << " x " << test.channels << " x " << test.size << ", counted " << test.counted.value_or(-1)
                 << ", bytes of a number " << sizeof(T));
  check_forward<T>(test, false, false);
  check_forward<T>(test, true, true);
  check_backward<T>(test, false, false, false, false);
  check_backward<T>(test, false, true, false, false);
  check_backward<T>(test, true, true, true, false);
  check_backward<T>(test, true, true, false, false);
  if (sizeof(T) == 2 && test.channels % 8 == 0) {
    check_backward<T>(test, false, true, false, true);
    check_backward<T>(test, true, true, false, true);
  }
}

}  // namespace

TEST_CASE("batch norm of channels-last images agrees with float64 both ways, with what is fused into it") {
  for (const Case& test : kCases) {
    check_all<float>(test);
    check_all<__nv_bfloat16>(test);
    check_all<__half>(test);
  }
  // More pieces than blocks, in eights of channels.
  const Case large{90, 64, 784};
  check_forward<__nv_bfloat16>(large, false, true);
  check_backward<__nv_bfloat16>(large, false, true, false, true);
}
