#include "convolution/filter.hpp"

#include <algorithm>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// A task's sums and its band of x and dy stay in the second-level cache.
constexpr double kFilterBandFloats = 96 * 1024;
constexpr int64_t kSumFloats = 64 * 1024;
constexpr int64_t kOutputsInTask = 24;
// A tile's rows of dy, which every tile of taps reads again, stay in the first-level cache.
constexpr int64_t kTileFloats = 6 * 1024;
constexpr int64_t kMostChunks = 16;
constexpr double kPartialFloats = 4 * 1024 * 1024;

double product(std::initializer_list<int64_t> factors) {
  double value = 1;
  for (const int64_t factor : factors) value *= static_cast<double>(factor);
  return value;
}

}  // namespace

ConvolutionFilter::ConvolutionFilter(const ConvolutionShape& shape, int threads)
    : kernels_(&GPUNN_SELECT_ISA(convolution_kernels)),
      shape_(shape),
      threads_(threads),
      rows_(forward_classes(shape.rows)[0]),
      columns_(forward_classes(shape.columns)[0]),
      lanes_(shape.batch, kernels_->lanes, shape.rows.outputs, 1, rows_.per_target),
      plane_taps_(shape.rows.taps * shape.columns.taps) {
  left_margin_ = std::max<int64_t>(0, -columns_.base);
  const int64_t highest = columns_.source(columns_.targets - 1, columns_.taps - 1);
  scratch_width_ = left_margin_ + std::max(shape.columns.inputs, highest + 1);

  outputs_in_task_ = even_block(shape.group_outputs, kOutputsInTask);
  channels_in_tile_ = even_block(outputs_in_task_, kernels_->filter_channels);
  inputs_in_task_ = even_block(shape.group_inputs,
                               std::max<int64_t>(kSumFloats / (plane_taps_ * outputs_in_task_ * lanes_.lanes), 1));

  const double row_floats = product({lanes_.lanes, inputs_in_task_, scratch_width_, rows_.per_target}) +
                            product({lanes_.lanes, outputs_in_task_, shape.columns.outputs});
  band_rows_ =
      even_block(lanes_.strip_targets, std::max<int64_t>(static_cast<int64_t>(kFilterBandFloats / row_floats), 1));
  source_rows_ = (band_rows_ - 1) * rows_.per_target + (rows_.taps - 1) * rows_.per_tap + 1;

  const double most = kPartialFloats / product({shape.groups, shape.group_outputs, shape.group_inputs, plane_taps_});
  chunks_ = std::min({lanes_.blocks, kMostChunks, std::max<int64_t>(static_cast<int64_t>(most), 1)});
}

void ConvolutionFilter::prepare() {
  tap_offset_.reserve(static_cast<std::size_t>(inputs_in_task_ * plane_taps_));
  for (int64_t c = 0; c < inputs_in_task_; ++c) {
    for (int64_t r = 0; r < shape_.rows.taps; ++r) {
      for (int64_t s = 0; s < shape_.columns.taps; ++s) {
        const int64_t row = c * source_rows_ + r * rows_.per_tap;
        const int64_t column = left_margin_ + columns_.source(0, s);
        tap_offset_.push_back((row * scratch_width_ + column) * lanes_.lanes);
      }
    }
  }
}

double ConvolutionFilter::workspace_floats() const {
  const double partials =
      product({chunks_, shape_.groups, shape_.group_outputs, shape_.group_inputs, plane_taps_}) + 16;
  const double x = product({inputs_in_task_, source_rows_, scratch_width_, lanes_.lanes});
  const double dy = product({band_rows_, shape_.columns.outputs, outputs_in_task_, lanes_.lanes});
  const double sums = product({outputs_in_task_, inputs_in_task_, plane_taps_, lanes_.lanes});
  return partials + threads_ * (x + dy + sums + 48);
}

void ConvolutionFilter::load_band(const float* dy, const float* x, int64_t block, const Part& part, int64_t begin,
                                  int64_t end, const Scratch& scratch) const {
  const int64_t lanes = lanes_.lanes;
  const int64_t row_floats = scratch_width_ * lanes;
  const int64_t x_plane = shape_.rows.inputs * shape_.columns.inputs;
  const int64_t right = left_margin_ + shape_.columns.inputs;
  const int64_t source_begin = rows_.source(begin, 0);
  const int64_t source_end = rows_.source(end - 1, rows_.taps - 1) + 1;
  for (int64_t c = 0; c < part.inputs; ++c) {
    float* channel = scratch.x + c * source_rows_ * row_floats;
    const Planes<const float> planes{.data = x + (part.group * shape_.group_inputs + part.first_input + c) * x_plane,
                                     .image = shape_.groups * shape_.group_inputs * x_plane,
                                     .height = shape_.rows.inputs,
                                     .width = shape_.columns.inputs};
    load_rows(*kernels_, lanes_, lanes_.strip_sources, block, planes, source_begin, source_end,
              channel + left_margin_ * lanes, row_floats, lanes);
    if (scratch_width_ == shape_.columns.inputs) continue;
    for (int64_t row = 0; row < source_end - source_begin; ++row) {
      std::fill_n(channel + row * row_floats, left_margin_ * lanes, 0.0F);
      std::fill_n(channel + row * row_floats + right * lanes, (scratch_width_ - right) * lanes, 0.0F);
    }
  }
  const int64_t y_plane = shape_.rows.outputs * shape_.columns.outputs;
  for (int64_t i = 0; i < part.outputs; ++i) {
    const Planes<const float> planes{.data = dy + (part.group * shape_.group_outputs + part.first_output + i) * y_plane,
                                     .image = shape_.groups * shape_.group_outputs * y_plane,
                                     .height = shape_.rows.outputs,
                                     .width = shape_.columns.outputs};
    const int64_t first = i / channels_in_tile_ * channels_in_tile_;
    const int64_t column_floats = std::min(channels_in_tile_, part.outputs - first) * lanes;
    float* tile = scratch.dy + first * (end - begin) * shape_.columns.outputs * lanes;
    load_rows(*kernels_, lanes_, lanes_.strip_targets, block, planes, begin, end, tile + (i - first) * lanes,
              shape_.columns.outputs * column_floats, column_floats);
  }
}

