// Products of bf16 matrices by the processor's instructions: AMX's tiles, or the dot products of AVX-512.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>
#include <vector>

namespace gpunn::cpu {

// c[i, j] (+)= the sum over p of a[i * a_stride + p] * b[p, j], in f32. b is packed: [p / 2][j][p % 2].
struct HalfTile {
  static constexpr int kRows = 32;
  static constexpr int kColumns = 32;
  static constexpr int64_t kDepth = 32;  // k is a multiple

  int64_t k;
  const BFloat16* a;  // readable up to a multiple of 16 rows
  int64_t a_stride;
  const BFloat16* b;
  float* c;  // [kRows][kColumns], of which rows are written up to a multiple of 16
  int rows;  // up to kRows
  bool accumulate;
};

struct HalfTileKernels {
  const char* name;
  // Around the tiles of a task.
  void (*begin)();
  void (*end)();
  void (*multiply)(const HalfTile& tile);
  // y[i][j] = c[i, j] plus bias[j] (may be null), through ReLU; columns up to HalfTile::kColumns.
  void (*store)(const float* c, int rows, int columns, const float* bias, bool relu, BFloat16* const* y);
  // Two rows as pairs, to[j][0] = first[j] and to[j][1] = second[j] for j < count, and zeros up to HalfTile::kColumns.
  void (*interleave)(const BFloat16* first, const BFloat16* second, int count, BFloat16* to);
  // to[i * to_stride + p] = from[p * from_stride + i], i < count up to 16, p < 32; `to` is written for 16 i.
  void (*transpose)(const BFloat16* from, int64_t from_stride, int count, BFloat16* to, int64_t to_stride);
};

// What this build has and this machine runs, best last; none where GPUNN_CPU_ISA says less than avx512. The first call
// asks the system for the use of tiles.
std::vector<const HalfTileKernels*> usable_half_tiles();

}  // namespace gpunn::cpu
