#include "common/random.hpp"

#include <gpunn/random.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpunn::backends {
namespace {

Draw drawn(const OpDesc& desc, int32_t dtype) {
  require_tensors(desc, 1, 1, 1);
  const auto attrs = require_attrs<gpunn_random_attrs>(desc);
  const gpunn_tensor& y = desc.output(0);
  require_scalar(desc.input(0), GPUNN_I64, "counter");
  require_packed(y, dtype, "y");
  require(attrs.rank == y.rank, "y must have the rank that the attributes name");
  gpunn_tensor wanted = y;
  std::copy(attrs.dim, attrs.dim + attrs.rank, wanted.dim);
  require_same_shape(y, wanted, "y and the attributes");
  return {
      .n = plugin::element_count(y), .seed = attrs.seed, .stream = attrs.stream, .low = attrs.low, .high = attrs.high};
}

}  // namespace

Draw draw_of(const OpDesc& desc) {
  const Draw draw = drawn(desc, GPUNN_F32);
  require(std::isfinite(draw.low) && std::isfinite(draw.high), "low and high must be finite");
  return draw;
}

Draw permutation_of(const OpDesc& desc) {
  const Draw draw = drawn(desc, GPUNN_I32);
  require(desc.output(0).rank == 1, "y must be [n]");
  require(draw.n <= std::numeric_limits<int32_t>::max(), "y must have fewer than 2^31 elements");
  return draw;
}

Dropout dropout_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_dropout_attrs>(desc);
  require(attrs.p >= 0.0F && attrs.p < 1.0F, "p must be 0 to below 1");
  require_packed(desc.input(0), GPUNN_F32, "x");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require_same_shape(desc.input(0), desc.output(0), "x and y");
  require_scalar(desc.input(1), GPUNN_I64, "counter");
  return {.n = plugin::element_count(desc.input(0)),
          .seed = attrs.seed,
          .stream = attrs.stream,
          .threshold = gpunn_dropout_threshold(attrs.p),
          .factor = 1.0F / (1.0F - attrs.p)};
}

}  // namespace gpunn::backends
