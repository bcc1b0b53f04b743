// Element-wise ops without broadcasting, and FILL.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/requirements.hpp"

namespace gpunn::backends {

// The number of elements of y = f(x, ...). Every input must have y's shape; broadcasting is not supported here.
inline int64_t map_size(const OpDesc& desc) {
  const gpunn_tensor& y = desc.output(0);
  for (std::size_t i = 0; i < desc.inputs(); ++i) {
    const gpunn_tensor& x = desc.input(i);
    require(x.rank == y.rank && std::equal(x.dim, x.dim + x.rank, y.dim), "inputs and output must have one shape");
  }
  return plugin::element_count(y);
}

struct Fill {
  int64_t n = 0;
  int32_t dtype = 0;  // f32, f64, i32, i64 or u8, and the value fits
  double value = 0.0;
};

namespace detail {

template <class T>
void require_integer(double value, const char* otherwise) {
  // The upper bound of int64 is not a double. The next double above it is, and is out of range.
  require(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
              value < std::ldexp(1.0, std::numeric_limits<T>::digits) && value == std::trunc(value),
          otherwise);
}

}  // namespace detail

inline Fill fill_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_fill_attrs>();
  if (attrs.dtype == GPUNN_I32) detail::require_integer<int32_t>(attrs.value, "the value does not fit i32");
  if (attrs.dtype == GPUNN_I64) detail::require_integer<int64_t>(attrs.value, "the value does not fit i64");
  if (attrs.dtype == GPUNN_U8) detail::require_integer<uint8_t>(attrs.value, "the value does not fit u8");
  require(attrs.dtype != GPUNN_F16 && attrs.dtype != GPUNN_BF16, "does not fill half precision");
  return {.n = plugin::element_count(desc.output(0)), .dtype = attrs.dtype, .value = attrs.value};
}

}  // namespace gpunn::backends
