// RANDOM_SHIFT, RANDOM_AFFINE, RANDOM_COLOR, RANDOM_ERASE and MIX_ROWS: what is done to a training batch. Nothing flows
// back.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

// By element: its place, and three interpolations of three operations each.
double image_affine_flops(const OpSignature& s) { return 17.0 * static_cast<double>(s.outputs[0].elements()); }
double color_flops(const OpSignature& s) { return 12.0 * static_cast<double>(s.outputs[0].elements()); }
double mix_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.outputs[0].elements()); }

std::string describe_shift(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_shift_attrs>();
  std::ostringstream text;
  text << "reach " << ops::pair_text(a.reach) << ", flip " << a.flip;
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
  text << "size " << ops::pair_text(a.size) << ", p " << a.p;
  return text.str();
}

}  // namespace

std::vector<OpInfo> augmentation_ops() {
  return {
      {.id = GPUNN_OP_RANDOM_SHIFT, .flops = no_flops, .describe = describe_shift},
      {.id = GPUNN_OP_RANDOM_AFFINE, .flops = image_affine_flops, .describe = describe_affine},
      {.id = GPUNN_OP_RANDOM_COLOR, .flops = color_flops, .describe = describe_color},
      {.id = GPUNN_OP_RANDOM_ERASE, .flops = no_flops, .describe = describe_erase},
      {.id = GPUNN_OP_MIX_ROWS, .flops = mix_flops},
  };
}

}  // namespace gpunn::graph
