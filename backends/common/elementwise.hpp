// ADD, SCALE, AXPBY, CLAMP and FILL.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// y = f(x, ...) over n elements, all f32, packed and of one shape.
int64_t map_size(const OpDesc& desc, std::size_t inputs);

struct Scale {
  int64_t n = 0;
  float factor = 0.0F;
};

Scale scale_of(const OpDesc& desc);

struct Axpby {
  int64_t n = 0;
  float alpha = 0.0F;
  float beta = 0.0F;
};

Axpby axpby_of(const OpDesc& desc);

struct Clamp {
  int64_t n = 0;
  float low = 0.0F;
  float high = 0.0F;  // not below low, and neither is NaN
};

Clamp clamp_of(const OpDesc& desc);

struct Fill {
  int64_t n = 0;
  int32_t dtype = 0;  // f32, f64, i32, i64 or u8, and the value fits
  double value = 0.0;
};

Fill fill_of(const OpDesc& desc);

}  // namespace gpunn::backends
