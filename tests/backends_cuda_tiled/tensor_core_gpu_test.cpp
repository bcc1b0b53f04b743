// Each variant on tensor cores against float64, at sizes that fill no tile, at every transpose, with bias and ReLU.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "catch.hpp"
#include "device_memory.hpp"
#include "gemm/gemm_variants.hpp"

using gpunn::cuda_tiled::Gemm;
using gpunn::cuda_tiled::tensor_core_variants;
using gpunn::cuda_tiled::Variant;
using gpunn::plugin::OpArgs;

namespace {

struct Case {
  Gemm problem;
  std::vector<float> a, b, bias;

  Case(int64_t m, int64_t n, int64_t k, int transposes, int32_t precision) {
    problem.shape = {.m = m,
                     .n = n,
                     .k = k,
                     .transpose_a = (transposes & 1) != 0,
                     .transpose_b = (transposes & 2) != 0,
                     .relu = transposes % 3 == 0};
    problem.bias = transposes != 1;
    problem.precision = precision;
    a = random_values(m * k, 1);
    b = random_values(k * n, 2);
    bias = random_values(n, 3);
  }

  double expected(int64_t i, int64_t j) const {
    const auto& shape = problem.shape;
    double sum = problem.bias ? bias[static_cast<std::size_t>(j)] : 0.0;
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t at_a = shape.transpose_a ? k * shape.m + i : i * shape.k + k;
      const int64_t at_b = shape.transpose_b ? j * shape.k + k : k * shape.n + j;
      sum += double{a[static_cast<std::size_t>(at_a)]} * double{b[static_cast<std::size_t>(at_b)]};
    }
    return shape.relu && sum < 0 ? 0.0 : sum;
  }

  std::vector<double> expected() const {
    std::vector<double> y;
    for (int64_t i = 0; i < problem.shape.m; ++i) {
      for (int64_t j = 0; j < problem.shape.n; ++j) y.push_back(expected(i, j));
    }
    return y;
  }

  // With `beyond` numbers that lie behind y.
  std::vector<float> run(const Variant<Gemm>& variant, std::size_t beyond) const {
    return on_device(variant, beyond, [&](const OpArgs& args) { variant.run(problem, nullptr, args); });
  }

