// How kernels go through scores x[outer][classes][inner] (common/class_scores.hpp): strip by strip of neighbouring
// positions, or, if inner is 1, in blocks of rows of classes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/class_scores.hpp"
#include "row_blocks.hpp"
#include "simd/class_scores.hpp"
#include "threads/grain.hpp"

namespace gpunn::cpu {

// Positions of a strip: 21 classes of it stay in the first-level cache.
constexpr int64_t kPositionStrip = 256;

// Elements of a block of rows, and so the most rows that it may have.
constexpr int64_t kRowBlock = 2048;

// Adjacent positions in the memory of one outer index.
struct Strip {
  int64_t position = 0;  // of all positions
  int64_t first = 0;     // the element of x of its first class
  int64_t count = 0;
};

// An exponential is worth several plain operations.
inline int64_t strips_per_task(const ClassScores& shape) {
  return rows_per_task(std::min(shape.inner, kPositionStrip) * shape.classes, kGrain / 2);
}

// Calls body(strip, thread) for the first `positions` positions, which end with an outer index.
template <class Body>
void for_each_strip(const ClassScores& shape, int64_t positions, int threads, const Body& body) {
  const int64_t of_outer = divide_up(shape.inner, kPositionStrip);
  const int64_t strips = shape.inner > 0 ? positions / shape.inner * of_outer : 0;
  const int64_t at_once = strips_per_task(shape);
  parallel_for(threads, divide_up(strips, at_once), [&](int64_t task, int thread) {
    for (int64_t s = task * at_once; s < std::min(strips, (task + 1) * at_once); ++s) {
      const int64_t outer = s / of_outer, begin = s % of_outer * kPositionStrip;
      body(Strip{.position = outer * shape.inner + begin,
                 .first = outer * shape.inner * shape.classes + begin,
                 .count = std::min(kPositionStrip, shape.inner - begin)},
           thread);
    }
  });
}

// The rows of classes, in strips of f32 for half precision.
inline RowBlocks blocks_of(const ClassScores& shape, int32_t dtype, int threads) {
  const int64_t block = rows_per_task(shape.classes, kRowBlock);
  return {.rows = shape.outer,
          .size = shape.classes,
          .block = block,
          .strip = dtype == GPUNN_F32 ? 0 : block * shape.classes,
          .threads = threads};
}

}  // namespace gpunn::cpu
