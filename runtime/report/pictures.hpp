#pragma once

#include <gpunn/evaluation.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <optional>
#include <span>

#include "chart/raster.hpp"

namespace gpunn::reports {

// A sample as its data set has it: u8, or f32 stretched to its own range; [1, C, H, W] with 1 or 3 channels. Empty if
// it is not such an image.
std::optional<chart::Raster> picture_of(const TensorType& sample, std::span<const std::byte> values);

// The filters of a convolution, f32 [filters, channels, rows, columns], in a grid, and what can be said of them.
struct FilterGrid {
  chart::Raster raster;
  int64_t filters = 0, shown = 0;  // shown: the first so many
  int64_t channels = 0;
  bool by_channel = false;  // a row a filter, a column an input channel; else a tile is a filter
  int64_t shown_channels = 0;
};

// Filters as an image: 1 channel in greys, 3 in colours, else a grey tile for each channel. Zero is the middle; the
// largest magnitude of a filter is black or white. Empty if there is nothing to show: not four dimensions, or too
// large.
std::optional<FilterGrid> filter_grid(const Shape& shape, std::span<const float> weights);

// The confusion matrix as a square: opacity is the share of the row's class; right is blue, wrong is orange.
chart::Raster heat_map(const ConfusionMatrix& matrix);

}  // namespace gpunn::reports
