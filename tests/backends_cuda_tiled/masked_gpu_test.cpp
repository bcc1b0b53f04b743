// Each variant with the mask and the sums of columns in its epilogue, at sizes that fill no tile: sums against float64,
// dx bit by bit against the same variant without, masked here.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "catch.hpp"
#include "counters.hpp"
#include "device_memory.hpp"
#include "gemm/gemm_variants.hpp"
#include "gemm/masked.hpp"

using gpunn::cuda_tiled::Counters;
using gpunn::cuda_tiled::counters_of_mask;
using gpunn::cuda_tiled::Gemm;
using gpunn::cuda_tiled::MaskedVariant;
using gpunn::cuda_tiled::Variant;
using gpunn::plugin::OpArgs;

namespace {

Variant<Gemm> plain_variant(const std::string& name) {
  std::vector<Variant<Gemm>> variants = gpunn::cuda_tiled::tensor_core_variants();
  for (const Variant<Gemm>& variant : gpunn::cuda_tiled::fp32_gemm_variants()) variants.push_back(variant);
  for (const Variant<Gemm>& variant : variants) {
    if (variant.name == name) return variant;
  }
  FAIL("there is no " + name);
  return {};
}

struct Gradient {
  std::vector<float> dx, db;
};

class Case {
 public:
  Case(int64_t m, int64_t n, int64_t k, int32_t precision) {
    problem_.shape = {.m = m, .n = n, .k = k};
    problem_.precision = precision;
    dy_ = random_values(m * k, 1);
    w_ = random_values(k * n, 2);
    y_ = random_values(m * n, 3);
    // What a ReLU lets pass of nothing, of infinity and of no number.
    y_[0] = 0.0F;
    y_[1] = -0.0F;
    y_[2] = std::numeric_limits<float>::infinity();
    if (n > 3) y_[3] = std::numeric_limits<float>::quiet_NaN();
    if (m > 1) dy_[static_cast<std::size_t>(k)] = std::numeric_limits<float>::quiet_NaN();  // of row 1
  }
  const Gemm& problem() const { return problem_; }
  std::size_t n() const { return static_cast<std::size_t>(problem_.shape.n); }
  std::size_t elements() const { return y_.size(); }
  bool passes(std::size_t i) const { return y_[i] > 0.0F; }

  // With a number that lies behind each output. The variant runs three times, with the same counters.
  Gradient run(const MaskedVariant& variant) const {
    const Counters counters(static_cast<std::size_t>(counters_of_mask(problem_)));
    return on_device(variant.workspace_bytes(problem_), [&](const OpArgs& args) {
      for (int i = 0; i < 3; ++i) variant.run(problem_, nullptr, args, counters.data());
    });
  }
  std::vector<float> product(const Variant<Gemm>& variant) const {
    return on_device(variant.workspace_of(problem_), [&](const OpArgs& args) { variant.run(problem_, nullptr, args); })
        .dx;
  }

 private:
  template <class Run>
  Gradient on_device(uint64_t workspace_bytes, const Run& run) const {
    const Memory dy(dy_), w(w_), y(y_), dx((elements() + 1) * sizeof(float)), db((n() + 1) * sizeof(float));
    run_on_device({&dy, &w, &y}, {&dx, &db}, workspace_bytes, run);
    return {dx.read(elements() + 1), db.read(n() + 1)};
  }

  Gemm problem_;
  std::vector<float> dy_, w_, y_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_variant(const MaskedVariant& variant, const Case& of) {
  const Gradient found = of.run(variant);
  std::vector<float> expected = of.product(plain_variant(variant.name));
  std::vector<double> sums(of.n(), 0.0), sizes(of.n(), 0.0);
  bool right = true;
  for (std::size_t i = 0; i < of.elements(); ++i) {
    if (!of.passes(i)) expected[i] = 0.0F;
    const bool nan = std::isnan(expected[i]);
    right = right && (nan ? std::isnan(found.dx[i]) : found.dx[i] == expected[i]);
    sums[i % of.n()] += double{expected[i]};
    sizes[i % of.n()] += std::abs(double{expected[i]});
  }
  CHECK(right);
  double worst = 0;
  bool nans = true;
  for (std::size_t i = 0; i < of.n(); ++i) {
    nans = nans && std::isnan(sums[i]) == std::isnan(found.db[i]);
    if (!std::isnan(sums[i])) worst = std::max(worst, std::abs(double{found.db[i]} - sums[i]) / (sizes[i] + 1e-30));
  }
  CHECK(nans);
  CHECK(worst < 1e-5);
  CHECK(std::isnan(found.dx.back()));
  CHECK(std::isnan(found.db.back()));
  const Gradient again = of.run(variant);
  CHECK(same_bits(found.dx, again.dx));
  CHECK(same_bits(found.db, again.db));
}

}  // namespace

TEST_CASE("A product masked in its epilogue is the product, masked, with the sums of its columns", "[masked]") {
  constexpr int64_t kShapes[][3] = {{1, 4, 1},        {33, 37, 10},     {130, 260, 12},   {257, 132, 1000},
                                    {512, 1300, 10},  {77, 515, 2051},  {1024, 1160, 96}, {1100, 2304, 52},
                                    {128, 1024, 400}, {999, 1028, 516}, {2050, 1028, 96}, {4100, 260, 200}};
  for (const int32_t precision : {GPUNN_PRECISION_FP32, GPUNN_PRECISION_TF32}) {
    std::vector<std::string> seen;
    for (const auto& shape : kShapes) {
      const Case of(shape[0], shape[1], shape[2], precision);
      for (const MaskedVariant& variant : gpunn::cuda_tiled::masked_variants()) {
        const std::string reason = variant.refuses(of.problem());
        if (!reason.empty()) continue;
        seen.emplace_back(variant.name);
        INFO(variant.name << ", " << shape[0] << " x " << shape[1] << " x " << shape[2] << ", precision " << precision);
        check_variant(variant, of);
      }
    }
    CHECK(seen.size() > 10);
  }
}
