// Convolutions that make the statistics of the batch norm behind them: with every tile the same y as without, mean,
// rstd, running statistics and the normalised images against float64.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "catch.hpp"
#include "conv/half/half_convolution.hpp"
#include "convolution_shapes.hpp"
#include "counters.hpp"
#include "device_memory.hpp"
#include "normalization/slabs.hpp"
#include "typed_values.hpp"

namespace {

using gpunn::backends::BatchNorm;
using gpunn::backends::ConvolutionShape;
using namespace gpunn::cuda_tiled;

constexpr float kEpsilon = 1e-5F, kMomentum = 0.1F;

struct Case {
  ConvolutionShape shape;
  std::optional<int> counted = {};  // images
  float offset = 0;                 // of the pixels, to take the mean far from zero
  bool ending = false;              // a sum and a ReLU behind batch norm
};

template <class T>
void check(const Case& test, int tile) {
  const ConvolutionShape& shape = test.shape;
  const HalfConvolution problem{.shape = shape,
                                .dtype = std::is_same_v<T, __half> ? GPUNN_F16 : GPUNN_BF16,
                                .terms = shape.group_inputs * shape.rows.taps * shape.columns.taps};
  const BatchNorm norm{.rows = shape.batch,
                       .channels = shape.group_outputs,
                       .size = shape.rows.outputs * shape.columns.outputs,
                       .epsilon = kEpsilon,
                       .momentum = kMomentum,
                       .counted = test.counted.has_value(),
                       .channels_last = true};
  INFO(gpunn::backends::text_of(shape) << ", tile " << tile << ", dtype " << problem.dtype << ", images "
                                       << test.counted.value_or(-1) << ", offset " << test.offset);
  const auto pixels = static_cast<std::size_t>(norm.rows * norm.size);
  const auto channels = static_cast<std::size_t>(norm.channels);
  std::vector<float> values = random_values(shape.batch * shape.group_inputs * shape.rows.inputs * shape.columns.inputs,
                                            static_cast<unsigned>(tile));
  for (float& value : values) value = value * 0.125F + test.offset;
  const Memory x = on_device(rounded<T>(values));
  const Memory w = on_device(rounded<T>(random_values(norm.channels * problem.terms, 7)));
  const Memory residual = on_device(rounded<T>(random_values(static_cast<int64_t>(pixels * channels), 8)));
  const std::vector<float> gammas = random_values(norm.channels, 9), betas = random_values(norm.channels, 10);
  const Memory gamma(gammas), beta(betas);
  const Memory running_mean(std::vector<float>(channels, 2.0F)), running_var(std::vector<float>(channels, 3.0F));
  const Memory count = on_device(std::vector<int32_t>{test.counted.value_or(0)});
  const Memory plain_y(pixels * channels * sizeof(T)), y(pixels * channels * sizeof(T));
  const Memory result(pixels * channels * sizeof(T));
  const Memory mean(channels * sizeof(float)), rstd(channels * sizeof(float));

  const std::optional<uint64_t> bytes = half_convolution_workspace(problem);
  REQUIRE(bytes.has_value());
  const Memory workspace(*bytes);
  const SlabPlan slabs = slab_plan(norm, kSlabRows);
  const Memory statistics(slabs.workspace_bytes());
  const Counters counters(slabs.counters());
  HalfConvolutionArgs args{.inputs = {x.data(), w.data()}, .output = plain_y.data(), .workspace = workspace.data()};
  run_half_convolution(problem, tile, args, nullptr);
  args.output = y.data();
  args.statistics = {.slabs = static_cast<float2*>(statistics.data()),
                     .images = test.counted ? static_cast<const int32_t*>(count.data()) : nullptr,
                     .pixels = static_cast<int>(norm.size)};
  run_half_convolution(problem, tile, args, nullptr);
  const Forward<T> f{.x = static_cast<const T*>(y.data()),
                     .gamma = static_cast<const float*>(gamma.data()),
                     .beta = static_cast<const float*>(beta.data()),
                     .count = args.statistics.images,
                     .parts = nullptr,
                     .residual = test.ending ? static_cast<const T*>(residual.data()) : nullptr,
                     .relu = test.ending,
                     .y = static_cast<T*>(result.data()),
                     .mean = static_cast<float*>(mean.data()),
                     .rstd = static_cast<float*>(rstd.data()),
                     .running_mean = static_cast<float*>(running_mean.data()),
                     .running_var = static_cast<float*>(running_var.data()),
                     .epsilon = kEpsilon,
                     .momentum = kMomentum};
  run_batch_norm_of_slabs(norm, slabs, f, static_cast<float2*>(statistics.data()), counters.data(), nullptr);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(workspace.border_is_whole());
  CHECK(statistics.border_is_whole());

  const std::vector<T> of_y = read<T>(y, pixels * channels), of_plain = read<T>(plain_y, pixels * channels);
  CHECK(std::memcmp(of_y.data(), of_plain.data(), of_y.size() * sizeof(T)) == 0);
  const std::vector<T> more = read<T>(residual, pixels * channels), found = read<T>(result, pixels * channels);
  const std::vector<float> means = mean.read(channels), rstds = rstd.read(channels);
  const std::vector<float> running_means = running_mean.read(channels), running_vars = running_var.read(channels);
  const auto n = std::min(pixels, static_cast<std::size_t>(test.counted.value_or(shape.batch) * norm.size));
  const double roundoff = std::is_same_v<T, __half> ? 0x1p-11 : 0x1p-8;
  double worst_mean = 0, worst_rstd = 0, worst_running = 0, worst_result = 0;  // as multiples of what is allowed
  for (std::size_t c = 0; c < channels; ++c) {
    const auto at = [&](const std::vector<T>& of, std::size_t pixel) {
      return static_cast<double>(static_cast<float>(of[pixel * channels + c]));
    };
    double sum = 0, squares = 0;
    for (std::size_t p = 0; p < n; ++p) sum += at(of_y, p);
    const double expected_mean = n == 0 ? 0 : sum / static_cast<double>(n);
    for (std::size_t p = 0; p < n; ++p) squares += std::pow(at(of_y, p) - expected_mean, 2);
    const double variance = n == 0 ? 0 : squares / static_cast<double>(n);
    const double expected_rstd = n == 0 ? 0 : 1 / std::sqrt(variance + kEpsilon);
    const auto worse = [](double& worst, double off, double allowed) {
      worst = std::isfinite(off) ? std::max(worst, std::abs(off) / allowed) : HUGE_VAL;
    };
    worse(worst_mean, means[c] - expected_mean, 1e-6 * (std::abs(expected_mean) + std::sqrt(variance)) + 1e-30);
    worse(worst_rstd, rstds[c] - expected_rstd, 1e-5 * expected_rstd + 1e-30);
    if (n > 0) {
      const double unbiased = squares / std::max(1.0, static_cast<double>(n) - 1);
      worse(worst_running, running_means[c] - (0.9 * 2 + 0.1 * expected_mean), 1e-6 * (2 + std::abs(expected_mean)));
      worse(worst_running, running_vars[c] - (0.9 * 3 + 0.1 * unbiased), 1e-5 * (3 + unbiased));
    } else {
      CHECK(running_means[c] == 2.0F);
      CHECK(running_vars[c] == 3.0F);
    }
    for (std::size_t p = 0; p < pixels; ++p) {
      double expected = n == 0 ? 0 : (at(of_y, p) - expected_mean) * expected_rstd * gammas[c] + betas[c];
      const double size = std::abs(expected) + std::abs(expected_mean) * expected_rstd * std::abs(gammas[c]) * 1e-4;
      if (test.ending) expected = std::max(0.0, expected + at(more, p));
      worse(worst_result, static_cast<float>(found[p * channels + c]) - expected,
            roundoff * (2 * size + std::abs(expected)) + 1e-4);
    }
  }
  CHECK(worst_mean <= 1);
  CHECK(worst_rstd <= 1);
  CHECK(worst_running <= 1);
  CHECK(worst_result <= 1);
}

ConvolutionShape square(int64_t images, int64_t channels, int64_t size, int64_t filters, int64_t taps, int64_t stride) {
  return shape_of({images, channels, size, size}, filters, {taps, taps}, {stride, stride}, {taps / 2, taps / 2}, {1, 1},
                  1);
}

}  // namespace

