// The fp32 variants against float64, and at larger sizes products of MN-major copies, of warps that share k, and
// stream-K against gemm:2, whose every sum is one of its own: at sizes that fill no tile, at every transpose, with bias
// and ReLU.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "catch.hpp"
#include "device_memory.hpp"
#include "gemm/gemm_variants.hpp"

using gpunn::cuda_tiled::fp32_gemm_variants;
using gpunn::cuda_tiled::Gemm;
using gpunn::cuda_tiled::Variant;
using gpunn::plugin::OpArgs;

namespace {

Variant<Gemm> variant_called(const std::string& name) {
  for (const Variant<Gemm>& variant : fp32_gemm_variants()) {
    if (variant.name == name) return variant;
  }
  FAIL("there is no " + name);
  return {};
}

Gemm problem_of(int64_t m, int64_t n, int64_t k, int transposes) {
  Gemm problem;
  problem.shape = {.m = m,
                   .n = n,
                   .k = k,
                   .transpose_a = (transposes & 1) != 0,
                   .transpose_b = (transposes & 2) != 0,
                   .relu = transposes == 2};
  problem.bias = transposes != 1;
  return problem;
}

class Product {
 public:
  explicit Product(const Gemm& problem)
      : problem_(problem),
        a_(random_values(problem.shape.m * problem.shape.k, 1)),
        b_(random_values(problem.shape.k * problem.shape.n, 2)),
        bias_(random_values(problem.shape.n, 3)) {}

  // With one number that lies behind y.
  std::vector<float> run(const Variant<Gemm>& variant) const {
    const std::size_t count = static_cast<std::size_t>(problem_.shape.m * problem_.shape.n) + 1;
    const Memory y(count * sizeof(float));
    run_on_device({&a_, &b_, &bias_}, {&y}, variant.workspace_of(problem_),
                  [&](const OpArgs& args) { variant.run(problem_, nullptr, args); });
    return y.read(count);
  }

 private:
  Gemm problem_;
  Memory a_, b_, bias_;
};

// A product in float64, with the bounds of the conformance tests.
class Reference {
 public:
  explicit Reference(const Gemm& problem)
      : n_(static_cast<std::size_t>(problem.shape.n)), relu_(problem.shape.relu), terms_(problem.shape.k) {
    const auto& shape = problem.shape;
    const std::vector<float> a = random_values(shape.m * shape.k, 1), b = random_values(shape.k * shape.n, 2),
                             bias = random_values(shape.n, 3);
    sums_.resize(static_cast<std::size_t>(shape.m) * n_);
    sizes_.resize(sums_.size());
    const auto step = static_cast<std::size_t>(shape.transpose_b ? shape.k : 1);
    for (int64_t i = 0; i < shape.m; ++i) {
      double* const sums = sums_.data() + static_cast<std::size_t>(i) * n_;
      double* const sizes = sizes_.data() + static_cast<std::size_t>(i) * n_;
      for (std::size_t j = 0; j < n_ && problem.bias; ++j) {
        sums[j] = bias[j];
        sizes[j] = std::abs(sums[j]);
      }
      for (int64_t k = 0; k < shape.k; ++k) {
        const double factor = a[static_cast<std::size_t>(shape.transpose_a ? k * shape.m + i : i * shape.k + k)];
        const float* const row = b.data() + (shape.transpose_b ? k : k * shape.n);
        for (std::size_t j = 0; j < n_; ++j) {
          const double term = factor * row[j * step];
          sums[j] += term;
          sizes[j] += std::abs(term);
        }
      }
    }
  }

  // The largest part of its bound that the error of a number of y takes; a NaN where y has one.
  double worst_part(const std::vector<float>& y) const {
    const double units = std::ldexp(4 + 2 * std::sqrt(static_cast<double>(terms_)), -24);
    double worst = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double expected = relu_ && sums_[i] < 0 ? 0 : sums_[i];
      const double part = std::abs(y[i] - expected) / (units * sizes_[i]);
      if (!(part <= worst)) worst = part;
    }
    return worst;
  }

