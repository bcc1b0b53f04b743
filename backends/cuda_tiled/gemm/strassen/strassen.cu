// gemm:strassen, one level of Strassen's algorithm in Winograd's variant: seven products of half the size instead of
// eight. gemm:strassen_twice, two levels: 49 products of a quarter of the size instead of 64.
//
// A loop of only multiplications and additions makes 59 TFLOP/s on an H200, and the classical variants 51, as does
// cuBLAS. A further gain is only possible with fewer operations. A first pass writes the sums of quarters of a and b
// (strassen_operands.cuh). One kernel then makes the products and adds most of them in registers
// (strassen_products.cuh). Passes and stores cost as much as an eighth of a small product, and the tiles of a quarter
// have to fill the GPU: below 4096^3 it is slower than the classical product.
//
// H200: 4096^3 in 2.48 ms, 55.3 TFLOP/s of a classical product, cuBLAS 2.67; b transposed 2.50 and 2.73. 8192^3 in 19.3
// ms, with two levels 17.9 ms, 61.6 TFLOP/s, cuBLAS 21.4. 2048^3 takes 1.25 ms, cuBLAS 0.34. 5120^3 takes 6.1 ms,
// cuBLAS 5.7: a quarter of it has 200 tiles, which 132 multiprocessors make in two rounds.
//
// The accuracy is lower: errors are small compared with the largest numbers of a and b, not with each sum's own terms
// (Higham, Accuracy and Stability of Numerical Algorithms, chapter 23). The table has two figures for each case, at
// 8192^3 on an H200 (256 rows of y; 4096^3 is similar). The first is the largest error from float64 over the largest
// value of y. The second is the error as a part of the bound of the conformance tests, (4 + 2 sqrt(k)) u times the sum
// of the products' absolute values:
//
//                                       gemm:6            one level         two levels
//   uniform in -1..1                    4.6e-6   0.03     1.1e-5   0.07     2.0e-5   0.13
//   normal                              5.0e-6   0.04     9.3e-6   0.08     1.6e-5   0.13
//   uniform in 0..2                     5.9e-6   0.55     1.4e-5   1.3      6.4e-6   0.60
//   rows of a times 10^-6 to 10^6       3.1e-6   0.03     5.2e-6   9e8      8.0e-6   4e9
//   columns of a times 10^-3 to 10^3,
//   rows of b divided by the same       4.2e-6   0.03     0.22     1400     0.44     3000
//
// So all-positive data exceeds the bound at 70 elements of a million. A small row of a beside a large one loses all its
// digits. If large columns of a meet small rows of b, y loses its digits. A NaN in a row of a makes that row of each
// quarter of y NaN; a NaN in a column of b does the same to that column. So can an infinity, or a number beyond 1e38,
// since sums of quarters overflow. The shape does not reveal such data, and the autotuner only tries uniform data.
// Hence the autotuner never chooses these variants; they must be requested by name.
//
// Strassen, Gaussian elimination is not optimal (1969); Winograd, On multiplication of 2 x 2 matrices (1971); on GPUs
// Huang, Yu and van de Geijn, Strassen's algorithm reloaded on GPUs (2020).
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "architecture.hpp"
#include "cuda_common/launch.hpp"
#include "gemm/fp32/tile_variant.cuh"
#include "gemm/gemm_variants.hpp"
#include "gemm/launch_gemm.hpp"
#include "gemm/strassen/strassen_operands.cuh"
#include "gemm/strassen/strassen_products.cuh"

namespace gpunn::cuda_tiled {
namespace {

using strassen::Arguments;
using strassen::Factor;
using strassen::kProducts;

using FactorTiles =
    TileShape<GemmTile{.block = {128, 256, 8}, .warp = {64, 64}, .thread = {16, 8}, .stages = 4, .strip = 2}>;

constexpr int64_t kLeastOfOne = 1024;  // of m, n and k
constexpr int64_t kLeastOfTwo = 2048;

// A matrix [2 k][2 outer], or [2 outer][2 k].
struct Operand {
  const float* matrix;
  int row_floats;
  int k;
  int outer;
  bool mn_major;

