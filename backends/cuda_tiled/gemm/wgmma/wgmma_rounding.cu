// Launches the product that rounds its float32 operands to BF16 itself.
#include <algorithm>

#include "cuda_common/launch.hpp"
#include "gemm/wgmma/bf16_operand.hpp"
#include "gemm/wgmma/wgmma_launch.cuh"
#include "gemm/wgmma/wgmma_rounding.cuh"

namespace gpunn::cuda_tiled {
namespace {

using backends::Matmul;

// How many slabs are rounded before the product: 2048^3, on an H200, in 45 us with 4, 39 us with 8 and 36 us with 16.
constexpr int kHeadSlabs = 16;

int boxes_of(int64_t outer) { return static_cast<int>(cuda::divide_up(outer, kBox)); }

// No fewer counters than Rounding has.
int64_t most_counters(const Matmul& shape) {
  return 1 + (boxes_of(shape.m) + boxes_of(shape.n)) * cuda::divide_up(shape.k, kBox);
}

RoundedOperand rounded(const float* from, uint8_t* to, const Bf16Operand& operand, int64_t outer) {
  const int boxes = boxes_of(outer);
  return {.from = from,
          .to = reinterpret_cast<uint16_t*>(to),
          .lines = static_cast<int>(operand.lines),
          .columns = static_cast<int>(operand.line),
          .pitch = static_cast<int>(operand.pitch()),
          .boxes = boxes,
          .panel_boxes = boxes};
}

MatrixInMemory matrix(const RoundedOperand& operand) {
  return {.data = operand.to, .inner = operand.columns, .outer = operand.lines, .pitch = operand.pitch};
}

template <Major kMajorA, Major kMajorB>
void run(Rounding rounding, const WgmmaOutput& out, cudaStream_t stream) {
  using T = PersistentTiling<WgmmaOperands{Element::kBf16, kMajorA, kMajorB}>;
  // Blocks in pairs where there is more than one wave, but not where a tile in eight or more would be outside of y.
  const int64_t high = cuda::divide_up(out.rows, T::kRows), wide = cuda::divide_up(out.columns, T::kColumns);
  const int share = high * wide > multiprocessors() && (high % 2 == 0 || high > 8) ? 2 : 1;
  const TileOrder order{.row_tiles = static_cast<int>(cuda::divide_up(high, share)),
                        .column_tiles = static_cast<int>(wide),
                        .band = kBandRows / (T::kRows * share)};
  // No more clusters than make as many waves, so that a wave is a rectangle of tiles if it can be: it reads few panels.
  const int64_t tiles = int64_t{order.row_tiles} * order.column_tiles;
  const int64_t clusters = cuda::divide_up(tiles, cuda::divide_up(tiles, multiprocessors() / share));
  const int64_t wave_columns = cuda::divide_up(clusters, std::min(order.band, order.row_tiles));
  const auto panel = [](const RoundedOperand& operand, int64_t lines) {
    return static_cast<int>(std::min<int64_t>(operand.boxes, lines / kBox));
  };
  rounding.a.panel_boxes = panel(rounding.a, kBandRows);
  rounding.b.panel_boxes = panel(rounding.b, wave_columns * T::kColumns);
  constexpr unsigned kThreads = 256;
  const int64_t warps = int64_t{rounding.head} * rounding.first_boxes() * kBoxQuarters;
  launch_with(round_head<kMajorA, kMajorB>, cuda::thread_each(warps * 32, kThreads), {.early = true}, stream, rounding);
  launch_wgmma(share == 2 ? wgmma_rounding<T, true> : wgmma_rounding<T, false>,
               dim3(static_cast<unsigned>(clusters * share)), dim3(static_cast<unsigned>(share)), T::kThreads,
               T::kSharedBytes, stream, operand_map<T>(matrix(rounding.a), kMajorA, T::kRows),
               operand_map<T>(matrix(rounding.b), kMajorB, T::kColumns / share), out, order, rounding.slabs, rounding);
}

}  // namespace

std::string wgmma_rounding_refuses(const Gemm& problem) {
  if (problem.precision != GPUNN_PRECISION_BF16) return "the precision is not BF16";
  const std::string reason = wgmma_refuses(WgmmaKernel::kPersistent, problem);
  if (!reason.empty()) return reason;
  if (most_counters(problem.shape) > (int64_t{1} << 30U)) return "a size is too large";
  if (2 * cuda::divide_up(problem.shape.m, 128) * cuda::divide_up(problem.shape.n, 256) < multiprocessors()) {
    return "too few tiles round for each other";
  }
  return {};
}

uint64_t wgmma_rounding_workspace(const Gemm& problem) {
  return wgmma_bf16_workspace(problem) + sizeof(unsigned) * static_cast<uint64_t>(most_counters(problem.shape));
}

void wgmma_rounding(const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args) {
  const Matmul& shape = problem.shape;
  const Bf16Operand a = bf16_operand(shape.m, shape.k, !shape.transpose_a);
  const Bf16Operand b = bf16_operand(shape.n, shape.k, shape.transpose_b);
  auto* const room = args.workspace<uint8_t>();
  const int slabs = static_cast<int>(cuda::divide_up(shape.k, kBox));
  const Rounding rounding{.a = rounded(args.in<float>(0), room, a, shape.m),
                          .b = rounded(args.in<float>(1), room + a.bytes(), b, shape.n),
                          .slabs = slabs,
                          .head = std::min(slabs, kHeadSlabs),
                          .counters = reinterpret_cast<unsigned*>(room + a.bytes() + b.bytes())};
  const WgmmaOutput out{.y = args.out<float>(0),
                        .rows = static_cast<int>(shape.m),
                        .columns = static_cast<int>(shape.n),
                        .epilogue = problem.epilogue(args)};
  constexpr Major kK = Major::kK, kMN = Major::kMN;
  const auto product = shape.transpose_a ? (shape.transpose_b ? run<kMN, kK> : run<kMN, kMN>)
                                         : (shape.transpose_b ? run<kK, kK> : run<kK, kMN>);
  product(rounding, out, stream);
}

}  // namespace gpunn::cuda_tiled
