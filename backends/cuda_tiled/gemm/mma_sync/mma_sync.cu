#include <algorithm>

#include "architecture.hpp"
#include "cuda_common/launch.hpp"
#include "gemm/launch_gemm.hpp"
#include "gemm/mma_sync/mma_sync.cuh"
#include "gemm/mma_sync/mma_sync.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::Matmul;

template <bool kBf16>
using Big = MmaTiling<MmaTile{.bf16 = kBf16, .tile_m = 128, .tile_n = 128, .warp_m = 64, .warp_n = 32, .stages = 4}>;
template <bool kBf16>
using Small = MmaTiling<MmaTile{.bf16 = kBf16, .tile_m = 64, .tile_n = 64, .warp_m = 32, .warp_n = 32, .stages = 4}>;

constexpr int kBlockK = Big<false>::kBlockK;
constexpr int kSmallTile = Small<false>::kTileM;
constexpr int kMostGridRows = 65535;

// Where tiles are fewer than multiprocessors, parts of at least eight blocks of K.
int k_of_part(const Matmul& shape) {
  constexpr int kMostParts = 32;
  const int64_t tiles = int64_t{cuda::divide_up(shape.m, kSmallTile)} * cuda::divide_up(shape.n, kSmallTile);
  const int64_t wanted = std::max<int64_t>(1, 2 * multiprocessors() / std::max<int64_t>(1, tiles));
  const int64_t most = std::max<int64_t>(1, shape.k / (8 * kBlockK));
  const int64_t parts = std::min({wanted, most, int64_t{kMostParts}});
  return cuda::divide_up(cuda::divide_up(shape.k, parts), kBlockK) * kBlockK;
}

int parts_of(const Matmul& shape) { return cuda::divide_up(shape.k, k_of_part(shape)); }

template <class T, bool kTransposeA, bool kTransposeB>
void launch_mma(const MmaArguments& g, int parts, cudaStream_t stream) {
  constexpr int kBytes = MmaShared<T, kTransposeA, kTransposeB>::kBytes;
  allow_shared_memory(mma_sync<T, kTransposeA, kTransposeB>, kBytes);
  launch(mma_sync<T, kTransposeA, kTransposeB>,
         {dim3(cuda::grid_size(g.m, T::kTileM), cuda::grid_size(g.n, T::kTileN), static_cast<unsigned>(parts)),
          dim3(T::kThreads), kBytes},
         stream, g);
}

template <template <bool> class Tiling, bool kBf16>
void launch_transposes(const Matmul& shape, const MmaArguments& g, int parts, cudaStream_t stream) {
  using T = Tiling<kBf16>;
  const auto run = shape.transpose_a ? (shape.transpose_b ? launch_mma<T, true, true> : launch_mma<T, true, false>)
                                     : (shape.transpose_b ? launch_mma<T, false, true> : launch_mma<T, false, false>);
  run(g, parts, stream);
}

MmaArguments arguments(const Gemm& problem, const OpArgs& args) {
  const Matmul& shape = problem.shape;
  constexpr int kVector = 4;
  return {.a = args.in<float>(0),
          .b = args.in<float>(1),
          .y = args.out<float>(0),
          .m = static_cast<int>(shape.m),
          .n = static_cast<int>(shape.n),
          .k = static_cast<int>(shape.k),
          .k_of_part = static_cast<int>(cuda::divide_up(shape.k, kBlockK)) * kBlockK,
          .vectors_a = (shape.transpose_a ? shape.m : shape.k) % kVector == 0,
          .vectors_b = (shape.transpose_b ? shape.k : shape.n) % kVector == 0,
          .epilogue = problem.epilogue(args)};
}

}  // namespace

std::string mma_sync_refuses(const Gemm& problem) {
  constexpr int64_t kMost = int64_t{1} << 30U;
  constexpr int kAmpere = 80;
  const Matmul& shape = problem.shape;
  if (problem.precision != GPUNN_PRECISION_TF32 && problem.precision != GPUNN_PRECISION_BF16) {
    return "the precision is neither TF32 nor BF16";
  }
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return "a matrix is empty";
  if (shape.m > kMost || shape.k > kMost || cuda::divide_up(shape.n, kSmallTile) > kMostGridRows)
    return "a size is too large";
  if (compute_capability() < kAmpere) return "the GPU is older than compute capability 8.0";
  return {};
}

void mma_sync_big(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const auto run =
      problem.precision == GPUNN_PRECISION_BF16 ? launch_transposes<Big, true> : launch_transposes<Big, false>;
  run(problem.shape, arguments(problem, args), 1, stream);
}

uint64_t mma_sync_small_workspace(const Gemm& problem) {
  const Matmul& shape = problem.shape;
  const int parts = parts_of(shape);
  return parts == 1 ? 0
                    : sizeof(float) * static_cast<uint64_t>(parts) * static_cast<uint64_t>(shape.m) *
                          static_cast<uint64_t>(shape.n);
}

void mma_sync_small(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const Matmul& shape = problem.shape;
  const int parts = parts_of(shape);
  MmaArguments g = arguments(problem, args);
  const Epilogue epilogue = g.epilogue;
  g.k_of_part = k_of_part(shape);
  if (parts > 1) {
    g.y = args.workspace<float>();
    g.epilogue = {};
  }
  const auto run =
      problem.precision == GPUNN_PRECISION_BF16 ? launch_transposes<Small, true> : launch_transposes<Small, false>;
  run(shape, g, parts, stream);
  if (parts == 1) return;
  add_parts(g.y, parts, shape.m * shape.n, g.n, epilogue, args.out<float>(0), stream);
}

}  // namespace gpunn::cuda_tiled
