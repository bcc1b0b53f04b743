// Launching the product that rounds its float32 operands to BF16 itself.
#include <algorithm>

#include "bf16_operand.hpp"
#include "cuda_common/launch.hpp"
#include "wgmma_launch.cuh"
#include "wgmma_rounding.cuh"

namespace gpunn::cuda_tiled {
namespace {

using backends::Matmul;

// How many slabs of a and b are rounded before the product. H200, 2048^3: 4 or fewer 40.8 us, 16 37.2 us, 32 40.1 us;
// 4096^3 243, 239 and 243 us.
constexpr int kHeadSlabs = 16;

int panels(int64_t outer) { return static_cast<int>(divide_up(outer, kPanel)); }

int64_t cells(const Matmul& shape) {
  return (divide_up(shape.m, kPanel) + divide_up(shape.n, kPanel)) * divide_up(shape.k, kBox);
}

RoundedOperand rounded(const float* from, uint8_t* to, const Bf16Operand& operand, int64_t outer) {
  return {.from = from,
          .to = reinterpret_cast<uint16_t*>(to),
          .lines = static_cast<int>(operand.lines),
          .columns = static_cast<int>(operand.line),
          .pitch = static_cast<int>(operand.pitch()),
          .panels = panels(outer)};
}

MatrixInMemory matrix(const RoundedOperand& operand) {
  return {.data = operand.to, .inner = operand.columns, .outer = operand.lines, .pitch = operand.pitch};
}

template <Along kAlongA, Along kAlongB>
void run(const Rounding& rounding, const WgmmaOutput& out, cudaStream_t stream) {
  using T = Tiling<Bf16, kAlongA, kAlongB, 2, 256, 4>;
  constexpr unsigned kThreads = 256;
  const int warps = std::max(rounding.head * kCellBoxes * kBoxQuarters, 1);
  cuda::launch(round_head<kAlongA, kAlongB>, cuda::thread_each(int64_t{warps} * 32, kThreads), stream, rounding);
  const TileOrder order{.row_tiles = static_cast<int>(divide_up(out.rows, T::kRows)),
                        .column_tiles = static_cast<int>(divide_up(out.columns, T::kColumns)),
                        .band = kBandRows / T::kRows};
  const int64_t tiles = int64_t{order.row_tiles} * order.column_tiles;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors()));
  launch_wgmma(wgmma_rounding<T>, dim3(blocks), dim3(1), T::kThreads, T::kSharedBytes, stream,
               operand_map<T>(matrix(rounding.a), kAlongA, T::kRows),
               operand_map<T>(matrix(rounding.b), kAlongB, T::kColumns), out, order, rounding.slabs, rounding);
}

}  // namespace

std::string wgmma_rounding_refuses(const Gemm& problem) {
  if (problem.precision != GPUNN_PRECISION_BF16) return "the precision is not BF16";
  const std::string reason = wgmma_refuses(WgmmaKernel::kPersistent, problem);
  if (!reason.empty()) return reason;
  if (cells(problem.shape) > (int64_t{1} << 24U)) return "a size is too large";
  if (2 * divide_up(problem.shape.m, 128) * divide_up(problem.shape.n, 256) < multiprocessors()) {
    return "too few tiles round for each other";
  }
  return {};
}

uint64_t wgmma_rounding_workspace(const Gemm& problem) {
  return wgmma_bf16_workspace(problem) + sizeof(unsigned) * static_cast<uint64_t>(1 + cells(problem.shape));
}

void wgmma_rounding(const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args) {
  const Matmul& shape = problem.shape;
  const Bf16Operand a = bf16_operand(shape.m, shape.k, !shape.transpose_a);
  const Bf16Operand b = bf16_operand(shape.n, shape.k, shape.transpose_b);
  auto* const room = args.workspace<uint8_t>();
  const int slabs = static_cast<int>(divide_up(shape.k, kBox));
  const Rounding rounding{.a = rounded(args.in<float>(0), room, a, shape.m),
                          .b = rounded(args.in<float>(1), room + a.bytes(), b, shape.n),
                          .slabs = slabs,
                          .head = 2 * std::min(slabs, kHeadSlabs),
                          .counters = reinterpret_cast<unsigned*>(room + a.bytes() + b.bytes())};
  const WgmmaOutput out{.y = args.out<float>(0),
                        .rows = static_cast<int>(shape.m),
                        .columns = static_cast<int>(shape.n),
                        .epilogue = {.bias = problem.bias ? args.in<float>(2) : nullptr, .relu = shape.relu}};
  constexpr Along kK = Along::kK, kOuter = Along::kOuter;
  const auto product = shape.transpose_a ? (shape.transpose_b ? run<kOuter, kK> : run<kOuter, kOuter>)
                                         : (shape.transpose_b ? run<kK, kK> : run<kK, kOuter>);
  product(rounding, out, stream);
}

}  // namespace gpunn::cuda_tiled
