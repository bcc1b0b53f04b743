#include "convolution/gather.hpp"

#include <algorithm>
#include <cstring>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// A band's sources and targets stay in the second-level cache.
constexpr double kGatherBandFloats = 96 * 1024;
// Few blocks and groups are cut into more bands, for as many threads as that.
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kFewestBandRows = 4;

}  // namespace

ConvolutionGather::ConvolutionGather(const ConvolutionShape& shape, Direction direction, int threads)
    : kernels_(&GPUNN_SELECT_ISA(convolution_kernels)),
      shape_(shape),
      forward_(direction == Direction::forward),
      threads_(threads),
      sources_in_group_(forward_ ? shape.group_inputs : shape.group_outputs),
      targets_in_group_(forward_ ? shape.group_outputs : shape.group_inputs),
      source_height_(forward_ ? shape.rows.inputs : shape.rows.outputs),
      source_width_(forward_ ? shape.columns.inputs : shape.columns.outputs),
      target_height_(forward_ ? shape.rows.outputs : shape.rows.inputs),
      target_width_(forward_ ? shape.columns.outputs : shape.columns.inputs),
      row_classes_(forward_ ? forward_classes(shape.rows) : backward_classes(shape.rows)),
      column_classes_(forward_ ? forward_classes(shape.columns) : backward_classes(shape.columns)),
      lanes_(shape.batch, kernels_->lanes, target_height_, row_classes_[0].target_step, row_classes_[0].per_target) {
  int64_t lowest = 0;
  int64_t highest = source_width_ - 1;
  for (const AxisClass& c : column_classes_) {
    if (c.taps == 0) continue;
    for (const int64_t j : {int64_t{0}, c.targets - 1}) {
      for (const int64_t u : {int64_t{0}, c.taps - 1}) {
        lowest = std::min(lowest, c.source(j, u));
        highest = std::max(highest, c.source(j, u));
      }
    }
  }
  left_margin_ = -lowest;
  scratch_width_ = highest - lowest + 1;

  channels_in_tile_ = even_block(targets_in_group_, kernels_->gather_channels);
  tiles_.resize(static_cast<std::size_t>(channels_in_tile_) + 1);
  for (int channels = 1; channels <= channels_in_tile_; ++channels) {
    const bool used = channels == channels_in_tile_ || channels == targets_in_group_ % channels_in_tile_;
    if (used) tiles_[static_cast<std::size_t>(channels)] = column_tiles(channels);
  }

  const int64_t step = row_classes_[0].target_step;
  const double row_floats = static_cast<double>(kernels_->lanes) *
                            (static_cast<double>(sources_in_group_) * static_cast<double>(scratch_width_) *
                                 static_cast<double>(row_classes_[0].per_target) / static_cast<double>(step) +
                             static_cast<double>(targets_in_group_) * static_cast<double>(target_width_));
  const int64_t units = lanes_.strip_targets / step;
  int64_t band_units =
      std::clamp(static_cast<int64_t>(kGatherBandFloats / row_floats / static_cast<double>(step)), int64_t{1}, units);
  const int64_t wanted = divide_up(kWantedTasks, lanes_.blocks * shape.groups);
  band_units =
      std::min(band_units, std::max(divide_up(units, wanted), std::min(units, divide_up(kFewestBandRows, step))));
  band_rows_ = even_block(units, band_units) * step;
  bands_ = divide_up(lanes_.strip_targets, band_rows_);
  most_source_rows_ = 0;
  for (int64_t i = 0; i < bands_; ++i) {
    const Band b = band(i);
    most_source_rows_ = std::max(most_source_rows_, b.source_end - b.source_begin);
  }
}

// Tiles share the tap range that any of their targets needs; what others of them take outside the image is zero.
std::vector<ConvolutionGather::ColumnTile> ConvolutionGather::column_tiles(int channels) const {
  std::vector<ColumnTile> tiles;
  for (std::size_t index = 0; index < column_classes_.size(); ++index) {
    const AxisClass& c = column_classes_[index];
    const int64_t count = divide_up(c.targets, kernels_->gather_outputs[channels]);
    for (int64_t tile = 0; tile < count; ++tile) {
      const int64_t begin = c.targets * tile / count;
      const int64_t end = c.targets * (tile + 1) / count;
      TapRange taps{c.taps, 0};
      for (int64_t j = begin; j < end; ++j) {
        const TapRange own = c.taps_within(j, 0, source_width_);
        if (own.begin == own.end) continue;
        taps = {std::min(taps.begin, own.begin), std::max(taps.end, own.end)};
      }
      if (taps.begin >= taps.end) taps = {0, 0};
      tiles.push_back({.first_target = c.first_target + begin * c.target_step,
                       .outputs = static_cast<int>(end - begin),
                       .source = left_margin_ + c.source(begin, taps.begin),
                       .tap = c.first_tap + taps.begin * c.tap_step,
                       .taps = taps.end - taps.begin,
                       .class_index = static_cast<int>(index)});
    }
  }
  return tiles;
}

