// QUANTIZE, DEQUANTIZE, FAKE_QUANTIZE and QUANTIZE_FILTER.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// A stored number q represents (q - zero_point) * scale.
struct Quantize {
  int64_t n = 0;
  float scale = 1;
  float zero_point = 0;
};

inline Quantize quantize_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_quantize_attrs>();
  return {.n = plugin::element_count(desc.output(0)),
          .scale = attrs.scale,
          .zero_point = static_cast<float>(attrs.zero_point)};
}

struct Filters {
  int64_t filters = 0;
  int64_t size = 0;  // of one
};

inline Filters filters_of(const OpDesc& desc) {
  const int64_t filters = desc.input(0).dim[0];
  return {.filters = filters, .size = plugin::element_count(desc.input(0)) / filters};
}

}  // namespace gpunn::backends
