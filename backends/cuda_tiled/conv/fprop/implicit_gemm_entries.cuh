// The entries of an implicit GEMM, for the forward pass or the data gradient. An entry is a tap of the filter and a
// channel that is summed over. Each class of pixels has its own entries.
#pragma once

#include <climits>
#include <cstdint>

#include <cuda_runtime.h>

#include "conv/tile_choice.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::conv {

inline constexpr int kMostClasses = 16;
inline constexpr int kNowhere = INT_MIN / 2;  // the row of an entry that isn't one

struct Axis {
  int sources;
  int results;
  int taps;
  int stride;
  int pad;
  int dilation;
  bool turned;  // results are what the forward reads

  __host__ __device__ int classes() const { return turned ? stride : 1; }
  __host__ __device__ int results_of(int residue) const {
    return results > residue ? cuda::divide_up(results - residue, classes()) : 0;
  }
  // The source position of the class's i-th result, for an entry that adds 0.
  __device__ int source_of(int i) const { return turned ? i : i * stride - pad; }
  __device__ int added_by(int tap, int residue) const {
    return turned ? (residue + pad - tap * dilation) / stride : tap * dilation;
  }
  // The residue whose class the tap belongs to.
  __host__ __device__ int residue_of(int tap) const {
    if (!turned) return 0;
    const int rest = (tap * dilation - pad) % stride;
    return rest < 0 ? rest + stride : rest;
  }
  // The number of taps before `end` that belong to the class.
  __host__ __device__ int taps_of(int residue, int end) const {
    int count = 0;
    for (int tap = 0; tap < end; ++tap) count += static_cast<int>(residue_of(tap) == residue);
    return count;
  }
};

struct Plan {
  int batch;
  int groups;
  int reduced;             // channels of the source in a group
  int results;             // channels of the result in a group
  int padded_results = 0;  // in the reordered filters
  Axis rows;
  Axis columns;
  int begin[kMostClasses + 1] = {};  // the entries of each class
  bool alone = false;                // only the first class has entries: its blocks write the zeros of the others too
  TileChoice tile = {};

  __host__ __device__ int classes() const { return rows.classes() * columns.classes(); }
  __host__ __device__ int running_classes() const { return alone ? 1 : classes(); }
  __host__ __device__ int entries() const { return begin[classes()]; }
  int64_t size() const { return int64_t{batch} * groups * results * rows.results * columns.results; }
};

// The row and column that an entry adds to a pixel's source, and the offset in memory of the two and the channel.
struct Entry {
  int offset;
  int row;
  int column;
  int unused;
};

// The entry of a tap and a channel.
__device__ inline int entry_index(const Plan& plan, int tap, int channel) {
  const int r = tap / plan.columns.taps;
  const int s = tap % plan.columns.taps;
  const int row_class = plan.rows.residue_of(r);
  const int column_class = plan.columns.residue_of(s);
  const int class_columns = plan.columns.taps_of(column_class, plan.columns.taps);
  const int place = plan.rows.taps_of(row_class, r) * class_columns + plan.columns.taps_of(column_class, s);
  return plan.begin[row_class * plan.columns.classes() + column_class] + place * plan.reduced + channel;
}

__device__ inline Entry entry_of(const Plan& plan, int tap, int channel) {
  const int r = tap / plan.columns.taps;
  const int s = tap % plan.columns.taps;
  const int row = plan.rows.added_by(r, plan.rows.residue_of(r));
  const int column = plan.columns.added_by(s, plan.columns.residue_of(s));
  return {(channel * plan.rows.sources + row) * plan.columns.sources + column, row, column, 0};
}

}  // namespace gpunn::cuda_tiled::conv