TapRange ConvolutionGather::row_taps(const AxisClass& row_class, int64_t j) const {
  return row_class.taps_within(j, lanes_.lowest_source(), source_height_);
}

ConvolutionGather::Band ConvolutionGather::band(int64_t index) const {
  Band b{.begin = index * band_rows_,
         .end = std::min({(index + 1) * band_rows_, lanes_.strip_targets, target_height_}),
         .source_begin = 0,
         .source_end = 0};
  bool any = false;
  for (int64_t row = b.begin; row < b.end; ++row) {
    const AxisClass& c = row_classes_[static_cast<std::size_t>(row % row_classes_[0].target_step)];
    const int64_t j = row / c.target_step;
    const TapRange taps = row_taps(c, j);
    if (taps.begin == taps.end) continue;
    const auto [low, high] = std::minmax({c.source(j, taps.begin), c.source(j, taps.end - 1)});
    b.source_begin = any ? std::min(b.source_begin, low) : low;
    b.source_end = any ? std::max(b.source_end, high + 1) : high + 1;
    any = true;
  }
  return b;
}

double ConvolutionGather::workspace_floats() const {
  const auto product = [](std::initializer_list<int64_t> factors) {
    double value = 1;
    for (const int64_t factor : factors) value *= static_cast<double>(factor);
    return value;
  };
  const double filter = product({shape_.groups, sources_in_group_, shape_.rows.taps, shape_.columns.taps,
                                 divide_up(targets_in_group_, channels_in_tile_) * channels_in_tile_});
  const double sources = product({sources_in_group_, most_source_rows_, scratch_width_, kernels_->lanes});
  const double targets = product({targets_in_group_, band_rows_, target_width_, kernels_->lanes});
  // Each of the parts is rounded up to a vector.
  return filter + 16 + threads_ * (sources + targets + 16);
}

// [group][block of channels][source channel][row][column][channel of the block]
void ConvolutionGather::pack_filter(const float* filter, float* packed) const {
  const int64_t taps = shape_.rows.taps * shape_.columns.taps;
  const int64_t blocks = divide_up(targets_in_group_, channels_in_tile_);
  const int64_t block_floats = sources_in_group_ * taps * channels_in_tile_;
  const int64_t to_target = forward_ ? shape_.group_inputs * taps : taps;
  const int64_t to_source = forward_ ? taps : shape_.group_inputs * taps;
  const bool small = shape_.groups * blocks * block_floats < 32 * 1024;
  parallel_for(small ? 1 : threads_, shape_.groups * blocks, [&](int64_t task, int) {
    const float* group = filter + task / blocks * shape_.group_inputs * shape_.group_outputs * taps;
    const int64_t first = task % blocks * channels_in_tile_;
    float* block = packed + task * block_floats;
    for (int64_t i = 0; i < std::min(channels_in_tile_, targets_in_group_ - first); ++i) {
      for (int64_t s = 0; s < sources_in_group_; ++s) {
        const float* from = group + (first + i) * to_target + s * to_source;
        float* to = block + s * taps * channels_in_tile_ + i;
        for (int64_t t = 0; t < taps; ++t) to[t * channels_in_tile_] = from[t];
      }
    }
  });
}

void ConvolutionGather::load_band(const float* source, int64_t block, int64_t group, const Band& b, float* to) const {
  const int64_t row_floats = scratch_width_ * lanes_.lanes;
  const int64_t rows = b.source_end - b.source_begin;
  const int64_t plane = source_height_ * source_width_;
  const int64_t right = left_margin_ + source_width_;
  for (int64_t s = 0; s < sources_in_group_; ++s) {
    float* channel = to + s * rows * row_floats;
    const Planes<const float> planes{.data = source + (group * sources_in_group_ + s) * plane,
                                     .image = shape_.groups * sources_in_group_ * plane,
                                     .height = source_height_,
                                     .width = source_width_};
    load_rows(*kernels_, lanes_, lanes_.strip_sources, block, planes, b.source_begin, b.source_end,
              channel + left_margin_ * lanes_.lanes, row_floats, lanes_.lanes);
    if (scratch_width_ == source_width_) continue;
    for (int64_t row = 0; row < rows; ++row) {
      std::fill_n(channel + row * row_floats, left_margin_ * lanes_.lanes, 0.0F);
      std::fill_n(channel + row * row_floats + right * lanes_.lanes, (scratch_width_ - right) * lanes_.lanes, 0.0F);
    }
  }
}

