// Strassen's algorithm, products of k-major copies, of warps that share k, and stream-K, against gemm:2, whose every
// sum is one of its own: at sizes that fill no tile, at every transpose, with bias and ReLU.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "catch.hpp"
#include "device_memory.hpp"
#include "gemm/rungs.hpp"

using gpunn::cuda_tiled::Gemm;
using gpunn::cuda_tiled::Rung;
using gpunn::plugin::OpArgs;

namespace {

Rung<Gemm> rung_called(const std::string& name) {
  std::vector<Rung<Gemm>> rungs = gpunn::cuda_tiled::strassen_rungs();
  rungs.push_back(gpunn::cuda_tiled::k_major_copies_rung());
  rungs.push_back(gpunn::cuda_tiled::sliced_tiles_rung());
  rungs.push_back(gpunn::cuda_tiled::stream_k_rung());
  for (const Rung<Gemm>& rung : rungs) {
    if (rung.name == name) return rung;
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
  std::vector<float> run(const Rung<Gemm>& rung) const {
    const std::size_t count = static_cast<std::size_t>(problem_.shape.m * problem_.shape.n) + 1;
    const Memory y(count * sizeof(float)), workspace(rung.workspace_of(problem_));
    gpunn_tensor tensors[4]{};
    const void* const data[4] = {a_.data(), b_.data(), bias_.data(), y.data()};
    const gpunn_tensor* pointers[4];
    for (int i = 0; i < 4; ++i) {
      tensors[i].data = const_cast<void*>(data[i]);
      pointers[i] = &tensors[i];
    }
    gpunn_op_args args{};
    args.struct_size = sizeof(args);
    args.n_inputs = 3;
    args.n_outputs = 1;
    args.inputs = pointers;
    args.outputs = pointers + 3;
    args.workspace = workspace.data();
    args.workspace_bytes = rung.workspace_of(problem_);
    rung.run(problem_, nullptr, OpArgs(args));
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    return y.read(count);
  }

 private:
  Gemm problem_;
  Memory a_, b_, bias_;
};

void check(const std::string& name, int64_t m, int64_t n, int64_t k) {
  const Rung<Gemm> rung = rung_called(name);
  for (int transposes = 0; transposes < 4; ++transposes) {
    const Gemm problem = problem_of(m, n, k, transposes);
    const std::string reason = rung.refuses(problem);
    if (!reason.empty()) {  // this GPU, or nothing to copy
      WARN(name + ": " + reason);
      continue;
    }
    const Product product(problem);
    const std::vector<float> expected = product.run(gpunn::cuda_tiled::register_tiles_rung());
    const std::vector<float> found = product.run(rung);
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

TEST_CASE("Strassen's algorithm makes the product, up to its larger rounding errors") {
  check("gemm:strassen", 1032, 1288, 1064);
  check("gemm:strassen_twice", 2064, 2080, 2096);
}

TEST_CASE("Products of k-major copies are right") {
  check("gemm:11", 1028, 1020, 1000);
  check("gemm:11", 900, 1284, 516);
}

TEST_CASE("Products whose warps share k are right") {
  check("gemm:12", 516, 508, 516);
  check("gemm:12", 500, 1020, 1012);  // larger tiles
  check("gemm:12", 64, 2044, 2004);   // clusters of two
  check("gemm:12", 64, 1060, 68);     // clusters of three
}

TEST_CASE("Products whose blocks share tiles (stream-K) are right") {
  check("gemm:stream_k", 1100, 1516, 1004);  // large tiles
  check("gemm:stream_k", 2308, 1284, 260);   // some of which a block has whole
  check("gemm:stream_k", 132, 260, 5004);    // small ones
  check("gemm:stream_k", 380, 764, 4100);    // large ones, of many parts each
  check("gemm:stream_k", 131, 259, 1001);    // rows that are no quads
  check("gemm:stream_k", 7, 5, 3);           // one block
}

TEST_CASE("Stream-K gives the same bits each time") {
  const Rung<Gemm> rung = rung_called("gemm:stream_k");
  for (int transposes = 0; transposes < 4; ++transposes) {
    const Product product(problem_of(1100, 1516, 1004, transposes));
    std::vector<float> first = product.run(rung), second = product.run(rung);
    first.pop_back(), second.pop_back();  // a NaN
    CHECK(first == second);
  }
}