 private:
  std::size_t n_;
  bool relu_;
  int64_t terms_;
  std::vector<double> sums_, sizes_;
};

void check(const std::string& name, int64_t m, int64_t n, int64_t k) {
  const Variant<Gemm> variant = variant_called(name);
  for (int transposes = 0; transposes < 4; ++transposes) {
    const Gemm problem = problem_of(m, n, k, transposes);
    const std::string reason = variant.refuses(problem);
    if (!reason.empty()) {  // this GPU, or nothing to copy
      WARN(name + ": " + reason);
      continue;
    }
    const Product product(problem);
    const std::vector<float> expected = product.run(gpunn::cuda_tiled::register_tiles_variant());
    const std::vector<float> found = product.run(variant);
    CHECK(std::isnan(found.back()));
    double largest = 0, difference = 0;
    bool numbers = true;
    for (std::size_t i = 0; i + 1 < found.size(); ++i) {
      numbers = numbers && std::isfinite(found[i]);
      largest = std::max(largest, std::abs(double{expected[i]}));
      difference = std::max(difference, std::abs(double{found[i]} - double{expected[i]}));
    }
    INFO(name << ", transposes " << transposes);
    CHECK(numbers);
    CHECK(difference < 2e-5 * largest);
  }
}

}  // namespace

TEST_CASE("fp32 products agree with float64, write all of y and nothing else, and are the same each time") {
  const int64_t sizes[][3] = {{129, 257, 131}, {300, 260, 100}, {128, 10, 84},    {7, 5, 3},
                              {1, 1, 1},       {96, 200, 1000}, {2044, 1796, 20}, {2045, 1797, 21}};
  std::set<std::string> ran, all;
  for (const Variant<Gemm>& variant : fp32_gemm_variants()) all.insert(variant.name);
  for (const auto& size : sizes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const Gemm problem = problem_of(size[0], size[1], size[2], transposes);
      const Product product(problem);
      const Reference reference(problem);
      for (const Variant<Gemm>& variant : fp32_gemm_variants()) {
        if (!variant.refuses(problem).empty()) continue;
        INFO(variant.name << " " << size[0] << "x" << size[1] << "x" << size[2] << ", transposes " << transposes);
        const std::vector<float> found = product.run(variant), again = product.run(variant);
        CHECK(std::memcmp(found.data(), again.data(), found.size() * sizeof(float)) == 0);
        CHECK(std::isnan(found.back()));
        CHECK(reference.worst_part(found) < 1);
        ran.insert(variant.name);
      }
    }
  }
  CHECK(ran == all);  // of a GPU of up to 170 multiprocessors
}

TEST_CASE("Products of MN-major copies are right", "[mn-major]") {
  check("gemm:11", 1028, 1020, 1000);
  check("gemm:11", 900, 1284, 516);
}

TEST_CASE("Products whose warps share k are right", "[slices]") {
  check("gemm:12", 516, 508, 516);
  check("gemm:12", 500, 1020, 1012);  // larger tiles
  check("gemm:12", 64, 2044, 2004);   // clusters of two
  check("gemm:12", 64, 1060, 68);     // clusters of three
}

TEST_CASE("Products whose blocks share tiles (stream-K) are right", "[stream-k]") {
  check("gemm:stream_k", 1100, 1516, 1004);  // large tiles
  check("gemm:stream_k", 2308, 1284, 260);   // some of which a block has whole
  check("gemm:stream_k", 132, 260, 5004);    // small ones
  check("gemm:stream_k", 380, 764, 4100);    // large ones, of many parts each
  check("gemm:stream_k", 131, 259, 1001);    // rows that are no quads
  check("gemm:stream_k", 7, 5, 3);           // one block
}

TEST_CASE("Stream-K gives the same bits each time", "[stream-k]") {
  const Variant<Gemm> variant = variant_called("gemm:stream_k");
  for (int transposes = 0; transposes < 4; ++transposes) {
    const Product product(problem_of(1100, 1516, 1004, transposes));
    std::vector<float> first = product.run(variant), second = product.run(variant);
    first.pop_back(), second.pop_back();  // a NaN
    CHECK(first == second);
  }
}
