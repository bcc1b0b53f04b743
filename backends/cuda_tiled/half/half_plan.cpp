#include "half/half_plan.hpp"

#include <algorithm>
#include <iterator>

#include "architecture.hpp"
#include "cuda_common/divide_up.hpp"
#include "gemm/wgmma/wgmma.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kMostSplits = 128;
constexpr int kBandRows = 2048;  // of y', whose tiles and those of the columns beside them are under way at a time

// Times in microseconds, as measured on an H200; only their proportions count.
struct Cost {
  static constexpr double kItem = 1.5;            // to fill the ring and to store a tile
  static constexpr double kSecondKernel = 3.0;    // that adds the parts
  static constexpr double kBytes = 3.0e6;         // of the parts, written and read, in a microsecond
  static constexpr double kNumbers = 64 * 5.0e6;  // products of a multiprocessor in a microsecond, times 2 / 128
};

double time_of(const HalfPlan& plan, int64_t items_of_split, int splits, int64_t slots) {
  const HalfTile& tile = plan.tile_size();
  const int blocks = cuda::divide_up(plan.product.phase[0].blocks, splits);
  const double block = static_cast<double>(tile.rows) * tile.columns * kHalfBlockK * tile.blocks / (Cost::kNumbers * 8);
  const auto waves = static_cast<double>(cuda::divide_up(items_of_split * splits, slots));
  double time = waves * (blocks * block + Cost::kItem);
  if (splits > 1) {
    const double bytes = 8.0 * splits * plan.product.phase[0].rows * plan.product.columns;
    time += Cost::kSecondKernel + bytes / Cost::kBytes;
  }
  return time;
}

}  // namespace

void plan_tiles(HalfPlan& plan, int multiprocessors) {
  const HalfTile& tile = plan.tile_size();
  HalfProduct& product = plan.product;
  product.column_tiles = cuda::divide_up(product.columns, tile.columns);
  product.band = std::max(kBandRows / tile.rows, 1);
  int64_t items = 0;
  for (int i = 0; i < product.phases; ++i) {
    HalfPhase& phase = product.phase[static_cast<std::size_t>(i)];
    phase.row_tiles = cuda::divide_up(phase.rows, tile.rows);
    items += int64_t{phase.row_tiles} * product.column_tiles;
  }
  product.splits = 1;
  product.parts_pitch = cuda::divide_up(product.columns, 64) * 64;
  plan.parts_bytes = 0;
  if (product.phases > 1) return;
  const int64_t slots = int64_t{multiprocessors} * tile.blocks;
  const int most = std::min(kMostSplits, std::max(product.phase[0].blocks / 4, 1));
  double best = time_of(plan, items, 1, slots);
  for (int splits = 2; splits <= most; ++splits) {
    const double time = time_of(plan, items, splits, slots);
    if (time >= best) continue;
    best = time;
    product.splits = splits;
  }
  if (product.splits > 1) {
    plan.parts_bytes = sizeof(float) * static_cast<uint64_t>(product.splits) *
                       static_cast<uint64_t>(product.phase[0].rows) * static_cast<uint64_t>(product.parts_pitch);
  }
}

bool is_countable(const HalfPlan& plan) {
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t rows = 0, tiles = 0;
  for (int i = 0; i < plan.product.phases; ++i) {
    const HalfPhase& phase = plan.product.phase[static_cast<std::size_t>(i)];
    rows += phase.rows;
    tiles += int64_t{phase.row_tiles} * plan.product.column_tiles;
  }
  const auto chunks = [](const HalfLines& lines) { return lines.is_copied() ? lines.lines * lines.pitch() / 8 : 0; };
  const int64_t quads = plan.product.splits > 1 ? rows * plan.product.parts_pitch / 4 : 0;
  return std::max({tiles * plan.product.splits, quads, chunks(plan.a), chunks(plan.b)}) <= kMost &&
         std::max(plan.a.lines, plan.b.lines) <= kMost * 2 - 1;
}

void run_half_product(const HalfPlan& plan, const HalfAddresses& addresses, int multiprocessors, cudaStream_t stream) {
  HalfPlan placed = plan;
  HalfProduct& product = placed.product;
  product.y = addresses.y;
  product.epilogue.bias = addresses.bias;
  product.parts =
      reinterpret_cast<float*>(static_cast<uint8_t*>(addresses.workspace) + plan.a.copy_bytes() + plan.b.copy_bytes());
  int64_t items = 0;
  for (int i = 0; i < product.phases; ++i) {
    items += int64_t{product.phase[static_cast<std::size_t>(i)].row_tiles} * product.column_tiles * product.splits;
  }
  const auto blocks = static_cast<int>(std::min(items, int64_t{multiprocessors} * plan.tile_size().blocks));
  constexpr void (*kLaunches[])(const HalfPlan&, int, cudaStream_t) = {
      launch_half_tile<0>, launch_half_tile<1>, launch_half_tile<2>, launch_half_tile<3>, launch_half_tile<4>};
  static_assert(std::size(kLaunches) == kHalfTiles.size());
  kLaunches[plan.tile](placed, blocks, stream);
  if (product.splits > 1) add_half_parts(placed, stream);
}

std::string half_refusal_of_gpu() {
  constexpr int kHopper = 90;
  if (compute_capability() != kHopper) return "the GPU is not of compute capability 9.0";
  return wgmma_compiled() ? std::string() : "not compiled for sm_90a";
}

}  // namespace gpunn::cuda_tiled
