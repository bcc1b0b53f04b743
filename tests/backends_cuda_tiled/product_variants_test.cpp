// Which variants of the GEMM ladder serve which product, where no GPU decides it (the sizes have tiles enough for any),
// and what the tuning cache calls it.
#include <gpunn/ops.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gemm/gemm_variants.hpp"
#include "gemm/masked.hpp"

namespace {

using gpunn::cuda_tiled::fp32_gemm_variants;
using gpunn::cuda_tiled::Gemm;
using gpunn::cuda_tiled::MaskedVariant;
using gpunn::cuda_tiled::Variant;
namespace tiled = gpunn::cuda_tiled;

using Names = std::vector<std::string>;

Gemm product(int64_t m, int64_t n, int64_t k, bool transpose_a = false, bool transpose_b = false) {
  Gemm problem;
  problem.shape = {.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b, .relu = false};
  problem.precision = GPUNN_PRECISION_FP32;
  problem.terms = k;
  return problem;
}

Variant<Gemm> variant_called(const std::string& name) {
  const std::vector<Variant<Gemm>> variants = fp32_gemm_variants();
  const auto found = std::ranges::find_if(variants, [&](const Variant<Gemm>& variant) { return variant.name == name; });
  REQUIRE(found != variants.end());
  return *found;
}

bool serves(const std::string& name, const Gemm& problem) { return variant_called(name).refuses(problem).empty(); }

}  // namespace

TEST_CASE("the numbered steps of the ladder come in order, and those that are only asked for are never chosen") {
  Names numbered, asked_for;
  for (const Variant<Gemm>& variant : fp32_gemm_variants()) {
    const std::string name = variant.name;
    if (name.find_first_not_of("0123456789", std::string("gemm:").size()) == std::string::npos) {
      numbered.push_back(name);
    }
    if (!variant.candidate) asked_for.push_back(name);
  }
  for (std::size_t i = 0; i < numbered.size(); ++i) CHECK(numbered[i] == "gemm:" + std::to_string(i + 1));
  CHECK(numbered.size() >= 11);
  CHECK(asked_for == Names{"gemm:1", "gemm:2", "gemm:3", "gemm:4"});
}

TEST_CASE("products that are empty or that 32 bits don't count are refused by every variant") {
  std::vector<Variant<Gemm>> all = fp32_gemm_variants();
  for (const Variant<Gemm>& variant : tiled::tensor_core_variants()) all.push_back(variant);
  for (const Variant<Gemm>& variant : all) {
    INFO(variant.name);
    for (Gemm problem : {product(0, 64, 64), product(64, 0, 64), product(64, 64, 0), product(int64_t{1} << 31, 64, 64),
                         product(64, int64_t{1} << 31, 64), product(64, 64, int64_t{1} << 31)}) {
      for (const int32_t precision : {GPUNN_PRECISION_FP32, GPUNN_PRECISION_TF32}) {
        problem.precision = precision;
        CHECK_FALSE(variant.refuses(problem).empty());
      }
    }
  }
}

TEST_CASE("variants on tensor cores refuse strict fp32") {
  for (const Variant<Gemm>& variant : tiled::tensor_core_variants()) {
    INFO(variant.name);
    CHECK_THAT(variant.refuses(product(2048, 2048, 2048)), Contains("the precision is "));
  }
}

TEST_CASE("rows that are not whole quads go to the variants that copy 4 bytes at a time") {
  for (const char* name : {"gemm:3", "gemm:5", "gemm:6", "gemm:7", "gemm:11"}) {
    INFO(name);
    CHECK(serves(name, product(2048, 2048, 2048)));
    CHECK_FALSE(serves(name, product(2048, 2048, 2047)));
  }
  CHECK(serves("gemm:8", product(2048, 2048, 2047)));
  CHECK_FALSE(serves("gemm:8", product(2048, 2048, 2048)));
  for (const char* name : {"gemm:1", "gemm:2", "gemm:4"}) {
    INFO(name);
    CHECK(serves(name, product(1023, 1025, 1027)));
  }
  // What lies along memory counts: m of a transposed a, k of a transposed b.
  CHECK(serves("gemm:6", product(2047, 2048, 2048)));
  CHECK_FALSE(serves("gemm:6", product(2047, 2048, 2048, true)));
  CHECK(serves("gemm:6", product(2048, 2047, 2048, false, true)));
  CHECK_FALSE(serves("gemm:6", product(2048, 2047, 2048)));
  CHECK_FALSE(serves("gemm:5", product(2048, 2048, 2048, false, true)));
}

TEST_CASE("gemm:11 copies what is not MN-major, up to 2048") {
  CHECK_FALSE(serves("gemm:11", product(2048, 2048, 2048, true, false)));
  CHECK(serves("gemm:11", product(2048, 2048, 2048)));
  CHECK_FALSE(serves("gemm:11", product(2052, 2048, 2048)));
  const Variant<Gemm> variant = variant_called("gemm:11");
  CHECK(variant.workspace_of(product(256, 512, 1024)) == uint64_t{4} * 256 * 1024);
  CHECK(variant.workspace_of(product(256, 512, 1024, true, true)) == uint64_t{4} * 512 * 1024);
  CHECK(variant.workspace_of(product(256, 512, 1024, false, true)) == uint64_t{4} * (256 + 512) * 1024);
}

TEST_CASE("the gradient behind a ReLU wants no transpose, and few enough parts for one block to add") {
  for (const MaskedVariant& variant : tiled::masked_warp_tiles_variants()) {
    INFO(variant.name);
    const int64_t odd = variant.name == std::string("gemm:8") ? 1 : 0;
    CHECK(variant.refuses(product(2048, 2048, 2048 + odd)).empty());
    CHECK_FALSE(variant.refuses(product(2048, 2048, 2048 + odd, true)).empty());
    CHECK_FALSE(variant.refuses(product(2048, 2048, 2048 + odd, false, true)).empty());
    CHECK_FALSE(variant.refuses(product(128 * 65, 2048, 2048 + odd)).empty());
  }
}

TEST_CASE("the tuning cache calls a product by its sizes, transposes, epilogue and precision") {
  CHECK(key_of(product(1, 2, 3)) == "gemm m 1 n 2 k 3 nn fp32");
  Gemm problem = product(128, 10, 84, false, true);
  problem.bias = true;
  problem.shape.relu = true;
  CHECK(key_of(problem) == "gemm m 128 n 10 k 84 nt bias relu fp32");
  problem.shape.relu = false;
  problem.shape.transpose_a = true;
  problem.precision = GPUNN_PRECISION_TF32;
  CHECK(key_of(problem) == "gemm m 128 n 10 k 84 tt bias tf32");
}
