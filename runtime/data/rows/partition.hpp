#pragma once

#include <gpunn/data.hpp>

#include <cstdint>

namespace gpunn::data {

struct Share {
  double fraction = 0;   // at least 0 and below 1
  bool stratify = true;  // the same fraction of each class, to a row; of no effect where there are none
  int64_t classes = 0;
  uint64_t seed = 1;
  uint64_t stream = 0;  // of random numbers: two shares of one set are drawn from different ones
};

// Takes a random share of the rows out of `split`, and returns them. Both keep the order of their rows. The share is
// fraction * rows, rounded, and each class gives its part of it. A class with a single row keeps it.
Split take_share(Split& split, const Share& share);

}  // namespace gpunn::data
