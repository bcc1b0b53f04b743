#include "simd/gemm.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

// As many accumulators as the registers hold beside two vectors of b and one of a.
#if defined(__AVX512F__)
constexpr int kTileRows = 14;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kLanes;

// Everything that the unrolled end of a tile leaves out: strides between columns, partial vectors, the epilogue.
static void finish_tile(const GemmTile& t, float* sums, int width) {
  for (int i = 0; i < t.rows; ++i) {
    float* sum = sums + static_cast<int64_t>(i) * width;
    float* c = t.c + i * t.c_row;
    if (t.c_column != 1 && t.accumulate) {
      for (int j = 0; j < t.columns; ++j) sum[j] += c[j * t.c_column];
    }
    for (int j = 0; j < t.columns; j += kLanes) {
      const int n = t.columns - j < kLanes ? t.columns - j : kLanes;
      Vec value = load(sum + j);
      if (t.c_column == 1 && t.accumulate) value += load_first(c + j, n);
      if (t.row_bias != nullptr) value += broadcast(t.row_bias[i]);
      if (t.column_bias != nullptr) value += load_first(t.column_bias + j, n);
      if (t.relu) value = max_or_nan(value, zero());
      if (t.c_column == 1) {
        store_first(c + j, value, n);
      } else {
        store(sum + j, value);
      }
    }
    if (t.c_column != 1) {
      for (int j = 0; j < t.columns; ++j) c[j * t.c_column] = sum[j];
    }
  }
}

// One p: b at bv, a's row i at group[i / 3][(i % 3) * a_stride], which takes fewer registers than a pointer a row.
template <int rows, int vectors, int steps>
static GPUNN_ALWAYS_INLINE void add_steps(Vec (&sum)[rows][vectors], const float* (&group)[(rows + 2) / 3],
                                          int64_t a_stride, const float*& b, int64_t b_stride) {
#pragma GCC unroll 4
  for (int step = 0; step < steps; ++step) {
    Vec bv[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) bv[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vec av = broadcast(group[i / 3][(i % 3) * a_stride + step]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[i][v] += av * bv[v];
    }
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int g = 0; g < (rows + 2) / 3; ++g) group[g] += steps;
}

template <int rows, int vectors, bool in_rows>
static void tile(const GemmTile& t) {
  Vec sum[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[i][v] = zero();
  }
  // c comes from afar while the products are summed.
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) __builtin_prefetch(t.c + i * t.c_row + v * kLanes, 1);
  }
  const float* a = t.a;
  const float* b = t.b;
  const int64_t a_stride = t.a_stride;
  const int64_t b_stride = t.b_stride;
  int64_t p = t.k;
  if constexpr (in_rows) {
    const float* group[(rows + 2) / 3];
#pragma GCC unroll 8
    for (int g = 0; g < (rows + 2) / 3; ++g) group[g] = a + 3 * g * a_stride;
    for (; p >= 4; p -= 4) add_steps<rows, vectors, 4>(sum, group, a_stride, b, b_stride);
    for (; p > 0; --p) add_steps<rows, vectors, 1>(sum, group, a_stride, b, b_stride);
  }
  for (; p > 0; --p) {
    Vec bv[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) bv[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vec av = broadcast(a[i]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[i][v] += av * bv[v];
    }
    a += a_stride;
    b += b_stride;
  }
  const bool plain =
      t.c_column == 1 && t.columns == vectors * kLanes && t.row_bias == nullptr && t.column_bias == nullptr && !t.relu;
  if (plain && !t.accumulate) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store(t.c + i * t.c_row + v * kLanes, sum[i][v]);
    }
  } else if (plain) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      float* c = t.c + i * t.c_row;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store(c + v * kLanes, load(c + v * kLanes) + sum[i][v]);
    }
  } else {
    float sums[rows * vectors * kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store(sums + (i * vectors + v) * kLanes, sum[i][v]);
    }
    finish_tile(t, sums, vectors * kLanes);
  }
}

template <int rows, bool in_rows>
static void tile_of_rows(const GemmTile& t) {
  if (t.rows == rows) {
    if (t.columns <= kLanes) {
      tile<rows, 1, in_rows>(t);
    } else {
      tile<rows, 2, in_rows>(t);
    }
  } else if constexpr (rows > 1) {
    tile_of_rows<rows - 1, in_rows>(t);
  }
}

static void any_tile(const GemmTile& t) { tile_of_rows<kTileRows, false>(t); }
static void any_rows_tile(const GemmTile& t) { tile_of_rows<kTileRows, true>(t); }

// Rows of p are contiguous in the source: copied.
static void pack_rows(const float* from, int64_t k_stride, int64_t count, int64_t width, int64_t k, float* to) {
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t i = 0; i < width; i += kLanes) {
      const int64_t left = count - i;
      store(to + i, left >= kLanes ? load(from + i) : left > 0 ? load_first(from + i, static_cast<int>(left)) : zero());
    }
    from += k_stride;
    to += width;
  }
}

// Rows of i are contiguous in the source: transposed. Where width is not a multiple of the lanes it is smaller than
// them, and each store's surplus is overwritten by the next.
static void pack_columns(const float* from, int64_t index_stride, int64_t count, int64_t width, int64_t k, float* to) {
  for (int64_t i = 0; i < width; i += kLanes) {
    for (int64_t p = 0; p < k; p += kLanes) {
      const int steps = k - p < kLanes ? static_cast<int>(k - p) : kLanes;
      const float* block = from + i * index_stride + p;
      Vec rows[kLanes];
      if (steps == kLanes && i + kLanes <= count) {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) rows[r] = load(block + r * index_stride);
      } else {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) {
          rows[r] = i + r < count ? load_first(block + r * index_stride, steps) : zero();
        }
      }
      transpose(rows);
      float* out = to + p * width + i;
      if (steps == kLanes) {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) store(out + r * width, rows[r]);
      } else {
        for (int r = 0; r < steps; ++r) store(out + r * width, rows[r]);
      }
    }
  }
}

static void pack(const float* from, int64_t index_stride, int64_t k_stride, int64_t count, int64_t width, int64_t k,
                 float* to) {
  if (index_stride == 1) {
    pack_rows(from, k_stride, count, width, k, to);
  } else {
    pack_columns(from, index_stride, count, width, k, to);
  }
}

static float dot(const float* a, const float* b, int64_t k) {
  Vec sum[4] = {zero(), zero(), zero(), zero()};
  int64_t p = 0;
  for (; p + 4 * kLanes <= k; p += 4 * kLanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] += load(a + p + v * kLanes) * load(b + p + v * kLanes);
  }
  for (; p + kLanes <= k; p += kLanes) sum[0] += load(a + p) * load(b + p);
  if (p < k) {
    const int n = static_cast<int>(k - p);
    sum[1] += load_first(a + p, n) * load_first(b + p, n);
  }
  return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

constinit const GemmKernels gemm_kernels{kLanes, kTileRows, kTileColumns, any_tile, any_rows_tile, pack, dot};

}  // namespace gpunn::cpu::GPUNN_ISA
