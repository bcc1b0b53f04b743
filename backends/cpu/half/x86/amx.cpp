#include <immintrin.h>

#include "half/x86/half_store.hpp"
#include "tile_registers.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kSumBytes = HalfTile::kColumns * static_cast<int64_t>(sizeof(float));
constexpr int kTileRows = 16;
constexpr int kTileSums = kTileRows * HalfTile::kColumns;

int64_t bytes_of(int64_t numbers) { return numbers * static_cast<int64_t>(sizeof(BFloat16)); }

// The first `count` of registers 0 to 3 have sums, each of a tile of c.
using Sums = float* [4];

void begin_sums(const Sums& c, int count, bool accumulate) {
  if (!accumulate) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, c[0], kSumBytes);
  if (count > 1) _tile_loadd(1, c[1], kSumBytes);
  if (count > 2) _tile_loadd(2, c[2], kSumBytes);
  if (count > 3) _tile_loadd(3, c[3], kSumBytes);
}

void end_sums(const Sums& c, int count) {
  _tile_stored(0, c[0], kSumBytes);
  if (count > 1) _tile_stored(1, c[1], kSumBytes);
  if (count > 2) _tile_stored(2, c[2], kSumBytes);
  if (count > 3) _tile_stored(3, c[3], kSumBytes);
}

// Of two tiles of either factor.
void multiply_wide(const HalfTile& t) {
  const int64_t a_bytes = bytes_of(t.a_stride), b_bytes = bytes_of(t.b_stride);
  const int64_t b_step = t.depth / 2 * t.b_stride;
  const bool two = t.rows > kTileRows;
  const Sums c = {t.c, t.c + 16, t.c + kTileSums, t.c + kTileSums + 16};
  begin_sums(c, two ? 4 : 2, t.accumulate);
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
  end_sums(c, two ? 4 : 2);
}

// Of up to four tiles of a and one of b.
void multiply_narrow(const HalfTile& t) {
  const int64_t a_bytes = bytes_of(t.a_stride), b_bytes = bytes_of(t.b_stride);
  const int64_t b_step = t.depth / 2 * t.b_stride, a_tile = kTileRows * t.a_stride;
  const int tiles = (t.rows + kTileRows - 1) / kTileRows;
  const Sums c = {t.c, t.c + kTileSums, t.c + 2 * kTileSums, t.c + 3 * kTileSums};
  begin_sums(c, tiles, t.accumulate);
  for (int64_t s = 0; s < t.step_count; ++s) {
    const BFloat16* a = t.a + t.steps[s];
    _tile_loadd(7, t.b + s * b_step, b_bytes);
    _tile_loadd(4, a, a_bytes);
    _tile_dpbf16ps(0, 4, 7);
    if (tiles > 1) {
      _tile_loadd(5, a + a_tile, a_bytes);
      _tile_dpbf16ps(1, 5, 7);
    }
    if (tiles > 2) {
      _tile_loadd(4, a + 2 * a_tile, a_bytes);
      _tile_dpbf16ps(2, 4, 7);
    }
    if (tiles > 3) {
      _tile_loadd(5, a + 3 * a_tile, a_bytes);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  end_sums(c, tiles);
}

void multiply_tiles(const HalfTile& t) {
  if (t.columns > HalfTile::kHalfColumns) return multiply_wide(t);
  multiply_narrow(t);
}

void begin_half_tiles(int depth) { begin_tiles_of(depth * static_cast<int>(sizeof(BFloat16))); }

}  // namespace

extern const HalfTileKernels amx_tiles;
const HalfTileKernels amx_tiles{"amx_bf16",   begin_half_tiles,     end_tiles,     multiply_tiles, store_half,
                                pair_up_half, transpose_pairs_half, transpose_half};

}  // namespace gpunn::cpu
