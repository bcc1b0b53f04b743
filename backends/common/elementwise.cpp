#include "common/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpunn::backends {
namespace {

template <class T>
bool holds(double value) {
  // The upper bound of int64 is not a double; the next double above is, and is out.
  return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
         value < std::ldexp(1.0, std::numeric_limits<T>::digits) && value == std::trunc(value);
}

}  // namespace

int64_t map_size(const OpDesc& desc, std::size_t inputs) {
  require_tensors(desc, inputs, inputs, 1);
  require_packed(desc.output(0), GPUNN_F32, "the output");
  for (std::size_t i = 0; i < inputs; ++i) {
    require_packed(desc.input(i), GPUNN_F32, "an input");
    require_same_shape(desc.input(i), desc.output(0), "inputs and output");
  }
  return plugin::element_count(desc.output(0));
}

Scale scale_of(const OpDesc& desc) {
  return {.n = map_size(desc, 1), .factor = require_attrs<gpunn_scale_attrs>(desc).factor};
}

Axpby axpby_of(const OpDesc& desc) {
  const int64_t n = map_size(desc, 2);
  const auto attrs = require_attrs<gpunn_axpby_attrs>(desc);
  return {.n = n, .alpha = attrs.alpha, .beta = attrs.beta};
}

Clamp clamp_of(const OpDesc& desc) {
  const int64_t n = map_size(desc, 1);
  const auto attrs = require_attrs<gpunn_clamp_attrs>(desc);
  require(attrs.low <= attrs.high, "low must not be above high");
  return {.n = n, .low = attrs.low, .high = attrs.high};
}

Fill fill_of(const OpDesc& desc) {
  require_tensors(desc, 0, 0, 1);
  const auto attrs = require_attrs<gpunn_fill_attrs>(desc);
  const gpunn_tensor& y = desc.output(0);
  require_packed(y, attrs.dtype, "y");
  gpunn_tensor wanted = y;
  require(attrs.rank == y.rank, "y must have the rank that the attributes name");
  std::copy(attrs.dim, attrs.dim + attrs.rank, wanted.dim);
  require_same_shape(y, wanted, "y and the attributes");
  switch (y.dtype) {
    case GPUNN_F32:
    case GPUNN_F64:
      break;
    case GPUNN_I32:
      require(holds<int32_t>(attrs.value), "the value does not fit i32");
      break;
    case GPUNN_I64:
      require(holds<int64_t>(attrs.value), "the value does not fit i64");
      break;
    case GPUNN_U8:
      require(holds<uint8_t>(attrs.value), "the value does not fit u8");
      break;
    default:
      throw Refusal(std::string("does not fill ") + dtype_name(y.dtype));
  }
  return {.n = plugin::element_count(y), .dtype = y.dtype, .value = attrs.value};
}

}  // namespace gpunn::backends
