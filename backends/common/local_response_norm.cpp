#include "common/local_response_norm.hpp"

namespace gpunn::backends {
namespace {

LocalResponse response_shape(const OpDesc& desc, const gpunn_tensor& x, const gpunn_tensor& y) {
  const auto attrs = require_attrs<gpunn_local_response_norm_attrs>(desc);
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y and dx");
  require(x.rank >= 2, "x must be [N,C,...]");
  require_same_shape(x, y, "x and y, or dx");
  require(attrs.size >= 1, "size must be at least 1");
  require(attrs.alpha >= 0, "alpha must not be negative");
  require(attrs.k > 0, "k must be positive");
  LocalResponse shape;
  shape.rows = x.dim[0];
  shape.channels = x.dim[1];
  for (int32_t i = 2; i < x.rank; ++i) shape.size *= x.dim[i];
  shape.before = attrs.size / 2;
  shape.behind = (attrs.size - 1) / 2;
  shape.factor = attrs.alpha / static_cast<float>(attrs.size);
  shape.beta = attrs.beta;
  shape.k = attrs.k;
  return shape;
}

}  // namespace

LocalResponse local_response_norm_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  return response_shape(desc, desc.input(0), desc.output(0));
}

LocalResponse local_response_norm_backward_of(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  require_packed(desc.input(0), GPUNN_F32, "dy");
  require_same_shape(desc.input(0), desc.input(1), "dy and x");
  LocalResponse shape = response_shape(desc, desc.input(1), desc.output(0));
  shape.workspace_bytes = static_cast<uint64_t>(shape.elements()) * sizeof(float);
  return shape;
}

}  // namespace gpunn::backends
