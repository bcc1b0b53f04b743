// How ONNX's Resize makes the values of a dimension from those of another size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn::interchange {

// The attributes of a Resize node, by ONNX's names.
struct ResizeRule {
  std::string mode = "nearest", places = "half_pixel", rounding = "round_prefer_floor";
  double cubic_a = -0.75;
  bool excludes_outside = false, has_filter = false;  // has_filter: antialias
};

// The weights [to, from] of a dimension of `from` values that becomes `to`, by this scale; `begin` and `end` are the
// part of it that tf_crop_and_resize takes, beyond whose ends values are 0. As ONNX's reference implementation has
// them. Throws Unsupported for a rule that it has not.
std::vector<double> resize_weights(const ResizeRule& rule, int64_t from, int64_t to, double scale, double begin,
                                   double end);

}  // namespace gpunn::interchange
