// Convolutions that make the statistics of the batch norm behind them: with every kernel the same y as without, mean,
// rstd, running statistics and the normalised images against float64. And data gradients that begin the gradient of the
// batch norm before them: the same masked gradient as op by op, its sums and dx against float64.
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
HalfConvolution problem_of(const Case& test) {
  const ConvolutionShape& shape = test.shape;
  return {.shape = shape,
          .dtype = std::is_same_v<T, __half> ? GPUNN_F16 : GPUNN_BF16,
          .statistics = true,
          .terms = shape.group_inputs * shape.rows.taps * shape.columns.taps};
}

template <class T>
void check(const Case& test, int kernel) {
  const ConvolutionShape& shape = test.shape;
  const HalfConvolution problem = problem_of<T>(test);
  const BatchNorm norm{.rows = shape.batch,
                       .channels = shape.group_outputs,
                       .size = shape.rows.outputs * shape.columns.outputs,
                       .epsilon = kEpsilon,
                       .momentum = kMomentum,
                       .counted = test.counted.has_value(),
                       .channels_last = true};
  INFO(gpunn::backends::text_of(shape) << ", kernel " << kernel << ", dtype " << problem.dtype << ", images "
                                       << test.counted.value_or(-1) << ", offset " << test.offset);
  const auto pixels = static_cast<std::size_t>(norm.rows * norm.size);
  const auto channels = static_cast<std::size_t>(norm.channels);
  std::vector<float> values = random_values(shape.batch * shape.group_inputs * shape.rows.inputs * shape.columns.inputs,
                                            static_cast<unsigned>(kernel));
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

  const Memory workspace(half_kernels_workspace(problem, {kernel}));
  const HalfSlabs left = half_slabs(problem, kernel);
  const SlabPlan slabs = slab_plan(norm, left.count, left.rows);
  const Memory statistics(slabs.workspace_bytes());
  const Counters counters(slabs.counters());
  HalfConvolutionArgs args{.inputs = {x.data(), w.data()}, .output = plain_y.data(), .workspace = workspace.data()};
  run_half_kernel(problem, kernel, args, nullptr);
  args.output = y.data();
  args.statistics = {.slabs = static_cast<float2*>(statistics.data()),
                     .images = test.counted ? static_cast<const int32_t*>(count.data()) : nullptr,
                     .pixels = static_cast<int>(norm.size)};
  run_half_kernel(problem, kernel, args, nullptr);
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

struct GradientCase {
  ConvolutionShape shape;  // its data gradient is y of the ReLU's shape
  bool more = false;       // a second gradient is added
  std::optional<int> counted = {};
  float offset = 0;  // of what the batch norm reads
};

template <class T>
HalfConvolution problem_of(const GradientCase& test) {
  const ConvolutionShape& shape = test.shape;
  return {.pass = gpunn::backends::ConvolutionPass::backward_data,
          .shape = shape,
          .dtype = std::is_same_v<T, __half> ? GPUNN_F16 : GPUNN_BF16,
          .gradient = true,
          .terms = shape.group_outputs * shape.rows.taps * shape.columns.taps};
}

template <class T>
void check_gradient(const GradientCase& test, int kernel) {
  const ConvolutionShape& shape = test.shape;
  const HalfConvolution problem = problem_of<T>(test);
  const BatchNorm norm{.rows = shape.batch,
                       .channels = shape.group_inputs,
                       .size = shape.rows.inputs * shape.columns.inputs,
                       .counted = test.counted.has_value(),
                       .channels_last = true};
  INFO(gpunn::backends::text_of(shape) << ", kernel " << kernel << ", dtype " << problem.dtype << ", more " << test.more
                                       << ", images " << test.counted.value_or(-1) << ", offset " << test.offset);
  const auto pixels = static_cast<std::size_t>(norm.rows * norm.size);
  const auto channels = static_cast<std::size_t>(norm.channels);
  const int64_t elements = norm.elements();
  const Memory dy = on_device(
      rounded<T>(random_values(shape.batch * shape.group_outputs * shape.rows.outputs * shape.columns.outputs, 3)));
  const Memory w = on_device(rounded<T>(random_values(norm.channels * problem.terms, 7)));
  std::vector<float> values = random_values(elements, 11);
  for (float& value : values) value += test.offset;
  const std::vector<T> xs = rounded<T>(values), mores = rounded<T>(random_values(elements, 12)),
                       relus = rounded<T>(random_values(elements, 13));
  const Memory x = on_device(xs), more = on_device(mores), relu_y = on_device(relus);
  const std::vector<float> gammas = random_values(norm.channels, 9), rstds(channels, 1.5F);
  const std::vector<float> means(channels, test.offset + 0.125F);
  const Memory gamma(gammas), mean(means), rstd(rstds);
  const Memory count = on_device(std::vector<int32_t>{test.counted.value_or(0)});
  const auto bytes_of_all = static_cast<std::size_t>(elements) * sizeof(T);
  const Memory plain(bytes_of_all), masked(bytes_of_all), dx(bytes_of_all);
  const Memory dgamma(channels * sizeof(float)), dbeta(channels * sizeof(float));

  const Memory workspace(half_kernels_workspace(problem, {kernel}));
  const SlabPlan slabs = slab_plan(norm, half_slabs(problem, kernel).count);
  const Memory sums(slabs.workspace_bytes());
  const Counters counters(slabs.counters());
  HalfConvolutionArgs args{.inputs = {dy.data(), w.data()}, .output = plain.data(), .workspace = workspace.data()};
  run_half_kernel(problem, kernel, args, nullptr);
  const auto* const images = test.counted ? static_cast<const int32_t*>(count.data()) : nullptr;
  args.output = masked.data();
  args.gradient = {.more = test.more ? more.data() : nullptr,
                   .relu_y = relu_y.data(),
                   .x = x.data(),
                   .mean = static_cast<const float*>(mean.data()),
                   .slabs = static_cast<float2*>(sums.data()),
                   .images = images};
  run_half_kernel(problem, kernel, args, nullptr);
  const Backward<T> b{.dy = nullptr,
                      .more_dy = nullptr,
                      .relu_y = nullptr,
                      .masked = static_cast<T*>(masked.data()),
                      .signs = nullptr,
                      .x = static_cast<const T*>(x.data()),
                      .gamma = static_cast<const float*>(gamma.data()),
                      .mean = static_cast<const float*>(mean.data()),
                      .rstd = static_cast<const float*>(rstd.data()),
                      .count = images,
                      .parts = nullptr,
                      .dx = static_cast<T*>(dx.data()),
                      .dgamma = static_cast<float*>(dgamma.data()),
                      .dbeta = static_cast<float*>(dbeta.data())};
  run_batch_norm_backward_of_slabs(norm, slabs, b, static_cast<float2*>(sums.data()), counters.data(), nullptr);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(workspace.border_is_whole());
  CHECK(sums.border_is_whole());
  CHECK(masked.border_is_whole());

  const auto size = static_cast<std::size_t>(elements);
  const std::vector<T> of_plain = read<T>(plain, size), found = read<T>(masked, size), flows = read<T>(dx, size);
  std::vector<T> expected(size);
  for (std::size_t i = 0; i < size; ++i) {
    const T sum = test.more ? T(static_cast<float>(of_plain[i]) + static_cast<float>(mores[i])) : of_plain[i];
    expected[i] = static_cast<float>(relus[i]) > 0.0F ? sum : T(0.0F);
  }
  CHECK(std::memcmp(found.data(), expected.data(), size * sizeof(T)) == 0);
  const std::vector<float> dgammas = dgamma.read(channels), dbetas = dbeta.read(channels);
  const auto n = std::min(pixels, static_cast<std::size_t>(test.counted.value_or(shape.batch) * norm.size));
  const double roundoff = std::is_same_v<T, __half> ? 0x1p-11 : 0x1p-8;
  double worst_sums = 0, worst_dx = 0;  // as multiples of what is allowed
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0, products = 0, sizes = 0, product_sizes = 0;
    for (std::size_t p = 0; p < n; ++p) {
      const double of_dy = static_cast<float>(expected[p * channels + c]);
      const double apart = static_cast<double>(static_cast<float>(xs[p * channels + c])) - means[c];
      sum += of_dy;
      products += of_dy * apart;
      sizes += std::abs(of_dy);
      product_sizes += std::abs(of_dy * apart);
    }
    const auto worse = [](double& worst, double off, double allowed) {
      worst = std::isfinite(off) ? std::max(worst, std::abs(off) / allowed) : HUGE_VAL;
    };
    worse(worst_sums, dbetas[c] - sum, 1e-6 * sizes + 1e-30);
    worse(worst_sums, dgammas[c] - products * rstds[c], 1e-6 * product_sizes * rstds[c] + 1e-30);
    for (std::size_t p = 0; p < pixels; ++p) {
      const double of_dy = static_cast<float>(expected[p * channels + c]);
      const double apart = static_cast<double>(static_cast<float>(xs[p * channels + c])) - means[c];
      const double factor = gammas[c] * rstds[c], count_of = static_cast<double>(std::max<std::size_t>(n, 1));
      const double mean_dy = sum / count_of, slope = rstds[c] * rstds[c] * products / count_of;
      const double result = p < n ? factor * (of_dy - mean_dy - apart * slope) : 0.0;
      // Of each term, since they may cancel.
      const double around =
          std::abs(factor) * 1e-5 *
          (std::abs(of_dy) + std::abs(mean_dy) + (std::abs(apart) + std::abs(means[c])) * std::abs(slope));
      worse(worst_dx, static_cast<float>(flows[p * channels + c]) - result,
            roundoff * std::abs(result) + around + 1e-6);
    }
  }
  CHECK(worst_sums <= 1);
  CHECK(worst_dx <= 1);
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
      {square(3, 24, 57, 40, 3, 1)},                           // long rows
      {square(8, 64, 16, 72, 3, 1), std::optional<int>(5), 8},
  };
  if (half_kernels(problem_of<__nv_bfloat16>(cases.front())).empty()) {
    SUCCEED("the GPU has no such kernels");
    return;
  }
  for (const Case& test : cases) {
    for (const int kernel : half_kernels(problem_of<__nv_bfloat16>(test))) {
      check<__nv_bfloat16>(test, kernel);
      check<__half>(test, kernel);
    }
  }
}

