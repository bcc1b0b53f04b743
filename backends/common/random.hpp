// UNIFORM, NORMAL, PERMUTATION and DROPOUT, by the counter layout of <gpunn/random.h>.
#pragma once

#include <gpunn/random.h>

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

// PERMUTATION needs n < 2^31 and ignores low and high.
inline Draw draw_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_random_attrs>();
  return {.n = plugin::element_count(desc.output(0)),
          .seed = attrs.seed,
          .stream = attrs.stream,
          .low = attrs.low,
          .high = attrs.high};
}

// y = word >> 8 < threshold ? 0 : factor * x.
struct Dropout {
  int64_t n = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint32_t threshold = 0;
  float factor = 0.0F;
};

inline Dropout dropout_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_dropout_attrs>();
  return {.n = plugin::element_count(desc.input(0)),
          .seed = attrs.seed,
          .stream = attrs.stream,
          .threshold = gpunn_dropout_threshold(attrs.p),
          .factor = 1.0F / (1.0F - attrs.p)};
}

}  // namespace gpunn::backends
