// gemm:11, matrix product that first makes MN-major copies and then uses the tiles of gemm:7. (MN-major is CUTLASS's
// term: a row for each k, as the loop over k reads it.)
//
// Of the four transposes only a [k, m] with b [k, n] needs no transposing on the way to shared memory. The others pass
// one or both operands through registers. With tiles as small as 1024^3 needs, there are few products to hide that
// latency. A separate pass over the operand costs less: it writes the MN-major copy while the data is in the
// second-level cache. From 2048^3 on larger tiles hide the latency well.
//
// H200: 1024^3 nn in 54.8 us, gemm:7 56.1, cuBLAS 55.5; nt in 58.8 us, gemm:7 55.0, cuBLAS 57.7. 1500^3 nn in 215 us,
// gemm:7 240, and nt in 225, gemm:7 243; stream-K takes 161 and 163.
#include <algorithm>
#include <cstdint>
#include <string>

#include "cuda_common/launch.hpp"
#include "gemm/fp32/tile_variant.cuh"
#include "gemm/gemm_variants.hpp"

namespace gpunn::cuda_tiled {
namespace {

// A matrix [outer][k] that is wanted as [k][outer].
struct Copy {
  const float* from = nullptr;
  float* to = nullptr;
  int outer = 0;
  int k = 0;
};

struct Copies {
  Copy copy[2];
};

constexpr int kCopied = 32;  // rows and columns of a block
constexpr int kCopyThreads = kCopied * kCopied / 4;

// grid: (tiles along k, tiles along the larger outer dimension, copies)
__global__ void __launch_bounds__(kCopyThreads) copy_mn_major(const Copies copies) {
  __shared__ float tile[kCopied][kCopied + 1];
  const Copy copy = copies.copy[blockIdx.z];
  const int first_k = static_cast<int>(blockIdx.x) * kCopied;
  const int first_outer = static_cast<int>(blockIdx.y) * kCopied;
  const int line = static_cast<int>(threadIdx.x) / (kCopied / 4);
  const int place = static_cast<int>(threadIdx.x) % (kCopied / 4) * 4;
  if (first_outer + line < copy.outer && first_k + place < copy.k) {
    const int64_t at = int64_t{first_outer + line} * copy.k + first_k + place;
    const float4 quad = *reinterpret_cast<const float4*>(copy.from + at);
    tile[place][line] = quad.x;
    tile[place + 1][line] = quad.y;
    tile[place + 2][line] = quad.z;
    tile[place + 3][line] = quad.w;
  }
  __syncthreads();
  if (first_k + line >= copy.k || first_outer + place >= copy.outer) return;
  const float* const from = &tile[line][place];
  *reinterpret_cast<float4*>(copy.to + int64_t{first_k + line} * copy.outer + first_outer + place) =
      make_float4(from[0], from[1], from[2], from[3]);
}

std::string refuses(const Gemm& problem) {
  const backends::Matmul& shape = problem.shape;
  constexpr int64_t kMost = 2048;  // beyond, gemm:5 and gemm:6 are faster
  if (mn_major(problem)) return "it is MN-major as it is";
  std::string refusal = refusal_of_size(problem);
  if (refusal.empty()) refusal = refusal_of_quads(problem);
  if (refusal.empty()) refusal = refusal_of_tiles<MnMajorTiles64>(problem);
  if (refusal.empty() && (shape.m % 4 != 0 || shape.n % 4 != 0))
    refusal = "a row of y or of a copy is no multiple of 4";
  if (refusal.empty() && std::max({shape.m, shape.n, shape.k}) > kMost) refusal = "it is too large";
  return refusal;
}

uint64_t workspace_bytes(const Gemm& problem) {
  const backends::Matmul& shape = problem.shape;
  const int64_t outer = (shape.transpose_a ? 0 : shape.m) + (shape.transpose_b ? shape.n : 0);
  return sizeof(float) * static_cast<uint64_t>(outer * shape.k);
}

void run(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  GemmArguments g = arguments_of(problem, args);
  auto* to = args.workspace<float>();
  Copies copies;
  unsigned count = 0;
  int outer = 0;
  const auto copy = [&](const float*& matrix, int lines) {
    copies.copy[count] = {matrix, to, lines, g.k};
    matrix = to;
    to += int64_t{lines} * g.k;
    outer = std::max(outer, lines);
    ++count;
  };
  if (!problem.shape.transpose_a) copy(g.a, g.m);
  if (problem.shape.transpose_b) copy(g.b, g.n);
  launch(copy_mn_major,
         {dim3(cuda::grid_size(g.k, kCopied), cuda::grid_size(outer, kCopied), count), dim3(kCopyThreads)}, stream,
         copies);
  run_mn_major<MnMajorTiles64>(g, stream);
}

}  // namespace

Variant<Gemm> mn_major_copies_variant() {
  return {.name = "gemm:11", .refuses = refuses, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace gpunn::cuda_tiled