TEST_CASE("a data gradient adds, masks and makes the sums of the batch norm before it") {
  const std::vector<GradientCase> cases = {
      {square(4, 256, 14, 64, 1, 1), true},                          // a residual block's first, 1x1
      {square(4, 64, 14, 256, 1, 1)},                                // its last
      {square(3, 200, 13, 72, 3, 1), true},                          // no tile is full
      {square(3, 72, 13, 64, 3, 1)},                                 // nor has whole columns
      {square(5, 96, 15, 64, 3, 2)},                                 // stride 2: four phases
      {square(5, 136, 15, 64, 1, 2), true},                          // three of which have no taps
      {square(1, 72, 3, 64, 3, 1), true},                            // nine rows
      {square(2, 512, 7, 512, 3, 1)},                                // few tiles
      {square(6, 136, 14, 256, 3, 1), true, std::optional<int>(4)},  // of six images four count
      {square(5, 64, 9, 64, 3, 2), true, std::optional<int>(2)},     // in each phase
      {square(4, 64, 8, 64, 1, 1), false, std::optional<int>(0)},    // none count
      {square(4, 64, 8, 64, 1, 1), true, std::optional<int>(100)},   // more than there are
      {square(8, 72, 16, 64, 1, 1), true, std::nullopt, 8},          // a mean far from zero
      {square(6, 64, 28, 64, 1, 1), true},                           // many slabs
      {square(4, 64, 57, 40, 3, 1)},                                 // long rows
      {square(6, 136, 14, 64, 3, 1), true, std::optional<int>(4)},
      {square(8, 72, 16, 64, 3, 1), true, std::nullopt, 8},
  };
  if (half_kernels(problem_of<__nv_bfloat16>(cases.front())).empty()) {
    SUCCEED("the GPU has no such kernels");
    return;
  }
  for (const GradientCase& test : cases) {
    for (const int kernel : half_kernels(problem_of<__nv_bfloat16>(test))) {
      check_gradient<__nv_bfloat16>(test, kernel);
      check_gradient<__half>(test, kernel);
    }
  }
}