void ConvolutionGather::gather_band(const float* packed, int64_t group, const Band& b, const float* from,
                                    float* to) const {
  const int64_t row_floats = scratch_width_ * lanes_.lanes;
  const int64_t filter_row = shape_.columns.taps * channels_in_tile_;
  const int64_t filter_channel = shape_.rows.taps * filter_row;
  const int64_t blocks = divide_up(targets_in_group_, channels_in_tile_);
  GatherTile tile{};
  tile.taps[0] = sources_in_group_;
  tile.x_tap[0] = (b.source_end - b.source_begin) * row_floats;
  tile.w_tap[0] = filter_channel;
  tile.y_channel = (b.end - b.begin) * target_width_ * lanes_.lanes;
  for (int64_t cb = 0; cb < blocks; ++cb) {
    const int64_t first_channel = cb * channels_in_tile_;
    const float* filter = packed + (group * blocks + cb) * sources_in_group_ * filter_channel;
    tile.channels = static_cast<int>(std::min(channels_in_tile_, targets_in_group_ - first_channel));
    for (int64_t row = b.begin; row < b.end; ++row) {
      const int64_t step = row_classes_[0].target_step;
      const AxisClass& rc = row_classes_[static_cast<std::size_t>(row % step)];
      const int64_t j = row / step;
      const TapRange taps = row_taps(rc, j);
      tile.taps[1] = taps.end - taps.begin;
      tile.x_tap[1] = rc.per_tap * row_floats;
      tile.w_tap[1] = rc.tap_step * filter_row;
      const int64_t source_row = tile.taps[1] == 0 ? 0 : rc.source(j, taps.begin) - b.source_begin;
      const float* x = from + source_row * row_floats;
      const float* w = filter + (rc.first_tap + taps.begin * rc.tap_step) * filter_row;
      float* y = to + first_channel * tile.y_channel + (row - b.begin) * target_width_ * lanes_.lanes;
      for (const ColumnTile& ct : tiles_[static_cast<std::size_t>(tile.channels)]) {
        const AxisClass& cc = column_classes_[static_cast<std::size_t>(ct.class_index)];
        tile.x = x + ct.source * lanes_.lanes;
        tile.x_output = cc.per_target * lanes_.lanes;
        tile.x_tap[2] = cc.per_tap * lanes_.lanes;
        tile.w = w + ct.tap * channels_in_tile_;
        tile.w_tap[2] = cc.tap_step * channels_in_tile_;
        tile.taps[2] = ct.taps;
        tile.y = y + ct.first_target * lanes_.lanes;
        tile.y_output = cc.target_step * lanes_.lanes;
        tile.outputs = ct.outputs;
        kernels_->gather(tile);
      }
    }
  }
}

void ConvolutionGather::run(const float* source, const float* filter, const float* bias, bool relu, float* target,
                            float* workspace) const {
  const auto round_up = [](int64_t floats) { return divide_up(floats, 16) * 16; };
  const int64_t taps = shape_.rows.taps * shape_.columns.taps;
  const int64_t blocks = divide_up(targets_in_group_, channels_in_tile_);
  const int64_t filter_floats = round_up(shape_.groups * blocks * sources_in_group_ * taps * channels_in_tile_);
  const int64_t source_floats = sources_in_group_ * most_source_rows_ * scratch_width_ * lanes_.lanes;
  const int64_t target_floats = targets_in_group_ * band_rows_ * target_width_ * lanes_.lanes;
  pack_filter(filter, workspace);
  const int64_t plane = target_height_ * target_width_;
  const int64_t tasks = lanes_.blocks * shape_.groups * bands_;
  parallel_for(threads_, tasks, [&](int64_t task, int thread) {
    float* scratch = workspace + filter_floats + thread * round_up(source_floats + target_floats);
    float* result = scratch + source_floats;
    const Band b = band(task % bands_);
    const int64_t group = task / bands_ % shape_.groups;
    const int64_t block = task / bands_ / shape_.groups;
    if (b.begin >= b.end) return;
    load_band(source, block, group, b, scratch);
    gather_band(workspace, group, b, scratch, result);
    for (int64_t i = 0; i < targets_in_group_; ++i) {
      const int64_t channel = group * targets_in_group_ + i;
      const Planes<float> planes{.data = target + channel * plane,
                                 .image = shape_.groups * targets_in_group_ * plane,
                                 .height = target_height_,
                                 .width = target_width_};
      store_rows(*kernels_, lanes_, block, planes, b.begin, b.end,
                 result + i * (b.end - b.begin) * target_width_ * lanes_.lanes, bias == nullptr ? 0.0F : bias[channel],
                 relu);
    }
  });
}

}  // namespace gpunn::cpu
