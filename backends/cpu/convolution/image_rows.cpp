#include "convolution/image_rows.hpp"

namespace gpunn::cpu {

GroupedImages images_of(const ConvolutionShape& s, bool outputs) {
  const int64_t channels = outputs ? s.group_outputs : s.group_inputs;
  return {.height = outputs ? s.rows.outputs : s.rows.inputs,
          .width = outputs ? s.columns.outputs : s.columns.inputs,
          .channels = channels,
          .all_channels = s.groups * channels};
}

std::vector<TargetClass> target_classes(const ConvolutionShape& shape, bool forward) {
  std::vector<TargetClass> classes;
  for (const AxisClass& rows : forward ? forward_classes(shape.rows) : backward_classes(shape.rows)) {
    for (const AxisClass& columns : forward ? forward_classes(shape.columns) : backward_classes(shape.columns)) {
      classes.push_back({rows, columns});
    }
  }
  return classes;
}

bool sees_itself(const ConvolutionShape& shape) {
  const auto plain = [](const ConvolutionAxis& axis) { return axis.taps == 1 && axis.stride == 1 && axis.pad == 0; };
  return plain(shape.rows) && plain(shape.columns);
}

}  // namespace gpunn::cpu
