#include "half/half_plan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "architecture.hpp"
#include "cuda_common/divide_up.hpp"
#include "gemm/wgmma/wgmma.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kMostSplits = 128;
constexpr int kLeastBlocks = 4;  // of K, of a part
constexpr int64_t kMostItems = int64_t{1} << 28;
constexpr int kBandRows = 2048;  // of y', whose tiles and those of the columns beside them are under way at a time

// Times in microseconds, as measured on an H200; only their proportions count.
struct Cost {
  static constexpr double kItem = 1.0;          // to fill the ring and to store a tile
  static constexpr double kSecondKernel = 3.0;  // that adds the parts
  static constexpr double kPartBytes = 4.0e6;   // that are written and read again in a microsecond
  static constexpr double kProducts = 3.4e6;    // of a multiprocessor in a microsecond
};

// Of a phase whose first tiles are whole while K of the others is split.
struct Split {
  int64_t whole;
  int64_t others;
  int splits;
};

double time_of(const HalfPlan& plan, const Split& split, int64_t slots) {
  const HalfTile& tile = plan.tile_size();
  const int blocks = plan.product.phase[0].blocks;
  const double block = static_cast<double>(tile.rows) * tile.columns * kHalfBlockK * tile.blocks / Cost::kProducts;
  const auto waves_time = [&](int64_t items, int item_blocks) {
    return static_cast<double>(cuda::divide_up(items, slots)) * (item_blocks * block + Cost::kItem);
  };
  double time = waves_time(split.whole, blocks);
  if (split.others == 0) return time;
  const double bytes =
      4.0 * tile.cluster_rows() * tile.cluster_columns() * static_cast<double>(split.others) * split.splits;
  return time + waves_time(split.others * split.splits, cuda::divide_up(blocks, split.splits)) + Cost::kSecondKernel +
         bytes / Cost::kPartBytes;
}

// All tiles whole, all split, or those split that would not fill the GPU once more.
Split best_split(const HalfPlan& plan, int64_t tiles, int64_t slots) {
  Split best{.whole = tiles, .others = 0, .splits = 1};
  double best_time = time_of(plan, best, slots);
  const int most = std::min(kMostSplits, plan.product.phase[0].blocks / kLeastBlocks);
  for (const int64_t whole : {int64_t{0}, tiles / slots * slots}) {
    for (int splits = 2; whole < tiles && splits <= most; ++splits) {
      const Split split{.whole = whole, .others = tiles - whole, .splits = splits};
      const double time = time_of(plan, split, slots);
      if (time >= best_time) continue;
      best_time = time;
      best = split;
    }
  }
  return best;
}

// Whether TMA can store pieces of y' in y: the rows follow one another, and the columns have no gaps.
bool is_stored_in_boxes(const HalfProduct& product) {
  const bool gaps = product.image_b && product.channels % 64 != 0;  // in the columns
  return product.phases == 1 && !product.phase[0].places.scattered && product.vectors && !gaps && product.columns > 0 &&
         product.phase[0].rows > 0;
}

// By tile of kHalfTiles.
using Launch = void (*)(const HalfPlan&, int, cudaStream_t);
constexpr auto kLaunches = []<std::size_t... kTiles>(std::index_sequence<kTiles...>) {
  return std::array<Launch, sizeof...(kTiles)>{launch_half_tile<kTiles>...};
}
(std::make_index_sequence<kHalfTiles.size()>());

}  // namespace

void plan_tiles(HalfPlan& plan, int multiprocessors, bool whole) {
  const HalfTile& tile = plan.tile_size();
  HalfProduct& product = plan.product;
  product.column_tiles = cuda::divide_up(product.columns, tile.cluster_columns());
  for (int i = 0; i < product.phases; ++i) {
    HalfPhase& phase = product.phase[static_cast<std::size_t>(i)];
    phase.row_tiles = cuda::divide_up(phase.rows, tile.cluster_rows());
    phase.band = std::max(kBandRows / tile.cluster_rows(), 1);
    phase.band_tiles = Divider(int64_t{phase.band} * product.column_tiles);
    phase.band_height = Divider(phase.band);
    phase.last_height = Divider(phase.row_tiles % phase.band);
    const int64_t tiles = int64_t{phase.row_tiles} * product.column_tiles;
    phase.whole_tiles = phase.items = static_cast<int>(std::min(tiles, kMostItems + 1));
  }
  product.splits = 1;
  plan.parts_bytes = 0;
  HalfPhase& phase = product.phase[0];
  if (whole || product.phases > 1 || phase.items > kMostItems) return;
  const Split split = best_split(plan, phase.items, int64_t{multiprocessors} * tile.blocks / tile.cluster);
  if (split.others == 0) return;
  product.blocks_of_split = cuda::divide_up(phase.blocks, split.splits);
  product.splits = cuda::divide_up(phase.blocks, product.blocks_of_split);
  phase.whole_tiles = static_cast<int>(split.whole);
  phase.split_tiles = Divider(split.others);
  phase.items = static_cast<int>(split.whole + split.others * product.splits);
  plan.parts_bytes = sizeof(float) * static_cast<uint64_t>(split.others * product.splits) *
                     static_cast<uint64_t>(tile.cluster_rows()) * static_cast<uint64_t>(tile.cluster_columns());
}

bool is_countable(const HalfPlan& plan) {
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t items = 0;
  for (int i = 0; i < plan.product.phases; ++i) items += plan.product.phase[static_cast<std::size_t>(i)].items;
  const auto chunks = [](const HalfLines& lines) { return lines.is_copied() ? lines.lines * lines.pitch() / 8 : 0; };
  const auto quads = static_cast<int64_t>(plan.parts_bytes / (4 * sizeof(float)));
  return items <= kMostItems && std::max({quads, chunks(plan.a), chunks(plan.b)}) <= kMost &&
         std::max(plan.a.lines, plan.b.lines) <= kMost * 2 - 1;
}

void run_half_product(const HalfPlan& plan, const HalfAddresses& addresses, int multiprocessors, cudaStream_t stream) {
  HalfPlan placed = plan;
  HalfProduct& product = placed.product;
  product.y = addresses.y;
  product.epilogue.bias = addresses.bias;
  product.residual = addresses.residual;
  product.statistics = addresses.statistics;
  product.gradient = addresses.gradient;
  const HalfTile& tile = plan.tile_size();
  product.bulk = tile.pieces > 0 && is_stored_in_boxes(product);
  if (product.bulk) {
    product.y_map = half_tensor_map({.data = addresses.y,
                                     .inner = product.columns,
                                     .taps = 1,
                                     .outer = product.phase[0].rows,
                                     .pitch = product.phase[0].places.row_pitch},
                                    kPieceRows);
  }
  product.parts =
      reinterpret_cast<float*>(static_cast<uint8_t*>(addresses.workspace) + plan.a.copy_bytes() + plan.b.copy_bytes());
  int64_t items = 0;
  for (int i = 0; i < product.phases; ++i) items += product.phase[static_cast<std::size_t>(i)].items;
  const int64_t clusters = std::min(items, int64_t{multiprocessors} * tile.blocks / tile.cluster);
  kLaunches[static_cast<std::size_t>(plan.tile)](placed, static_cast<int>(clusters) * tile.cluster, stream);
  if (product.splits > 1) add_half_parts(placed, stream);
}

std::string half_refusal_of_gpu() {
  constexpr int kHopper = 90;
  if (compute_capability() != kHopper) return "the GPU is not of compute capability 9.0";
  return wgmma_compiled() ? std::string() : "not compiled for sm_90a";
}

}  // namespace gpunn::cuda_tiled
