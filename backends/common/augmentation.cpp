#include "common/augmentation.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace gpunn::backends {
namespace {

ImageBatch images_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  require_packed(x, GPUNN_F32, "x");
  require(x.rank == 4, "x must be [N,C,H,W]");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require_same_shape(x, desc.output(0), "x and y");
  return {.images = x.dim[0], .channels = x.dim[1], .rows = x.dim[2], .columns = x.dim[3]};
}

void require_channels(const OpDesc& desc, std::size_t input, const ImageBatch& batch, const char* name) {
  require_packed(desc.input(input), GPUNN_F32, name);
  require_shape(desc.input(input), {batch.channels}, name);
}

// x, counter, border -> y.
ImageBatch bordered_images_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  const ImageBatch batch = images_of(desc);
  require_scalar(desc.input(1), GPUNN_I64, "counter");
  require_channels(desc, 2, batch, "border");
  return batch;
}

bool in_unit(float value) { return value >= 0.0F && value <= 1.0F; }

}  // namespace

Shift shift_of(const OpDesc& desc) {
  const ImageBatch batch = bordered_images_of(desc);
  const auto attrs = require_attrs<gpunn_random_shift_attrs>(desc);
  require(attrs.reach[0] >= 0 && attrs.reach[1] >= 0, "the reach must not be negative");
  require(in_unit(attrs.flip), "flip must be 0 to 1");
  return {.batch = batch,
          .reach = {attrs.reach[0], attrs.reach[1]},
          .flip = attrs.flip,
          .seed = attrs.seed,
          .stream = attrs.stream};
}

Affine affine_of(const OpDesc& desc) {
  const ImageBatch batch = bordered_images_of(desc);
  const auto attrs = require_attrs<gpunn_random_affine_attrs>(desc);
  require(attrs.rotate >= 0.0F && attrs.rotate <= 360.0F, "rotate must be 0 to 360 degrees");
  require(in_unit(attrs.translate[0]) && in_unit(attrs.translate[1]), "translate must be 0 to 1");
  require(attrs.scale_low > 0.0F && attrs.scale_low <= attrs.scale_high &&
              attrs.scale_high <= std::numeric_limits<float>::max(),
          "the scales must be above 0, finite, and the low one not above the high one");
  return {.batch = batch,
          .rotate = static_cast<double>(attrs.rotate) * std::numbers::pi / 180.0,
          .translate = {static_cast<double>(attrs.translate[0]), static_cast<double>(attrs.translate[1])},
          .scale_low = static_cast<double>(attrs.scale_low),
          .scale_high = static_cast<double>(attrs.scale_high),
          .seed = attrs.seed,
          .stream = attrs.stream};
}

Color color_of(const OpDesc& desc) {
  require_tensors(desc, 4, 4, 1);
  const ImageBatch batch = images_of(desc);
  require_scalar(desc.input(1), GPUNN_I64, "counter");
  require_channels(desc, 2, batch, "scale");
  require_channels(desc, 3, batch, "shift");
  const auto attrs = require_attrs<gpunn_random_color_attrs>(desc);
  require(in_unit(attrs.brightness) && in_unit(attrs.contrast) && in_unit(attrs.saturation),
          "brightness, contrast and saturation must be 0 to 1");
  require(attrs.white > 0.0F && std::isfinite(attrs.white), "white must be above 0 and finite");
  return {.batch = batch,
          .brightness = static_cast<double>(attrs.brightness),
          .contrast = static_cast<double>(attrs.contrast),
          .saturation = static_cast<double>(attrs.saturation),
          .white = static_cast<double>(attrs.white),
          .seed = attrs.seed,
          .stream = attrs.stream};
}

Erase erase_of(const OpDesc& desc) {
  const ImageBatch batch = bordered_images_of(desc);
  const auto attrs = require_attrs<gpunn_random_erase_attrs>(desc);
  require(attrs.size[0] >= 0 && attrs.size[1] >= 0, "the size must not be negative");
  require(in_unit(attrs.p), "p must be 0 to 1");
  return {
      .batch = batch, .size = {attrs.size[0], attrs.size[1]}, .p = attrs.p, .seed = attrs.seed, .stream = attrs.stream};
}

MixRows mix_rows_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  const gpunn_tensor& x = desc.input(0);
  require_packed(x, GPUNN_F32, "x");
  require(x.rank >= 1, "x must be [N,...]");
  require_scalar(desc.input(1), GPUNN_F32, "share");
  require_scalar(desc.input(2), GPUNN_I32, "count");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require_same_shape(x, desc.output(0), "x and y");
  MixRows plan{.rows = x.dim[0], .row_size = 1};
  for (int32_t i = 1; i < x.rank; ++i) plan.row_size *= x.dim[i];
  return plan;
}

}  // namespace gpunn::backends
