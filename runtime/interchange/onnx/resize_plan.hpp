// Tells how a Resize or an Upsample changes each dimension of data, or of a constant.
#pragma once

#include <vector>

#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/resize_weights.hpp"

namespace gpunn::interchange {

// The new size of a dimension of the input.
struct Resized {
  int64_t to = 0;
  double scale = 1, begin = 0, end = 1;  // begin, end: the part that tf_crop_and_resize takes
};

struct ResizePlan {
  ResizeRule rule;
  std::vector<Resized> dimensions;
};

ResizePlan plan_resize(Call& call);

}  // namespace gpunn::interchange
