#include <immintrin.h>

#include "simd/int8.hpp"

namespace gpunn::cpu {

void multiply_vnni512(const Int8Tile& tile);

namespace {

constexpr int kTileRows = 16, kTileColumns = 16;  // of sums
constexpr int64_t kTileDepth = 64;                // terms that one instruction multiplies
constexpr int64_t kPanelBytes = Int8Tile::kColumns * 4;
constexpr int64_t kSumBytes = Int8Tile::kColumns * static_cast<int64_t>(sizeof(int32_t));

// Rows [0, 16), and [16, 32) where two are wanted: a tile of sums for each half of the columns. Each row of sums begins
// with `first`, which a stride of 0 reads again and again.
template <bool two>
void multiply_tiles(const Int8Tile& t) {
  _tile_loadd(0, t.first, 0);
  _tile_loadd(1, t.first + kTileColumns, 0);
  if constexpr (two) {
    _tile_loadd(2, t.first, 0);
    _tile_loadd(3, t.first + kTileColumns, 0);
  }
  const uint8_t* const lower = t.a + kTileRows * t.a_stride;
  for (int64_t p = 0; p < t.k; p += kTileDepth) {
    const int8_t* const b = t.b + p * Int8Tile::kColumns;
    _tile_loadd(6, b, kPanelBytes);
    _tile_loadd(7, b + kPanelBytes / 2, kPanelBytes);
    _tile_loadd(4, t.a + p, t.a_stride);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if constexpr (two) {
      _tile_loadd(5, lower + p, t.a_stride);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
  _tile_stored(0, t.sums, kSumBytes);
  _tile_stored(1, t.sums + kTileColumns, kSumBytes);
  if constexpr (two) {
    int32_t* const below = t.sums + kTileRows * Int8Tile::kColumns;
    _tile_stored(2, below, kSumBytes);
    _tile_stored(3, below + kTileColumns, kSumBytes);
  }
}

}  // namespace

// Whole tiles of rows; those that are left would read behind the end of `a`.
void multiply_amx(const Int8Tile& tile);
void multiply_amx(const Int8Tile& tile) {
  constexpr int kAtOnce = Int8Tile::kVectorRows;
  const int whole = tile.rows / kTileRows * kTileRows;
  if (whole == 2 * kTileRows) {
    multiply_tiles<true>(tile);
  } else if (whole == kTileRows) {
    multiply_tiles<false>(tile);
  }
  Int8Tile rest = tile;
  for (int row = whole; row < tile.rows; row += kAtOnce) {
    rest.a = tile.a + row * tile.a_stride;
    rest.sums = tile.sums + row * Int8Tile::kColumns;
    rest.rows = tile.rows - row < kAtOnce ? tile.rows - row : kAtOnce;
    multiply_vnni512(rest);
  }
}

}  // namespace gpunn::cpu
