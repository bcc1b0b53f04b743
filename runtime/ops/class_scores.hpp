#pragma once

#include <cstdint>

#include "ops/op.hpp"

// Code shared by the ops on scores x[N,C,...] of C classes at each position, with labels [N,...].
namespace gpunn::ops {

struct ClassScores {
  int64_t rows, classes;
  int64_t positions = 1;  // of one row

  explicit ClassScores(const Shape& x) : rows(x.at(0)), classes(x.at(1)) {
    for (std::size_t d = 2; d < x.size(); ++d) positions *= x[d];
  }

  // The element of class c at position i of all positions.
  std::size_t place(int64_t i, int64_t c) const {
    return at((i / positions * classes + c) * positions + i % positions);
  }
};

// x[N,C,...] without C.
inline Shape label_shape(Shape x) {
  x.erase(x.begin() + 1);
  return x;
}

// One class, odd numbers of classes and positions, more classes than a block has threads, and nothing. The small ones
// have several positions in a row, as the sizes that are derived from them then have.
inline const std::vector<Shape> kScoreShapes = {
    {1, 1},      {1, 3, 4},     {3, 10},        {9, 17},        {128, 10},       {7, 1000},
    {3, 1031},   {4, 4096},     {2, 2053},      {0, 10},        {5, 3, 0},       {2, 1, 4, 4},
    {3, 21, 33}, {2, 21, 5, 7}, {2, 21, 32, 8}, {2, 150, 6, 6}, {1, 1000, 3, 5}, {2, 3, 2, 3, 2}};

// Classes, sometimes the label that counts nowhere.
inline InputSpec score_labels(const Shape& x, int32_t ignored) {
  return i32(label_shape(x), sometimes(ignored, 6, integers(0, x.at(1) - 1)));
}

// The scores of a network for segmentation. A function: families ask for it before constants are made.
inline Shape typical_scores() { return {8, 21, 128, 128}; }

inline void require_scores(const Written& r) {
  if (r.sizes.size() < 2 || r.sizes[1] < 1) bad(r, "N,C and further dimensions");
}

}  // namespace gpunn::ops