  // Captured between what fills its operands and its next use, on two streams.
  std::vector<float> run_captured(const Variant<Gemm>& variant) const {
    return on_device(variant, 0, [&](const OpArgs& args) {
      cudaStream_t first = nullptr, second = nullptr;
      cudaEvent_t event = nullptr;
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      const Memory elsewhere(a);
      const std::size_t bytes = a.size() * sizeof(float);
      REQUIRE(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) == cudaSuccess);
      REQUIRE(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess);
      REQUIRE(cudaEventCreate(&event) == cudaSuccess);
      REQUIRE(cudaMemset(const_cast<float*>(args.in<float>(0)), 0, bytes) == cudaSuccess);
      REQUIRE(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      variant.run(problem, first, args);
      CHECK(cudaEventRecord(event, first) == cudaSuccess);
      CHECK(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
      CHECK(cudaMemcpyAsync(const_cast<float*>(args.in<float>(0)), elsewhere.data(), bytes, cudaMemcpyDeviceToDevice,
                            second) == cudaSuccess);
      variant.run(problem, second, args);
      CHECK(cudaEventRecord(event, second) == cudaSuccess);
      CHECK(cudaStreamWaitEvent(first, event, 0) == cudaSuccess);
      variant.run(problem, first, args);
      variant.run(problem, first, args);
      REQUIRE(cudaStreamEndCapture(first, &graph) == cudaSuccess);
      REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
      CHECK(cudaGraphLaunch(executable, first) == cudaSuccess);
      CHECK(cudaStreamSynchronize(first) == cudaSuccess);
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
      cudaEventDestroy(event);
      cudaStreamDestroy(first);
      cudaStreamDestroy(second);
    });
  }

 private:
  template <class Run>
  std::vector<float> on_device(const Variant<Gemm>& variant, std::size_t beyond, const Run& run) const {
    const Memory on_a(a), on_b(b), on_bias(bias);
    const auto count = static_cast<std::size_t>(problem.shape.m * problem.shape.n) + beyond;
    const Memory y(count * sizeof(float));
    std::vector<const Memory*> inputs = {&on_a, &on_b};
    if (problem.bias) inputs.push_back(&on_bias);
    run_on_device(inputs, {&y}, variant.workspace_of(problem), run);
    return y.read(count);
  }
};

// ||y - expected|| / ||expected||, the numerator where that is zero; NaN where y has one.
double error(const std::vector<float>& y, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (y[i] - expected[i]) * (y[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(size > 0 ? difference / size : difference);
}

constexpr double kTf32Error = 6e-4;
constexpr double kBf16Error = 5e-3;

// Calls check(variant, the largest error) for each variant that serves the product, in TF32 and in BF16.
template <class Check>
void for_each_variant(Case& product, const Check& check) {
  for (const int32_t precision : {GPUNN_PRECISION_TF32, GPUNN_PRECISION_BF16}) {
    product.problem.precision = precision;
    const bool tf32 = precision == GPUNN_PRECISION_TF32;
    for (const Variant<Gemm>& variant : tensor_core_variants()) {
      if (!variant.refuses(product.problem).empty()) continue;
      const auto& shape = product.problem.shape;
      INFO(variant.name << " " << shape.m << "x" << shape.n << "x" << shape.k << " transposes " << shape.transpose_a
                        << shape.transpose_b << (tf32 ? " tf32" : " bf16"));
      check(variant, tf32 ? kTf32Error : kBf16Error);
    }
  }
}

}  // namespace

TEST_CASE("products on tensor cores agree with float64, write all of y and nothing else, and are the same each time") {
  const int64_t sizes[][3] = {{128, 256, 128}, {129, 257, 131}, {300, 260, 100}, {512, 10, 512}, {10, 64, 515},
                              {7, 5, 3},       {1, 1, 1},       {64, 72, 2048},  {36, 520, 37}};
  int runs = 0;
  for (const auto& size : sizes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      Case product(size[0], size[1], size[2], transposes, GPUNN_PRECISION_TF32);
      const std::vector<double> expected = product.expected();
      for_each_variant(product, [&](const Variant<Gemm>& variant, double most) {
        constexpr std::size_t kBeyond = 64;
        const std::vector<float> y = product.run(variant, kBeyond);
        CHECK(error(y, expected) < most);
        bool untouched = true;
        for (std::size_t i = y.size() - kBeyond; i < y.size(); ++i) untouched = untouched && std::isnan(y[i]);
        CHECK(untouched);
        const std::vector<float> again = product.run(variant, kBeyond);
        CHECK(std::memcmp(y.data(), again.data(), y.size() * sizeof(float)) == 0);
        ++runs;
      });
    }
  }
  if (gpunn::cuda_tiled::tensor_core_variants()
          .back()
          .refuses(Case(8, 8, 8, 0, GPUNN_PRECISION_TF32).problem)
          .empty()) {
    CHECK(runs > 0);
  }
}

TEST_CASE("variants on tensor cores refuse strict float32 and empty matrices") {
  for (const Variant<Gemm>& variant : tensor_core_variants()) {
    INFO(variant.name);
    CHECK_FALSE(variant.refuses(Case(256, 256, 256, 0, GPUNN_PRECISION_FP32).problem).empty());
    CHECK_FALSE(variant.refuses(Case(256, 0, 256, 0, GPUNN_PRECISION_TF32).problem).empty());
  }
}

TEST_CASE("products whose blocks share tiles, or round for each other, agree with float64 wherever it is looked at") {
  const int64_t sizes[][3] = {{1000, 1012, 4200}, {2100, 1130, 1300}};
  for (const auto& size : sizes) {
    for (const int transposes : {0, 2, 3}) {
      Case product(size[0], size[1], size[2], transposes, GPUNN_PRECISION_TF32);
      for_each_variant(product, [&](const Variant<Gemm>& variant, double most) {
        const std::vector<float> y = product.run(variant, 0);
        double difference = 0, total = 0;
        constexpr std::size_t kStep = 997;
        for (std::size_t at = 0; at < y.size(); at += kStep) {
          const auto index = static_cast<int64_t>(at);
          const double expected = product.expected(index / size[1], index % size[1]);
          difference += (y[at] - expected) * (y[at] - expected);
          total += expected * expected;
        }
        CHECK(std::sqrt(difference / total) < most);
      });
    }
  }
}

TEST_CASE("a NaN in an operand reaches its row of y on tensor cores, through ReLU too") {
  for (const Variant<Gemm>& variant : tensor_core_variants()) {
    for (const int32_t precision : {GPUNN_PRECISION_TF32, GPUNN_PRECISION_BF16}) {
      Case product(200, 136, 72, 0, precision);  // transposes 0: with ReLU
      if (!variant.refuses(product.problem).empty()) continue;
      INFO(variant.name);
      product.a[72 * 130 + 5] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<float> y = product.run(variant, 0);
      int nans_in_row = 0, nans = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        nans += std::isnan(y[i]) ? 1 : 0;
        nans_in_row += std::isnan(y[i]) && i / 136 == 130 ? 1 : 0;
      }
      CHECK(nans_in_row == 136);
      CHECK(nans == 136);
    }
  }
}

TEST_CASE("products on tensor cores are captured, and wait there for what comes before them") {
  for (const Variant<Gemm>& variant : tensor_core_variants()) {
    for (const int32_t precision : {GPUNN_PRECISION_TF32, GPUNN_PRECISION_BF16}) {
      const Case product(260, 132, 520, 2, precision);
      if (!variant.refuses(product.problem).empty()) continue;
      INFO(variant.name);
      CHECK(error(product.run_captured(variant), product.expected()) <
            (precision == GPUNN_PRECISION_TF32 ? kTf32Error : kBf16Error));
    }
  }
}
