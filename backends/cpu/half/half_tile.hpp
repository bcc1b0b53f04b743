// Products of bf16 matrices by the processor's instructions: AMX's tiles, or the dot products of AVX-512.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>
#include <vector>

namespace gpunn::cpu {

// c[i, j] (+)= the sum over steps s and p < depth of a[i * a_stride + steps[s] + p] * b[s, p, j], in f32. b has pairs
// of rows: b[s, p, j] is at b[(s * depth / 2 + p / 2) * b_stride + j * 2 + p % 2], from the 16th column on at b_right
// of column 16.
struct HalfTile {
  static constexpr int kRows = 32;        // at most
  static constexpr int kNarrowRows = 64;  // at most, of up to 16 columns
  static constexpr int kColumns = 32;
  static constexpr int kHalfColumns = 16;  // from which on they are at b_right
  static constexpr int kDepth = 32;        // at most

  const int64_t* steps;
  int64_t step_count;
  int depth;          // of a step, even; the same that begin() was given
  const BFloat16* a;  // readable up to a multiple of 16 rows
  int64_t a_stride;
  const BFloat16* b;
  const BFloat16* b_right;
  int64_t b_stride;
  float* c;  // [rows][kColumns], written up to a multiple of 16 rows
  int rows;
  int columns;
  bool accumulate;
};

inline constexpr int64_t kHalfTasks = 16;        // of an op, at least, where there is work for them
inline constexpr int64_t kHalfLineNumbers = 32;  // of a cache line

struct HalfTileKernels {
  const char* name;
  // Around the tiles of a task, whose steps have this depth.
  void (*begin)(int depth);
  void (*end)();
  void (*multiply)(const HalfTile& tile);
  // y[i][j] = c[i, j] plus bias[j] (may be null), through ReLU, for each y[i] that is not null; columns up to
  // HalfTile::kColumns.
  void (*store)(const float* c, int rows, int columns, const float* bias, bool relu, BFloat16* const* y);
  // Rows in pairs: to[i * to_stride + 2 * j + n] = from[(2 * i + n) * stride + j] for i < pairs, j < columns, n < 2,
  // with zeros up to a multiple of 16 columns.
  void (*pair_up)(const BFloat16* from, int64_t stride, int64_t pairs, int64_t columns, BFloat16* to,
                  int64_t to_stride);
  // Columns in pairs: to[p * to_stride + 2 * i + n] = from[i * from_stride + 2 * p + n] for i < count, p < pairs, n <
  // 2; count and pairs up to 16, with zeros up to 16 i.
  void (*transpose_pairs)(const BFloat16* from, int64_t from_stride, int count, int pairs, BFloat16* to,
                          int64_t to_stride);
  // to[i * to_stride + p] = from[p * from_stride + i], i < count up to 16, p < 32; `to` is written for 16 i.
  void (*transpose)(const BFloat16* from, int64_t from_stride, int count, BFloat16* to, int64_t to_stride);
};

// What this build has and this machine runs, best last; none where GPUNN_CPU_ISA says less than avx512. The first call
// asks the system for the use of tiles.
std::vector<const HalfTileKernels*> usable_half_tiles();

}  // namespace gpunn::cpu
