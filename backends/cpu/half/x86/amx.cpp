#include <immintrin.h>

#include "half/x86/half_store.hpp"
#include "tile_registers.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kSumBytes = HalfTile::kColumns * static_cast<int64_t>(sizeof(float));
constexpr int kTileRows = 16;
constexpr int kTileSums = kTileRows * HalfTile::kColumns;

int64_t bytes_of(int64_t numbers) { return numbers * static_cast<int64_t>(sizeof(BFloat16)); }

// Four tiles of sums, of two tiles of either factor.
void multiply_wide(const HalfTile& t) {
  const int64_t a_bytes = bytes_of(t.a_stride), b_bytes = bytes_of(t.b_stride);
  const int64_t b_step = t.depth / 2 * t.b_stride;
  const bool two = t.rows > kTileRows;
  float* lower = t.c + kTileSums;
  if (t.accumulate) {
    _tile_loadd(0, t.c, kSumBytes);
    _tile_loadd(1, t.c + 16, kSumBytes);
    if (two) {
      _tile_loadd(2, lower, kSumBytes);
      _tile_loadd(3, lower + 16, kSumBytes);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < t.step_count; ++s) {
    const BFloat16* a = t.a + t.steps[s];
    _tile_loadd(6, t.b + s * b_step, b_bytes);
    _tile_loadd(4, a, a_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, t.b_right + s * b_step, b_bytes);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
      _tile_loadd(5, a + kTileRows * t.a_stride, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, t.c, kSumBytes);
  _tile_stored(1, t.c + 16, kSumBytes);
  if (!two) return;
  _tile_stored(2, lower, kSumBytes);
  _tile_stored(3, lower + 16, kSumBytes);
}

// Up to four tiles of sums, of one tile of b.
template <int kTiles>
void multiply_narrow(const HalfTile& t) {
  const int64_t a_bytes = bytes_of(t.a_stride), b_bytes = bytes_of(t.b_stride);
  const int64_t b_step = t.depth / 2 * t.b_stride, a_tile = kTileRows * t.a_stride;
  if (t.accumulate) {
    _tile_loadd(0, t.c, kSumBytes);
    if constexpr (kTiles > 1) _tile_loadd(1, t.c + kTileSums, kSumBytes);
    if constexpr (kTiles > 2) _tile_loadd(2, t.c + 2 * kTileSums, kSumBytes);
    if constexpr (kTiles > 3) _tile_loadd(3, t.c + 3 * kTileSums, kSumBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < t.step_count; ++s) {
    const BFloat16* a = t.a + t.steps[s];
    _tile_loadd(7, t.b + s * b_step, b_bytes);
    _tile_loadd(4, a, a_bytes);
    _tile_dpbf16ps(0, 4, 7);
    if constexpr (kTiles > 1) {
      _tile_loadd(5, a + a_tile, a_bytes);
      _tile_dpbf16ps(1, 5, 7);
    }
    if constexpr (kTiles > 2) {
      _tile_loadd(4, a + 2 * a_tile, a_bytes);
      _tile_dpbf16ps(2, 4, 7);
    }
    if constexpr (kTiles > 3) {
      _tile_loadd(5, a + 3 * a_tile, a_bytes);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, t.c, kSumBytes);
  if constexpr (kTiles > 1) _tile_stored(1, t.c + kTileSums, kSumBytes);
  if constexpr (kTiles > 2) _tile_stored(2, t.c + 2 * kTileSums, kSumBytes);
  if constexpr (kTiles > 3) _tile_stored(3, t.c + 3 * kTileSums, kSumBytes);
}

void multiply_tiles(const HalfTile& t) {
  if (t.columns > 16) return multiply_wide(t);
  switch ((t.rows + kTileRows - 1) / kTileRows) {
    case 1:
      return multiply_narrow<1>(t);
    case 2:
      return multiply_narrow<2>(t);
    case 3:
      return multiply_narrow<3>(t);
    default:
      return multiply_narrow<4>(t);
  }
}

void begin_half_tiles(int depth) { begin_tiles_of(depth * static_cast<int>(sizeof(BFloat16))); }

}  // namespace

extern const HalfTileKernels amx_tiles;
const HalfTileKernels amx_tiles{"amx_bf16",   begin_half_tiles,     end_tiles,     multiply_tiles, store_half,
                                pair_up_half, transpose_pairs_half, transpose_half};

}  // namespace gpunn::cpu