  int64_t quarter() const { return int64_t{k} * outer; }
  int64_t packed() const { return (mn_major ? 4 : 7) * quarter(); }
};

// What the products use of an operand: its sums and the quarters that are factors, 11, then 12 of a or 21 of b, then
// 22.
struct Factors {
  Factor sum[4];
  Factor quarter[3];
};

// The sums, and the quarters of a matrix that is not MN-major, are at `packed`.
Factors factors_of(const Operand& operand, const float* packed) {
  Factors found;
  for (Factor& sum : found.sum) {
    sum = {packed, operand.outer};
    packed += operand.quarter();
  }
  for (Factor& quarter : found.quarter) {
    quarter = {packed, operand.outer};
    packed += operand.quarter();
  }
  if (operand.mn_major) {
    const float* const second = operand.matrix + int64_t{operand.k} * operand.row_floats;
    found.quarter[0] = {operand.matrix, operand.row_floats};
    found.quarter[1] = {second, operand.row_floats};
    found.quarter[2] = {second + operand.outer, operand.row_floats};
  }
  return found;
}

template <bool kOfA>
Factors pack(const Operand& operand, float* packed, cudaStream_t stream) {
  const auto k = static_cast<unsigned>(operand.k);
  if (operand.mn_major) {
    launch(strassen::add_quarters<kOfA>,
           {dim3(cuda::grid_size(operand.outer, 4 * strassen::kThreads), k), dim3(strassen::kThreads)}, stream,
           operand.matrix, packed, operand.k, operand.outer, operand.row_floats);
  } else {
    launch(strassen::transpose_quarters<kOfA>,
           {dim3(cuda::grid_size(operand.k, strassen::kTile), cuda::grid_size(operand.outer, strassen::kTile)),
            dim3(strassen::kThreads)},
           stream, operand.matrix, packed, operand.k, operand.outer);
  }
  return factors_of(operand, packed);
}

// The factors of both operands in the order of the products.
Arguments arguments_of(const Factors& a, const Factors& b) {
  Arguments g;
  const Factor of_a[kProducts] = {a.quarter[0], a.sum[1], a.sum[2], a.quarter[2], a.quarter[1], a.sum[0], a.sum[3]};
  const Factor of_b[kProducts] = {b.quarter[0], b.sum[1], b.sum[2], b.sum[3], b.quarter[1], b.sum[0], b.quarter[2]};
  std::copy(std::begin(of_a), std::end(of_a), g.a);
  std::copy(std::begin(of_b), std::end(of_b), g.b);
  return g;
}

// One level: y, and what else `result` says, of a b. `packed` has room for what the operands need.
void multiply(const Operand& a, const Operand& b, Arguments result, float* packed, cudaStream_t stream) {
  const Factors of_a = pack<true>(a, packed, stream);
  const Arguments factors = arguments_of(of_a, pack<false>(b, packed + a.packed(), stream));
  std::copy(std::begin(factors.a), std::end(factors.a), result.a);
  std::copy(std::begin(factors.b), std::end(factors.b), result.b);
  result.half_m = a.outer;
  result.half_n = b.outer;
  result.half_k = a.k;
  constexpr auto kKernel = strassen::multiply_factors<FactorTiles>;
  constexpr unsigned kSharedBytes = strassen::shared_bytes<FactorTiles>();
  allow_shared_memory(kKernel, kSharedBytes);
  const unsigned tiles =
      cuda::grid_size(a.outer, FactorTiles::kBlockM) * cuda::grid_size(b.outer, FactorTiles::kBlockN);
  launch(kKernel, {dim3(tiles), dim3(FactorTiles::kThreads), kSharedBytes}, stream, result);
}

Operand operand_a(const Gemm& problem, const float* matrix) {
  const Matmul& shape = problem.shape;
  const int64_t row = shape.transpose_a ? shape.m : shape.k;
  return {matrix, static_cast<int>(row), static_cast<int>(shape.k / 2), static_cast<int>(shape.m / 2),
          shape.transpose_a};
}

Operand operand_b(const Gemm& problem, const float* matrix) {
  const Matmul& shape = problem.shape;
  const int64_t row = shape.transpose_b ? shape.k : shape.n;
  return {matrix, static_cast<int>(row), static_cast<int>(shape.k / 2), static_cast<int>(shape.n / 2),
          !shape.transpose_b};
}

// A factor of an outer product as the operand of the level below.
Operand operand_of(const Factor& factor, const Operand& whole) {
  return {factor.data, factor.row_floats, whole.k / 2, whole.outer / 2, true};
}

uint64_t workspace_of_one(const Gemm& problem) {
  return sizeof(float) *
         static_cast<uint64_t>(operand_a(problem, nullptr).packed() + operand_b(problem, nullptr).packed());
}

uint64_t workspace_of_two(const Gemm& problem) {
  const Operand a = operand_a(problem, nullptr);
  const Operand b = operand_b(problem, nullptr);
  const int64_t inner = a.quarter() + b.quarter() + int64_t{a.outer} * b.outer;  // four sums of a quarter each, kept
  return workspace_of_one(problem) + sizeof(float) * static_cast<uint64_t>(inner);
}

std::string refuses(const Gemm& problem, int64_t least, int64_t divisor, uint64_t workspace) {
  const Matmul& shape = problem.shape;
  constexpr int64_t kMostK = 2 * 65535;  // rows are a grid's y
  constexpr uint64_t kMostWorkspace = uint64_t{1} << 30;
  std::string refusal = refusal_of_size(problem);
  if (!refusal.empty()) return refusal;
  if (std::min({shape.m, shape.n, shape.k}) < least) return "it is too small";
  for (const int64_t size : {shape.m, shape.n, shape.k}) {
    if (size % divisor != 0) return "a size is not a multiple of " + std::to_string(divisor);
  }
  if (shape.k > kMostK) return "k is too large";
  if (shared_memory_of_block() < static_cast<int>(strassen::shared_bytes<FactorTiles>())) {
    return "a block needs more shared memory than this GPU has";
  }
  return workspace > kMostWorkspace ? "the workspace would be larger than 1 GiB" : "";
}

std::string one_refuses(const Gemm& problem) { return refuses(problem, kLeastOfOne, 8, workspace_of_one(problem)); }

std::string two_refuses(const Gemm& problem) { return refuses(problem, kLeastOfTwo, 16, workspace_of_two(problem)); }

void run_one(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const GemmArguments gemm = arguments_of(problem, args);
  Arguments result;
  result.y = result.kept = gemm.y;
  result.row_of_y = result.row_of_kept = gemm.n;
  result.epilogue = gemm.epilogue;
  multiply(operand_a(problem, gemm.a), operand_b(problem, gemm.b), result, args.workspace<float>(), stream);
}

void run_two(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const GemmArguments gemm = arguments_of(problem, args);
  const Operand a = operand_a(problem, gemm.a);
  const Operand b = operand_b(problem, gemm.b);
  auto* const packed_a = args.workspace<float>();
  float* const packed_b = packed_a + a.packed();
  float* const kept = packed_b + b.packed();
  float* const packed = kept + int64_t{a.outer} * b.outer;
  const Factors of_a = pack<true>(a, packed_a, stream);
  const Arguments outer = arguments_of(of_a, pack<false>(b, packed_b, stream));
  float* const y11 = gemm.y;
  float* const y12 = y11 + b.outer;
  float* const y21 = y11 + int64_t{a.outer} * gemm.n;
  float* const y22 = y21 + b.outer;
  // Where the products go, as in strassen_products.cuh: what is to be added later waits in its quarter of y.
  struct Step {
    float* to;
    const float* before;
    float* also;
    bool done;
  };
  const Step steps[kProducts] = {{y11, nullptr, nullptr, false}, {y12, y11, nullptr, false}, {y22, y12, nullptr, false},
                                 {y21, y22, nullptr, true},      {y11, y11, nullptr, true},  {y22, y22, y12, true},
                                 {y12, y12, nullptr, true}};
  for (int product = 0; product < kProducts; ++product) {
    const Step& step = steps[product];
    Arguments result;
    result.y = step.to;
    result.row_of_y = gemm.n;
    result.before = step.before;
    result.also = step.also;
    result.kept = kept;
    result.row_of_kept = b.outer;
    if (step.done) {
      result.epilogue = gemm.epilogue;
      const bool right = step.to == y12 || step.to == y22;
      if (result.epilogue.bias != nullptr && right) result.epilogue.bias += b.outer;
    }
    multiply(operand_of(outer.a[product], a), operand_of(outer.b[product], b), result, packed, stream);
  }
}

}  // namespace

std::vector<Variant<Gemm>> strassen_variants() {
  return {{.name = "gemm:strassen",
           .refuses = one_refuses,
           .workspace_bytes = workspace_of_one,
           .run = run_one,
           .candidate = false},
          {.name = "gemm:strassen_twice",
           .refuses = two_refuses,
           .workspace_bytes = workspace_of_two,
           .run = run_two,
           .candidate = false}};
}

}  // namespace gpunn::cuda_tiled
