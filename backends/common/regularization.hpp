// CLIP_NORM and L1_GRADIENT over flat vectors.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct ClipNorm {
  gpunn_clip_norm_attrs attrs{};
  int64_t n = 0;
};

ClipNorm clip_norm_of(const OpDesc& desc);

struct L1Gradient {
  float weight = 0.0F;
  int64_t decayed = 0;  // of the n elements; those behind it stay as they are
};

L1Gradient l1_gradient_of(const OpDesc& desc);

}  // namespace gpunn::backends
