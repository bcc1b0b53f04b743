// Chooses the tile of a matrix product and the number of shares of its reduction, by a model of the run time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::conv {

struct TileChoice {
  int rows = 128;
  int columns = 128;
  int shares = 1;
  int depth_of_share = 1;
};

// `count` products of `rows` x `columns` x `depth`.
struct ProductSize {
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t count;
};

// The model's unit of time is one multiplication and addition of a multiprocessor. It counts those of the busiest
// multiprocessor, what the beginning and end of a block take, and writing and adding the shares.
inline TileChoice choose_tile(const ProductSize& size, int multiprocessors, int depth_unit, int most_shares) {
  struct Tile {
    int rows;
    int columns;
    int threads;
    int resident;  // blocks of a multiprocessor
    double efficiency;
  };
  constexpr std::array<Tile, 4> kTiles{
      {{128, 128, 256, 2, 1.0}, {64, 128, 128, 4, 0.93}, {128, 64, 128, 4, 0.93}, {64, 64, 128, 5, 0.88}}};
  constexpr double kBlockDepth = 24;     // what a block's beginning and end are worth
  constexpr double kEnoughWarps = 16;    // of a multiprocessor, to keep its cores busy
  constexpr double kProductsOfByte = 6;  // a multiprocessor's products while the memory moves a byte for it
  TileChoice best;
  double shortest = 1e300;
  for (const Tile& tile : kTiles) {
    const int64_t tiles =
        cuda::divide_up(size.rows, tile.rows) * cuda::divide_up(size.columns, tile.columns) * size.count;
    for (int shares = 1; shares <= most_shares; ++shares) {
      const int64_t depth = cuda::divide_up(cuda::divide_up(size.depth, shares), depth_unit) * depth_unit;
      const int64_t used = std::max<int64_t>(cuda::divide_up(size.depth, depth), 1);
      if (used != shares) continue;
      const int64_t busiest = cuda::divide_up(tiles * shares, multiprocessors);
      const double warps = static_cast<double>(std::min<int64_t>(busiest, tile.resident) * tile.threads) / 32;
      const double speed = tile.efficiency * std::min(1.0, warps / kEnoughWarps);
      double time =
          static_cast<double>(busiest * tile.rows * tile.columns) * (static_cast<double>(depth) + kBlockDepth) / speed;
      if (shares > 1) {
        time += static_cast<double>(size.rows * size.columns * size.count) * 4 * (2.0 * shares + 1) * kProductsOfByte /
                    multiprocessors * 4 +
                400000;
      }
      if (time < shortest) {
        shortest = time;
        best = {tile.rows, tile.columns, shares, static_cast<int>(depth)};
      }
      if (busiest > 12) break;
    }
  }
  return best;
}

}  // namespace gpunn::cuda_tiled::conv
