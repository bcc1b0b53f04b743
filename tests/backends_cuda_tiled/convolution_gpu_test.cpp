// Every variant of convolution against the sum in f64, at sizes that don't fit its tiles: within the bound of the
// conformance tests, inside its memory, and twice the same. Those of TF32 within the bound of its operands, one of
// which is cut and the other rounded to 10 bits.
#include <gpunn/ops.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "architecture.hpp"
#include "catch.hpp"
#include "conv/convolution.hpp"
#include "convolution_shapes.hpp"
#include "device_memory.hpp"

namespace {

using gpunn::backends::ConvolutionShape;
using gpunn::cuda_tiled::ConvolutionPass;
using gpunn::cuda_tiled::ConvolutionProblem;
using gpunn::cuda_tiled::ConvolutionVariant;

struct Sizes {
  std::size_t x, w, y;
  explicit Sizes(const ConvolutionShape& s)
      : x(static_cast<std::size_t>(s.batch * s.groups * s.group_inputs * s.rows.inputs * s.columns.inputs)),
        w(static_cast<std::size_t>(s.groups * s.group_outputs * s.group_inputs * s.rows.taps * s.columns.taps)),
        y(static_cast<std::size_t>(s.batch * s.groups * s.group_outputs * s.rows.outputs * s.columns.outputs)) {}
};

// visit(index into x, index into w, index into y) for every product.
template <class Visit>
void each_product(const ConvolutionShape& s, Visit visit) {
  const int64_t taps = s.rows.taps * s.columns.taps;
  for (int64_t plane = 0; plane < s.batch * s.groups * s.group_outputs; ++plane) {
    const int64_t filter = plane % (s.groups * s.group_outputs);
    const int64_t first = plane / s.group_outputs * s.group_inputs;  // channel of x, of all images
    for (int64_t p = 0; p < s.rows.outputs; ++p) {
      for (int64_t q = 0; q < s.columns.outputs; ++q) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t row = p * s.rows.stride - s.rows.pad + tap / s.columns.taps * s.rows.dilation;
          const int64_t column = q * s.columns.stride - s.columns.pad + tap % s.columns.taps * s.columns.dilation;
          if (row < 0 || row >= s.rows.inputs || column < 0 || column >= s.columns.inputs) continue;
          for (int64_t c = 0; c < s.group_inputs; ++c) {
            visit(((first + c) * s.rows.inputs + row) * s.columns.inputs + column,
                  (filter * s.group_inputs + c) * taps + tap, (plane * s.rows.outputs + p) * s.columns.outputs + q);
          }
        }
      }
    }
  }
}

std::vector<float> uniform_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

struct Trial {
  ConvolutionProblem problem;
  std::vector<float> first, second;    // the op's inputs
  std::vector<double> sums, absolute;  // of each output, and of its products' absolute values
};

Trial trial_of(const ConvolutionShape& shape, ConvolutionPass pass) {
  const Sizes sizes(shape);
  Trial trial{};
  trial.problem = {.pass = pass,
                   .shape = shape,
                   .bias = false,
                   .relu = false,
                   .precision = GPUNN_PRECISION_FP32,
                   .capability = gpunn::cuda_tiled::compute_capability(),
                   .multiprocessors = gpunn::cuda_tiled::multiprocessors(),
                   .terms = shape.group_inputs * shape.rows.taps * shape.columns.taps};
  const bool forward = pass == ConvolutionPass::forward;
  const bool filter = pass == ConvolutionPass::backward_filter;
  if (filter) trial.problem.terms = shape.batch * shape.rows.outputs * shape.columns.outputs;
  if (pass == ConvolutionPass::backward_data) {
    trial.problem.terms = shape.group_outputs * shape.rows.taps * shape.columns.taps;
  }
  trial.first = uniform_values(forward ? sizes.x : sizes.y, 1);
  trial.second = uniform_values(filter ? sizes.x : sizes.w, 2);
  trial.sums.resize(forward ? sizes.y : filter ? sizes.w : sizes.x);
  trial.absolute.resize(trial.sums.size());
  each_product(shape, [&](int64_t x, int64_t w, int64_t y) {
    const double product = double{trial.first[static_cast<std::size_t>(forward ? x : y)]} *
                           trial.second[static_cast<std::size_t>(filter ? x : w)];
    const auto to = static_cast<std::size_t>(forward ? y : filter ? w : x);
    trial.sums[to] += product;
    trial.absolute[to] += std::abs(product);
  });
  return trial;
}

