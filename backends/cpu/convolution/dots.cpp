#include "convolution/dots.hpp"

#include <algorithm>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// Measured on ResNet-18 with one image of 64x64: beyond so many pixels the rearranged filter pays.
constexpr int64_t kMostPixels = 256;
// With fewer terms the sums over a vector's lanes cost more than the products.
constexpr int64_t kFewestTerms = 256;

}  // namespace

bool ConvolutionDots::suits(const ConvolutionShape& s) {
  return s.batch * s.rows.outputs * s.columns.outputs <= kMostPixels &&
         s.group_inputs * s.rows.taps * s.columns.taps >= kFewestTerms;
}

ConvolutionDots::ConvolutionDots(const ConvolutionShape& shape, int threads)
    : kernels_(&GPUNN_SELECT_ISA(dot_kernels)),
      shape_(shape),
      threads_(threads),
      pixels_(shape.batch * shape.rows.outputs * shape.columns.outputs),
      terms_(shape.group_inputs * shape.rows.taps * shape.columns.taps) {}

double ConvolutionDots::workspace_floats() const {
  return static_cast<double>(shape_.groups) * static_cast<double>(pixels_) * static_cast<double>(terms_);
}

// to[channel of the group][row tap][column tap], 0 outside the image.
void ConvolutionDots::copy_seen(const float* x, int64_t group, int64_t pixel, float* to) const {
  const backends::ConvolutionAxis &rows = shape_.rows, &columns = shape_.columns;
  const int64_t column = pixel % columns.outputs;
  const int64_t row = pixel / columns.outputs % rows.outputs;
  const int64_t image = pixel / columns.outputs / rows.outputs;
  const int64_t first_row = row * rows.stride - rows.pad, first_column = column * columns.stride - columns.pad;
  const auto inside = [](int64_t first, const backends::ConvolutionAxis& axis) {
    return first >= 0 && first + (axis.taps - 1) * axis.dilation < axis.inputs;
  };
  const float* plane = x + (image * shape_.groups + group) * shape_.group_inputs * rows.inputs * columns.inputs;
  if (inside(first_row, rows) && inside(first_column, columns)) {
    plane += first_row * columns.inputs + first_column;
    for (int64_t c = 0; c < shape_.group_inputs; ++c, plane += rows.inputs * columns.inputs) {
      for (int64_t r = 0; r < rows.taps; ++r) {
        const float* from = plane + r * rows.dilation * columns.inputs;
        for (int64_t t = 0; t < columns.taps; ++t) *to++ = from[t * columns.dilation];
      }
    }
    return;
  }
  for (int64_t c = 0; c < shape_.group_inputs; ++c, plane += rows.inputs * columns.inputs) {
    for (int64_t r = 0; r < rows.taps; ++r) {
      const int64_t source_row = first_row + r * rows.dilation;
      const bool row_inside = source_row >= 0 && source_row < rows.inputs;
      for (int64_t t = 0; t < columns.taps; ++t) {
        const int64_t source = first_column + t * columns.dilation;
        const bool tap_inside = row_inside && source >= 0 && source < columns.inputs;
        *to++ = tap_inside ? plane[source_row * columns.inputs + source] : 0.0F;
      }
    }
  }
}

void ConvolutionDots::run(const float* x, const float* filter, const float* bias, bool relu, float* y,
                          float* workspace) const {
  parallel_for(threads_, shape_.groups * pixels_,
               [&](int64_t task, int) { copy_seen(x, task / pixels_, task % pixels_, workspace + task * terms_); });
  const int64_t plane = shape_.rows.outputs * shape_.columns.outputs;
  const int64_t tiles = divide_up(shape_.group_outputs, kDotRows);
  parallel_for(threads_, shape_.groups * tiles, [&](int64_t task, int) {
    const int64_t group = task / tiles;
    const int64_t first = task % tiles * kDotRows;
    const int64_t channels = std::min<int64_t>(kDotRows, shape_.group_outputs - first);
    DotTile tile{};
    tile.terms = terms_;
    for (int64_t i = 0; i < kDotRows; ++i) {
      tile.a[i] = filter + (group * shape_.group_outputs + first + std::min(i, channels - 1)) * terms_;
    }
    for (int64_t pixel = 0; pixel < pixels_; pixel += kDotColumns) {
      const int64_t count = std::min<int64_t>(kDotColumns, pixels_ - pixel);
      for (int64_t j = 0; j < kDotColumns; ++j) {
        tile.b[j] = workspace + (group * pixels_ + pixel + std::min(j, count - 1)) * terms_;
      }
      kernels_->tile(tile);
      for (int64_t i = 0; i < channels; ++i) {
        const int64_t channel = group * shape_.group_outputs + first + i;
        for (int64_t j = 0; j < count; ++j) {
          const int64_t image = (pixel + j) / plane;
          const float sum = tile.sums[i][j] + (bias == nullptr ? 0.0F : bias[channel]);
          // A comparison that leaves NaN as it is.
          y[(image * shape_.groups * shape_.group_outputs + channel) * plane + (pixel + j) % plane] =
              relu && sum < 0.0F ? 0.0F : sum;
        }
      }
    }
  });
}

}  // namespace gpunn::cpu