void ConvolutionFilter::add_band(const Part& part, int64_t rows, const Scratch& scratch) const {
  const int64_t lanes = lanes_.lanes;
  const int64_t taps = part.inputs * plane_taps_;
  FilterTile tile{};
  tile.x_row = rows_.per_target * scratch_width_ * lanes;
  tile.x_column = columns_.per_target * lanes;
  tile.columns = shape_.columns.outputs;
  tile.sum_channel = taps * lanes;
  const int64_t rows_at_once = std::max<int64_t>(kTileFloats / (channels_in_tile_ * tile.columns * lanes), 1);
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    tile.rows = std::min(rows_at_once, rows - row);
    for (int64_t first = 0; first < part.outputs; first += channels_in_tile_) {
      tile.channels = static_cast<int>(std::min(channels_in_tile_, part.outputs - first));
      tile.dy_column = tile.channels * lanes;
      tile.dy_row = shape_.columns.outputs * tile.dy_column;
      tile.dy = scratch.dy + first * rows * shape_.columns.outputs * lanes + row * tile.dy_row;
      tile.x = scratch.x + row * tile.x_row;
      const int64_t tiles = divide_up(taps, kernels_->filter_taps[tile.channels]);
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t begin = taps * t / tiles;
        tile.taps = static_cast<int>(taps * (t + 1) / tiles - begin);
        tile.tap_offset = tap_offset_.data() + begin;
        tile.sum = scratch.sums + first * tile.sum_channel + begin * lanes;
        kernels_->filter(tile);
      }
    }
  }
}

void ConvolutionFilter::add_chunk(const float* dy, const float* x, int64_t chunk, const Part& part,
                                  const Scratch& scratch) const {
  std::fill_n(scratch.sums, part.outputs * part.inputs * plane_taps_ * lanes_.lanes, 0.0F);
  const int64_t last_block = lanes_.blocks * (chunk + 1) / chunks_;
  for (int64_t block = lanes_.blocks * chunk / chunks_; block < last_block; ++block) {
    for (int64_t row = 0; row < lanes_.strip_targets; row += band_rows_) {
      const int64_t end = std::min(row + band_rows_, lanes_.strip_targets);
      load_band(dy, x, block, part, row, end, scratch);
      add_band(part, end - row, scratch);
    }
  }
}

void ConvolutionFilter::run(const float* dy, const float* x, float* dw, float* workspace) const {
  const int64_t lanes = lanes_.lanes;
  const int64_t filter_floats = shape_.group_inputs * plane_taps_;
  const int64_t chunk_floats = shape_.groups * shape_.group_outputs * filter_floats;
  const int64_t x_floats = round_up(inputs_in_task_ * source_rows_ * scratch_width_ * lanes, 16);
  const int64_t dy_floats = round_up(band_rows_ * shape_.columns.outputs * outputs_in_task_ * lanes, 16);
  const int64_t sum_floats = round_up(outputs_in_task_ * inputs_in_task_ * plane_taps_ * lanes, 16);
  float* partials = chunks_ == 1 ? dw : workspace;
  float* scratch = workspace + round_up(chunks_ * chunk_floats, 16);
  const int64_t output_ranges = divide_up(shape_.group_outputs, outputs_in_task_);
  const int64_t input_ranges = divide_up(shape_.group_inputs, inputs_in_task_);
  const int64_t parts = shape_.groups * output_ranges * input_ranges;
  parallel_for(threads_, chunks_ * parts, [&](int64_t task, int thread) {
    const int64_t chunk = task / parts;
    const int64_t first_output = task / input_ranges % output_ranges * outputs_in_task_;
    const int64_t first_input = task % input_ranges * inputs_in_task_;
    const Part part{.group = task % parts / input_ranges / output_ranges,
                    .first_output = first_output,
                    .outputs = std::min(outputs_in_task_, shape_.group_outputs - first_output),
                    .first_input = first_input,
                    .inputs = std::min(inputs_in_task_, shape_.group_inputs - first_input)};
    float* own = scratch + thread * (x_floats + dy_floats + sum_floats);
    const Scratch parts_of{.x = own, .dy = own + x_floats, .sums = own + x_floats + dy_floats};
    add_chunk(dy, x, chunk, part, parts_of);
    const int64_t taps = part.inputs * plane_taps_;
    for (int64_t i = 0; i < part.outputs; ++i) {
      const int64_t filter = part.group * shape_.group_outputs + part.first_output + i;
      kernels_->sum_lanes(parts_of.sums + i * taps * lanes, taps,
                          partials + chunk * chunk_floats + filter * filter_floats + part.first_input * plane_taps_);
    }
  });
  if (chunks_ == 1) return;
  parallel_for(threads_, divide_up(chunk_floats, kGrain), [&](int64_t task, int) {
    for (int64_t i = task * kGrain; i < std::min(chunk_floats, (task + 1) * kGrain); ++i) {
      float sum = partials[i];
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) sum += partials[chunk * chunk_floats + i];
      dw[i] = sum;
    }
  });
}

}  // namespace gpunn::cpu
