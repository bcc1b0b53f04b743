#include <algorithm>
#include <utility>

#include "cuda_common/autotune.hpp"
#include "cuda_common/launch.hpp"
#include "gemm/launch_gemm.hpp"

namespace gpunn::cuda_tiled {

using namespace cuda;

namespace {

Gemm with_terms(Gemm problem) {
  problem.terms = problem.shape.k;
  return problem;
}

__global__ void add_parts_kernel(const float* parts, int count, int64_t size, int n, Epilogue epilogue, float* y) {
  const int64_t i = thread_index();
  if (i >= size) return;
  float sum = parts[i];
  for (int part = 1; part < count; ++part) sum += parts[part * size + i];
  y[i] = finish_at(epilogue, sum, i % n);
}

}  // namespace

Gemm gemm_of(const OpDesc& desc) {
  return with_terms({.shape = matmul_of(desc), .bias = false, .precision = desc.precision()});
}

Gemm gemm_bias_activation_of(const OpDesc& desc) {
  return with_terms({.shape = matmul_bias_activation_of(desc), .bias = true, .precision = desc.precision()});
}

std::string key_of(const Gemm& problem) {
  const Matmul& shape = problem.shape;
  std::string key = "gemm m " + std::to_string(shape.m) + " n " + std::to_string(shape.n) + " k " +
                    std::to_string(shape.k) + " " + (shape.transpose_a ? "t" : "n") + (shape.transpose_b ? "t" : "n");
  if (problem.bias) key += shape.relu ? " bias relu" : " bias";
  return key + " " + precision_name(problem.precision);
}

GemmArguments arguments_of(const Gemm& problem, const OpArgs& args) {
  GemmArguments g;
  g.a = args.in<float>(0);
  g.b = args.in<float>(1);
  g.y = args.out<float>(0);
  g.epilogue = problem.epilogue(args);
  g.m = static_cast<int>(problem.shape.m);
  g.n = static_cast<int>(problem.shape.n);
  g.k = static_cast<int>(problem.shape.k);
  g.k_of_split = g.k;
  return g;
}

GemmArguments masked_arguments_of(const Gemm& problem, const OpArgs& args, unsigned* counters) {
  GemmArguments g = arguments_of(problem, args);
  g.mask = {.y = args.in<float>(2), .parts = args.workspace<float>(), .sums = args.out<float>(1), .counters = counters};
  return g;
}

void add_parts(const float* parts, int count, int64_t size, int n, const Epilogue& epilogue, float* y,
               cudaStream_t stream) {
  launch(add_parts_kernel, thread_each(size), stream, parts, count, size, n, epilogue, y);
}

std::string refusal_of_size(const Gemm& problem) {
  const Matmul& shape = problem.shape;
  // Rows and columns of the smallest tiles still count in 16 bits, as a grid's y does.
  constexpr int64_t kMost = int64_t{1} << 20;
  if (std::min({shape.m, shape.n, shape.k}) < 1) return "it is empty";
  if (std::max({shape.m, shape.n}) > kMost || shape.k > int64_t{1} << 30) return "it is too large";
  return {};
}

bool has_quads(const Gemm& problem) {
  const Matmul& shape = problem.shape;
  const int64_t row_of_a = shape.transpose_a ? shape.m : shape.k;
  const int64_t row_of_b = shape.transpose_b ? shape.k : shape.n;
  return row_of_a % 4 == 0 && row_of_b % 4 == 0;
}

std::string refusal_of_quads(const Gemm& problem) {
  return has_quads(problem) ? std::string() : "a row is not a multiple of 4";
}

}  // namespace gpunn::cuda_tiled
