// UNIFORM, NORMAL, PERMUTATION and DROPOUT, by the counter layout of <gpunn/random.h>.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// n elements drawn at the counter's value.
struct Draw {
  int64_t n = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
  float low = 0.0F;  // finite, as is high
  float high = 0.0F;
};

// UNIFORM and NORMAL.
Draw draw_of(const OpDesc& desc);

// n < 2^31; low and high mean nothing.
Draw permutation_of(const OpDesc& desc);

// y = word >> 8 < threshold ? 0 : factor * x.
struct Dropout {
  int64_t n = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint32_t threshold = 0;
  float factor = 0.0F;
};

Dropout dropout_of(const OpDesc& desc);

}  // namespace gpunn::backends
