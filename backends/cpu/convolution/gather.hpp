// Convolution forward, and backward to the data: both gather, at each target, sources through a filter's taps.
#pragma once

#include <cstdint>
#include <vector>

#include "common/convolution.hpp"
#include "convolution/image_lanes.hpp"

namespace gpunn::cpu {

using backends::ConvolutionShape;

// Direct convolution with one image in each vector lane: sources are transposed into a thread's scratch, band by band
// of target rows, a register tile of channels x targets gathers over all taps, and finished bands are transposed back.
class ConvolutionGather {
 public:
  enum class Direction { forward, backward };

  ConvolutionGather(const ConvolutionShape& shape, Direction direction, int threads);

  // In floats. As a double, for a shape whose scratch would overflow an integer.
  double workspace_floats() const;

  // bias [channels of the target] may be null. source and target are x and y forward, dy and dx backward.
  void run(const float* source, const float* filter, const float* bias, bool relu, float* target,
           float* workspace) const;

 private:
  struct ColumnTile {
    int64_t first_target;  // and then every target_step
    int outputs;
    int64_t source;  // column in scratch of the first target's first tap
    int64_t tap;     // the first tap
    int64_t taps;
    int class_index;
  };
  struct Band {
    int64_t begin;  // target rows
    int64_t end;
    int64_t source_begin;
    int64_t source_end;
  };

  std::vector<ColumnTile> column_tiles(int channels) const;
  TapRange row_taps(const AxisClass& row_class, int64_t j) const;
  Band band(int64_t index) const;
  void pack_filter(const float* filter, float* packed) const;
  void load_band(const float* source, int64_t block, int64_t group, const Band& band, float* to) const;
  void gather_band(const float* packed, int64_t group, const Band& band, const float* from, float* to) const;

  const ConvolutionKernels* kernels_;
  ConvolutionShape shape_;
  bool forward_;
  int threads_;
  int64_t sources_in_group_;  // channels
  int64_t targets_in_group_;
  int64_t source_height_, source_width_;
  int64_t target_height_, target_width_;
  std::vector<AxisClass> row_classes_;
  std::vector<AxisClass> column_classes_;
  ImageLanes lanes_;
  int64_t left_margin_;  // zero columns beside the sources in scratch
  int64_t scratch_width_;
  int64_t channels_in_tile_;
  std::vector<std::vector<ColumnTile>> tiles_;  // by channels
  int64_t band_rows_;
  int64_t bands_;
  int64_t most_source_rows_;
};

}  // namespace gpunn::cpu