std::vector<float> run(const ConvolutionVariant& variant, const ConvolutionProblem& problem,
                       const std::vector<const Memory*>& inputs, std::size_t size) {
  const Memory output(size * sizeof(float));
  run_on_device(inputs, {&output}, variant.workspace_of(problem),
                [&](const gpunn::plugin::OpArgs& args) { variant.run(problem, nullptr, args); });
  return output.read(size);
}

// The largest part of the bound that an output's error takes.
double worst_part(const Trial& trial, const std::vector<float>& found) {
  const bool tf32 = trial.problem.precision == GPUNN_PRECISION_TF32;
  const double sums = 4 + 2 * std::sqrt(static_cast<double>(trial.problem.terms));
  const double units = tf32 ? std::ldexp(1.6, -10) + std::ldexp(sums, -22) : std::ldexp(sums, -24);
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found[i] - trial.sums[i]);
    const double part = error == 0 ? 0 : error / (units * trial.absolute[i]);
    if (!(part <= worst)) worst = part;  // a NaN too
  }
  return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const std::vector<ConvolutionShape>& shapes() {
  static const std::vector<ConvolutionShape> all{
      shape_of({1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1),
      shape_of({2, 5, 9, 11}, 7, {3, 2}, {2, 1}, {1, 0}, {1, 1}, 1),
      shape_of({2, 2, 15, 12}, 3, {3, 2}, {2, 3}, {1, 2}, {3, 2}, 1),
      shape_of({2, 34, 5, 7}, 38, {2, 3}, {1, 1}, {1, 1}, {1, 1}, 2),
      shape_of({1, 3, 6, 6}, 4, {3, 3}, {1, 1}, {4, 4}, {1, 1}, 1),
      shape_of({5, 20, 9, 7}, 70, {1, 1}, {3, 2}, {0, 0}, {1, 1}, 2),
      shape_of({3, 70, 9, 8}, 33, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1),
      shape_of({2, 17, 19, 23}, 37, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
      shape_of({9, 64, 8, 9}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
      shape_of({11, 67, 7, 7}, 70, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
      shape_of({7, 128, 10, 9}, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2),
      shape_of({5, 16, 33, 5}, 16, {3, 3}, {1, 1}, {1, 0}, {1, 1}, 1),
      shape_of({40, 32, 4, 4}, 48, {3, 3}, {1, 1}, {0, 1}, {1, 1}, 1),
      shape_of({5, 70, 8, 12}, 72, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1),
      shape_of({33, 40, 4, 4}, 65, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
      shape_of({3, 70, 10, 12}, 130, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1),
      shape_of({9, 6, 12, 12}, 16, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1),
      shape_of({3, 1, 28, 28}, 6, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1),
      shape_of({5, 3, 13, 11}, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
      shape_of({140, 8, 9, 7}, 12, {3, 3}, {1, 1}, {1, 0}, {1, 1}, 2),
      shape_of({2, 2, 10, 9}, 3, {7, 7}, {1, 1}, {3, 3}, {1, 1}, 1),
      shape_of({3, 4, 9, 10}, 5, {2, 5}, {1, 1}, {1, 2}, {1, 1}, 1),
  };
  return all;
}

// Of few channels: images that come into shared memory in bulk, together, one by one or by planes, and ones that
// cannot.
const std::vector<ConvolutionShape>& narrow_shapes() {
  static const std::vector<ConvolutionShape> all{
      shape_of({9, 6, 12, 12}, 16, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1),
      shape_of({401, 6, 12, 12}, 16, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1),
      shape_of({140, 10, 12, 12}, 22, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 2),
      shape_of({3, 7, 12, 12}, 5, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1),
      shape_of({5, 6, 14, 14}, 16, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1),
      shape_of({7, 3, 11, 16}, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
      shape_of({2, 16, 13, 9}, 16, {3, 3}, {1, 1}, {0, 2}, {1, 1}, 1),
  };
  return all;
}

struct Variants {
  int32_t precision;
  std::vector<ConvolutionVariant> all;
};

Variants fp32_variants() { return {GPUNN_PRECISION_FP32, gpunn::cuda_tiled::fp32_convolution_variants()}; }
Variants direct_variants() { return {GPUNN_PRECISION_FP32, gpunn::cuda_tiled::direct_convolution_variants()}; }
Variants tf32_variants() { return {GPUNN_PRECISION_TF32, gpunn::cuda_tiled::tensor_convolution_variants()}; }

Trial trial_of(const ConvolutionShape& shape, ConvolutionPass pass, int32_t precision) {
  Trial trial = trial_of(shape, pass);
  trial.problem.precision = precision;
  return trial;
}

void try_variants(const Variants& variants, ConvolutionPass pass, const std::vector<std::string>& expected,
                  const std::vector<ConvolutionShape>& tried = shapes()) {
  std::vector<std::string> served;
  for (const ConvolutionVariant& variant : variants.all) {
    for (const ConvolutionShape& shape : tried) {
      const Trial trial = trial_of(shape, pass, variants.precision);
      if (!variant.refuses(trial.problem).empty()) continue;
      INFO(variant.name << " " << shape.batch << "x" << shape.groups << "x" << shape.group_inputs << "x"
                        << shape.rows.inputs << "x" << shape.columns.inputs << " to " << shape.group_outputs);
      const Memory first(trial.first);
      const Memory second(trial.second);
      const std::vector<float> found = run(variant, trial.problem, {&first, &second}, trial.sums.size());
      CHECK(worst_part(trial, found) < 1);
      CHECK(same_bits(run(variant, trial.problem, {&first, &second}, trial.sums.size()), found));
      if (served.empty() || served.back() != variant.name) served.emplace_back(variant.name);
    }
  }
  CHECK(served == expected);
}

const std::vector<std::string> kAll{"conv:3", "conv:4", "conv:2", "conv:1"};

void try_bias_and_relu(const Variants& variants) {
  for (const ConvolutionVariant& variant : variants.all) {
    for (const ConvolutionShape& shape : shapes()) {
      const Trial trial = trial_of(shape, ConvolutionPass::forward, variants.precision);
      if (!variant.refuses(trial.problem).empty()) continue;
      const auto channels = static_cast<std::size_t>(shape.groups * shape.group_outputs);
      const std::vector<float> bias = uniform_values(channels, 3);
      const Memory first(trial.first);
      const Memory second(trial.second);
      const Memory third(bias);
      std::vector<float> expected = run(variant, trial.problem, {&first, &second}, trial.sums.size());
      const auto plane = static_cast<std::size_t>(shape.rows.outputs * shape.columns.outputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += bias[i / plane % channels];
        if (expected[i] < 0) expected[i] = 0;
      }
      ConvolutionProblem fused = trial.problem;
      fused.bias = true;
      fused.relu = true;
      INFO(variant.name << " of " << shape.group_inputs << " channels");
      CHECK(run(variant, fused, {&first, &second, &third}, expected.size()) == expected);
    }
  }
}

}  // namespace

TEST_CASE("fp32 variants of the forward convolution stay within the bound") {
  try_variants(fp32_variants(), ConvolutionPass::forward, kAll);
}

TEST_CASE("fp32 variants of the data gradient stay within the bound") {
  try_variants(fp32_variants(), ConvolutionPass::backward_data, kAll);
}

TEST_CASE("fp32 variants of the weight gradient stay within the bound") {
  try_variants(fp32_variants(), ConvolutionPass::backward_filter, kAll);
}

TEST_CASE("direct variants of convolution and its gradients stay within the bound") {
  for (const auto& tried : {shapes(), narrow_shapes()}) {
    try_variants(direct_variants(), ConvolutionPass::forward, {"direct:1"}, tried);
    try_variants(direct_variants(), ConvolutionPass::backward_data, {"direct:2", "direct:1"}, tried);
    try_variants(direct_variants(), ConvolutionPass::backward_filter, {"direct:2", "direct:1"}, tried);
  }
}

TEST_CASE("TF32 variants of convolution and its gradients stay within the bound") {
  std::vector<std::string> expected;
  if (gpunn::cuda_tiled::compute_capability() == 90) {
    expected = {"conv:tf32:1", "conv:tf32:2", "conv:tf32:3", "conv:tf32:4",
                "conv:tf32:5", "conv:tf32:6", "conv:tf32:7", "conv:tf32:8"};
  }
  try_variants(tf32_variants(), ConvolutionPass::forward, expected);
  try_variants(tf32_variants(), ConvolutionPass::backward_data, expected);
  try_variants(tf32_variants(), ConvolutionPass::backward_filter, expected);
}

TEST_CASE("TF32 variants refuse fp32") {
  for (const ConvolutionVariant& variant : gpunn::cuda_tiled::tensor_convolution_variants()) {
    CHECK_FALSE(variant.refuses(trial_of(shapes()[0], ConvolutionPass::forward).problem).empty());
  }
}

TEST_CASE("bias and ReLU in a variant are those after it") {
  try_bias_and_relu(fp32_variants());
  try_bias_and_relu(direct_variants());
  try_bias_and_relu(tf32_variants());
}
