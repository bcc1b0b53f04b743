#include "quantized/quantized_patch.hpp"

#include "conv/fprop/wgmma_fprop.hpp"

namespace gpunn::cuda_tiled {

std::optional<QuantizedPatch> quantized_patch(const backends::ConvolutionShape& shape, int outputs) {
  constexpr int64_t kMostPixels = int64_t{1} << 30;  // of all images
  const backends::ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  const int64_t reach = (rows.taps - 1) * rows.dilation + 1;
  const int64_t virtual_rows = (rows.outputs - 1) * rows.stride + reach;
  const int64_t pitch = (columns.outputs - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1;
  if (shape.batch * rows.inputs * columns.inputs > kMostPixels || shape.batch * virtual_rows > kMostPixels ||
      pitch > kMostPatchPixels) {
    return std::nullopt;
  }
  QuantizedPatch patch;
  patch.images = static_cast<int>(shape.batch);
  patch.taps = static_cast<int>(rows.taps * columns.taps);
  patch.pointwise = patch.taps == 1;
  patch.pitch = Divider(pitch);
  patch.virtual_rows = Divider(virtual_rows);
  patch.row_stride = static_cast<int>(rows.stride);
  patch.column_stride = static_cast<int>(columns.stride);
  tensor::FpropPhase phase{};
  phase.rows = static_cast<int>(rows.outputs);
  phase.columns = static_cast<int>(columns.outputs);
  phase.virtual_rows = static_cast<int>(virtual_rows);
  phase.reach = static_cast<int>(reach);
  const int64_t pixels = patch.pointwise
                             ? int64_t{outputs}
                             : pitch * tensor::patch_rows(phase, patch.images, static_cast<int>(rows.stride), outputs);
  if (pixels > kMostPatchPixels) return std::nullopt;
  patch.pixels = static_cast<int>(pixels);
  return patch;
}

}  // namespace gpunn::cuda_tiled
