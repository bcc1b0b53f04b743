#include "common/upsampling.hpp"

namespace gpunn::backends {
namespace {

UpsampleAxis axis_of(int64_t inputs, int32_t factor, bool bilinear) {
  require(inputs >= 1, "the image must not be empty");
  require(factor >= 1, "the factor must be at least 1");
  return {.inputs = inputs, .factor = factor, .bilinear = bilinear};
}

Upsample upsample_between(const OpDesc& desc, const gpunn_tensor& x, const gpunn_tensor& y) {
  const auto attrs = require_attrs<gpunn_upsample2d_attrs>(desc);
  require(attrs.mode == GPUNN_UPSAMPLE_NEAREST || attrs.mode == GPUNN_UPSAMPLE_BILINEAR, "unknown mode");
  require_packed(x, GPUNN_F32, "the smaller image");
  require_packed(y, GPUNN_F32, "the larger image");
  require(x.rank == 4 && y.rank == 4, "images must be [N,C,H,W]");
  const bool bilinear = attrs.mode == GPUNN_UPSAMPLE_BILINEAR;
  // Divided and not multiplied: sizes may be anything yet.
  for (int32_t i = 0; i < 2; ++i) {
    require(
        attrs.factor[i] >= 1 && y.dim[2 + i] % attrs.factor[i] == 0 && y.dim[2 + i] / attrs.factor[i] == x.dim[2 + i],
        "the larger image must be the smaller one by the factors");
  }
  require(x.dim[0] == y.dim[0] && x.dim[1] == y.dim[1], "both must be of as many images and channels");
  return {.planes = x.dim[0] * x.dim[1],
          .rows = axis_of(x.dim[2], attrs.factor[0], bilinear),
          .columns = axis_of(x.dim[3], attrs.factor[1], bilinear)};
}

}  // namespace

Upsample upsample_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  return upsample_between(desc, desc.input(0), desc.output(0));
}

Upsample upsample_backward_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  return upsample_between(desc, desc.output(0), desc.input(0));
}

}  // namespace gpunn::backends
