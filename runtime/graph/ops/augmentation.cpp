// RANDOM_SHIFT, RANDOM_AFFINE, RANDOM_COLOR, RANDOM_ERASE and MIX_ROWS: what is done to a training batch. Nothing flows
// back.
#include <gpunn/ops.h>

#include <cmath>
#include <sstream>

#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

// x[N,C,H,W], counter.
void require_images(Inputs in) {
  require_f32(in[0], 4, "x");
  require_scalar(in[1], DType::i64, "counter");
}

// One number a channel of x.
void require_channels(const TensorType& x, const TensorType& channels, std::string_view what) {
  require_f32(channels, 1, what);
  require(channels.shape[0] == x.shape[1],
          std::string(what) + " " + to_string(channels) + " must have one entry a channel of x " + to_string(x));
}

void require_share(float share, const std::string& what) {
  require(share >= 0 && share <= 1, what + " " + std::to_string(share) + " is not in [0, 1]");
}

Types infer_shift(const Attributes& attrs, Inputs in) {
  require_images(in);
  require_channels(in[0], in[2], "border");
  const auto a = attrs.as<gpunn_random_shift_attrs>();
  require(a.reach[0] >= 0 && a.reach[1] >= 0, "reach " + pair_text(a.reach) + " must not be negative");
  require_share(a.flip, "flip");
  return {in[0]};
}

Types infer_affine(const Attributes& attrs, Inputs in) {
  require_images(in);
  require_channels(in[0], in[2], "border");
  const auto a = attrs.as<gpunn_random_affine_attrs>();
  require(a.rotate >= 0 && a.rotate <= 360, "rotate " + std::to_string(a.rotate) + " is not in [0, 360]");
  require_share(a.translate[0], "translate");
  require_share(a.translate[1], "translate");
  require(a.scale_low > 0 && a.scale_low <= a.scale_high && std::isfinite(a.scale_high),
          "scales " + std::to_string(a.scale_low) + " to " + std::to_string(a.scale_high) +
              " must be above 0 and in this order");
  return {in[0]};
}

Types infer_color(const Attributes& attrs, Inputs in) {
  require_images(in);
  require_channels(in[0], in[2], "scale");
  require_channels(in[0], in[3], "shift");
  const auto a = attrs.as<gpunn_random_color_attrs>();
  require_share(a.brightness, "brightness");
  require_share(a.contrast, "contrast");
  require_share(a.saturation, "saturation");
  require(a.white > 0 && std::isfinite(a.white), "white " + std::to_string(a.white) + " must be above 0");
  return {in[0]};
}

Types infer_erase(const Attributes& attrs, Inputs in) {
  require_images(in);
  require_channels(in[0], in[2], "border");
  const auto a = attrs.as<gpunn_random_erase_attrs>();
  require(a.size[0] >= 0 && a.size[1] >= 0, "size " + pair_text(a.size) + " must not be negative");
  require_share(a.p, "p");
  return {in[0]};
}

Types infer_mix(const Attributes&, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  require(!in[0].shape.empty(), "x must have rows, is a scalar");
  require_scalar(in[1], DType::f32, "share");
  require_scalar(in[2], DType::i32, "count");
  return {in[0]};
}

// By element: its place, and three interpolations of three operations each.
double image_affine_flops(const OpSignature& s) { return 17.0 * static_cast<double>(s.outputs[0].elements()); }
double color_flops(const OpSignature& s) { return 12.0 * static_cast<double>(s.outputs[0].elements()); }
double mix_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.outputs[0].elements()); }

std::string describe_shift(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_shift_attrs>();
  std::ostringstream text;
  text << "reach " << pair_text(a.reach) << ", flip " << a.flip;
  return text.str();
}

std::string describe_affine(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_affine_attrs>();
  std::ostringstream text;
  text << "rotate " << a.rotate << ", translate " << a.translate[0] << " " << a.translate[1] << ", scale "
       << a.scale_low << " " << a.scale_high;
  return text.str();
}

std::string describe_color(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_color_attrs>();
  std::ostringstream text;
  text << "brightness " << a.brightness << ", contrast " << a.contrast << ", saturation " << a.saturation << ", white "
       << a.white;
  return text.str();
}

std::string describe_erase(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_erase_attrs>();
  std::ostringstream text;
  text << "size " << pair_text(a.size) << ", p " << a.p;
  return text.str();
}

}  // namespace

std::vector<OpInfo> augmentation_ops() {
  return {
      {.id = GPUNN_OP_RANDOM_SHIFT,
       .name = "RANDOM_SHIFT",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_shift,
       .flops = no_flops,
       .describe = describe_shift},
      {.id = GPUNN_OP_RANDOM_AFFINE,
       .name = "RANDOM_AFFINE",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_affine,
       .flops = image_affine_flops,
       .describe = describe_affine},
      {.id = GPUNN_OP_RANDOM_COLOR,
       .name = "RANDOM_COLOR",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_color,
       .flops = color_flops,
       .describe = describe_color},
      {.id = GPUNN_OP_RANDOM_ERASE,
       .name = "RANDOM_ERASE",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_erase,
       .may_alias = {{0}},
       .flops = no_flops,
       .describe = describe_erase},
      {.id = GPUNN_OP_MIX_ROWS,
       .name = "MIX_ROWS",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_mix,
       .flops = mix_flops},
  };
}

}  // namespace gpunn::graph
