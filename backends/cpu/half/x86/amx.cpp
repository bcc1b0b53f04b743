#include <cstring>

#include <immintrin.h>

#include "half/x86/half_store.hpp"
#include "tile_registers.hpp"

namespace gpunn::cpu {
namespace {

// Four tiles of sums, of two tiles of either factor.
void multiply_tiles(const HalfTile& t) {
  constexpr int64_t kPanelBytes = HalfTile::kColumns * 2 * static_cast<int64_t>(sizeof(BFloat16));
  constexpr int64_t kSumBytes = HalfTile::kColumns * static_cast<int64_t>(sizeof(float));
  const int64_t a_bytes = t.a_stride * static_cast<int64_t>(sizeof(BFloat16));
  const BFloat16* low = t.a + 16 * t.a_stride;
  const bool two = t.rows > 16;
  float* lower = t.c + 16 * HalfTile::kColumns;
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
  for (int64_t p = 0; p < t.k; p += HalfTile::kDepth) {
    const BFloat16* b = t.b + p * HalfTile::kColumns;
    _tile_loadd(6, b, kPanelBytes);
    _tile_loadd(7, b + HalfTile::kColumns, kPanelBytes);
    _tile_loadd(4, t.a + p, a_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
      _tile_loadd(5, low + p, a_bytes);
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

}  // namespace

extern const HalfTileKernels amx_tiles;
const HalfTileKernels amx_tiles{"amx_bf16", begin_tiles,     end_tiles,     multiply_tiles,
                                store_half, interleave_half, transpose_half};

}  // namespace gpunn::cpu