TEST_CASE("a convolution makes the statistics of batch norm, and writes the same y") {
  const std::vector<Case> cases = {
      {square(4, 64, 14, 256, 1, 1)},                                   // a product of pixels
      {square(3, 72, 13, 200, 3, 1), std::nullopt, 0, true},            // no tile is full
      {square(5, 64, 15, 96, 3, 2), std::nullopt, 0, true},             // stride 2
      {square(2, 128, 20, 264, 1, 2)},                                  // 1x1 of stride 2
      {square(2, 3, 45, 64, 7, 2), std::nullopt, 0, true},              // the stem, whose windows are laid out
      {square(2, 40, 9, 37, 3, 1)},                                     // y in rows of no whole 16 bytes
      {square(1, 64, 3, 72, 3, 1)},                                     // nine rows
      {square(2, 512, 7, 512, 3, 1), std::nullopt, 0, true},            // K is split
      {square(6, 256, 14, 136, 3, 1), std::optional<int>(4), 0, true},  // of six images four count
      {square(6, 64, 14, 80, 3, 1), std::optional<int>(1)},
      {square(6, 512, 7, 72, 3, 1), std::optional<int>(5)},
      {square(4, 64, 8, 64, 1, 1), std::optional<int>(0)},     // none count
      {square(4, 64, 8, 64, 1, 1), std::optional<int>(100)},   // more than there are
      {square(8, 64, 16, 72, 1, 1), std::nullopt, 8},          // a mean far from zero
      {square(40, 64, 28, 128, 3, 1), std::nullopt, 0, true},  // many slabs
  };
  if (!half_convolution_workspace({.shape = cases.front().shape, .terms = 64})) {
    SUCCEED("the GPU has no such kernels");
    return;
  }
  for (const Case& test : cases) {
    for (int tile = 0; tile < static_cast<int>(kHalfTiles.size()); ++tile) {
      check<__nv_bfloat16>(test, tile);
      check<__half>(test, tile);
    }
  }
}
