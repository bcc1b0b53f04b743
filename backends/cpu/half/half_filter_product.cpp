#include "half/half_filter_product.hpp"

#include <algorithm>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kGatheredColumns = 288;
constexpr int64_t kPaddedChannels = 64;
constexpr int64_t kHalfDepth = 384;
constexpr int64_t kMostHalfChunks = 16;
constexpr double kMostHalfPartials = 4.0 * 1024 * 1024;
constexpr int64_t kPutChannels = 8;

}  // namespace

HalfFilterProduct::HalfFilterProduct(const ConvolutionShape& shape, int threads, const HalfTileKernels& kernels)
    : kernels_(&kernels),
      shape_(shape),
      threads_(threads),
      x_(images_of(shape, false)),
      dy_(images_of(shape, true)),
      targets_(target_classes(shape, true)[0]),
      padded_(targets_.is_strided() ? std::nullopt : padded_pixels(x_, targets_, shape.batch, dy_.channels)),
      dy_rows_(round_up(dy_.all_channels, HalfTile::kHalfColumns)) {
  if (padded_.has_value()) {
    plan_padded();
  } else {
    plan_gathered();
  }
  blocks_ = channel_blocks_ * divide_up(targets_.taps(), block_taps_);
  const double most = kMostHalfPartials / static_cast<double>(shape.groups * shape.group_outputs) /
                      static_cast<double>(shape.group_inputs * targets_.taps());
  chunks_ = std::min({divide_up(2 * kHalfTasks, shape.groups * blocks_), divide_up(pixels_, depth_), kMostHalfChunks,
                      std::max<int64_t>(static_cast<int64_t>(most), 1)});
  for (int64_t p = 0; p < depth_; p += HalfTile::kDepth) steps_.push_back(p);
  dy_stride_ = depth_ + kHalfLineNumbers;
  block_panels_ = divide_up(block_taps_ * tap_columns_, HalfTile::kColumns);
  panel_floats_ = round_up(dy_.channels, HalfTile::kRows) * HalfTile::kColumns;
  block_floats_ = shape.groups * block_panels_ * panel_floats_;
}

void HalfFilterProduct::plan_padded() {
  pixels_ = padded_->pixels();
  block_taps_ = targets_.taps();
  block_channels_ = even_block(x_.channels, kPaddedChannels);
  channel_blocks_ = divide_up(x_.channels, block_channels_);
  tap_columns_ = round_up(block_channels_, HalfTile::kHalfColumns);
  // What is seen beside them is made ready for nothing.
  const int64_t most = std::max(kHalfDepth, 2 * padded_->last_tap_offset(targets_));
  depth_ = round_up(even_block(pixels_, most), HalfTile::kDepth);
}

void HalfFilterProduct::plan_gathered() {
  pixels_ = shape_.batch * shape_.rows.outputs * shape_.columns.outputs;
  block_channels_ = even_block(x_.channels, kGatheredColumns);
  channel_blocks_ = divide_up(x_.channels, block_channels_);
  tap_columns_ = block_channels_;
  block_taps_ =
      channel_blocks_ > 1 ? 1 : even_block(targets_.taps(), std::max<int64_t>(kGatheredColumns / x_.channels, 1));
  depth_ = round_up(even_block(pixels_, kHalfDepth), HalfTile::kDepth);
}

HalfFilterProduct::Block HalfFilterProduct::block(int64_t number) const {
  const int64_t tap = number / channel_blocks_ * block_taps_, channel = number % channel_blocks_ * block_channels_;
  return {.tap = tap,
          .taps = std::min(block_taps_, targets_.taps() - tap),
          .channel = channel,
          .channels = std::min(block_channels_, x_.channels - channel)};
}

int64_t HalfFilterProduct::pixels_seen() const {
  return depth_ + (padded_.has_value() ? round_up(padded_->last_tap_offset(targets_) + 2, 2) : 0);
}

int64_t HalfFilterProduct::right_columns() const {
  return padded_.has_value() ? tap_columns_ : block_taps_ * tap_columns_;
}

int64_t HalfFilterProduct::transposed_numbers() const {
  return (divide_up(pixels_, depth_) * dy_rows_ + HalfTile::kHalfColumns) * dy_stride_;
}

// Pixels of x, then their pairs; or of dy, before they are transposed.
int64_t HalfFilterProduct::scratch_numbers() const {
  const int64_t columns = right_columns();
  const int64_t paired = padded_.has_value() ? 2 * columns : round_up(columns, HalfTile::kColumns);
  return round_up(std::max(pixels_seen() * (columns + paired), HalfTile::kDepth * dy_.all_channels), kHalfLineNumbers);
}

double HalfFilterProduct::workspace_bytes() const {
  const double sums = static_cast<double>(chunks_ * blocks_) * static_cast<double>(block_floats_);
  const double numbers =
      static_cast<double>(transposed_numbers()) + threads_ * static_cast<double>(scratch_numbers()) + 128;
  return sums * sizeof(float) + numbers * sizeof(BFloat16);
}

// [step][channel][pixel of the step]; zeros in the gaps and behind the last pixel.
void HalfFilterProduct::transpose(const BFloat16* dy, BFloat16* to, BFloat16* scratch) const {
  const int64_t channels = dy_.all_channels;
  constexpr int64_t kAtOnce = 16;
  parallel_for(threads_, divide_up(pixels_, HalfTile::kDepth), [&](int64_t task, int thread) {
    const int64_t begin = task * HalfTile::kDepth, end = begin + HalfTile::kDepth;
    const BFloat16* from = dy + begin * channels;
    BFloat16* const room = scratch + thread * scratch_numbers();
    if (padded_.has_value()) {
      padded_->copy(dy_, dy, 0, channels, begin, end, room, channels, channels);
      from = room;
    } else if (end > pixels_) {
      std::copy_n(from, (pixels_ - begin) * channels, room);
      std::fill_n(room + (pixels_ - begin) * channels, (end - pixels_) * channels, BFloat16());
      from = room;
    }
    for (int64_t k = 0; k < channels; k += kAtOnce) {
      kernels_->transpose(from + k, channels, static_cast<int>(std::min(kAtOnce, channels - k)),
                          to + (begin / depth_ * dy_rows_ + k) * dy_stride_ + begin % depth_, dy_stride_);
    }
  });
}

// Pairs of pixels of x, or of the rows that are gathered from it, in `scratch`.
HalfFilterProduct::Pairs HalfFilterProduct::pair_up(const Block& block, const BFloat16* x, int64_t group, int64_t first,
                                                    int64_t count, BFloat16* scratch) const {
  const int64_t channel = group * x_.channels + block.channel;
  const int64_t columns = right_columns();
  const int64_t pixels = padded_.has_value() ? pixels_seen() : round_up(count, HalfTile::kDepth);
  if (padded_.has_value()) {
    const int64_t begin = first + padded_->first_offset(targets_);
    padded_->copy(x_, x, channel, block.channels, begin, begin + pixels, scratch, columns, columns);
  } else {
    copy_rows(x_, targets_, x, channel, block.channels, {block.tap, block.tap + block.taps}, first, count, scratch,
              columns);
    std::fill_n(scratch + count * columns, (pixels - count) * columns, BFloat16());
  }
  BFloat16* const even = scratch + pixels_seen() * columns;
  if (!padded_.has_value()) {
    for (int64_t j = 0; j < columns; j += HalfTile::kColumns) {
      kernels_->pair_up(scratch + j, columns, pixels / 2, std::min<int64_t>(HalfTile::kColumns, columns - j),
                        even + j * depth_, 2 * HalfTile::kColumns);
    }
    return {.even = even, .odd = nullptr};
  }
  kernels_->pair_up(scratch, columns, pixels / 2, columns, even, 2 * columns);
  BFloat16* const odd = even + pixels * columns;
  kernels_->pair_up(scratch + columns, columns, pixels / 2 - 1, columns, odd, 2 * columns);
  return {.even = even, .odd = odd};
}

// The pairs of the first pixel in 16 columns.
const BFloat16* HalfFilterProduct::column_tile(const Pairs& pairs, int64_t tile) const {
  if (!padded_.has_value())
    return pairs.even + tile / 2 * HalfTile::kColumns * depth_ + tile % 2 * 2 * HalfTile::kHalfColumns;
  const int64_t in_tap = tap_columns_ / HalfTile::kHalfColumns, tap = tile / in_tap;
  const int64_t offset = padded_->tap_offset(targets_, tap / targets_.columns.taps, tap % targets_.columns.taps);
  return (offset % 2 == 0 ? pairs.even : pairs.odd) + offset / 2 * 2 * tap_columns_ +
         tile % in_tap * 2 * HalfTile::kHalfColumns;
}

// Sums are [panel of columns][output channel][column of the panel].
void HalfFilterProduct::add_chunk(const BFloat16* dy, const BFloat16* x, int64_t group, int64_t chunk, int64_t number,
                                  float* sums, BFloat16* scratch) const {
  const int64_t steps = divide_up(pixels_, depth_);
  const int64_t begin = steps * chunk / chunks_;
  const Block of = block(number);
  const int64_t tiles = divide_up(of.taps * (padded_.has_value() ? tap_columns_ : of.channels), HalfTile::kHalfColumns);
  HalfTile tile{.steps = steps_.data(),
                .step_count = 0,
                .depth = HalfTile::kDepth,
                .a = nullptr,
                .a_stride = dy_stride_,
                .b = nullptr,
                .b_right = nullptr,
                .b_stride = 2 * (padded_.has_value() ? tap_columns_ : HalfTile::kColumns),
                .c = nullptr,
                .rows = 0,
                .columns = 0,
                .accumulate = false};
  kernels_->begin(HalfTile::kDepth);
  for (int64_t step = begin; step < steps * (chunk + 1) / chunks_; ++step) {
    const int64_t first = step * depth_, count = std::min(depth_, pixels_ - first);
    const Pairs pairs = pair_up(of, x, group, first, count, scratch);
    tile.step_count = divide_up(count, HalfTile::kDepth);
    tile.accumulate = step > begin;
    for (int64_t t = 0; t < tiles; t += 2) {
      tile.b = column_tile(pairs, t);
      tile.columns = static_cast<int>(std::min<int64_t>(2, tiles - t) * HalfTile::kHalfColumns);
      if (t + 1 < tiles) tile.b_right = column_tile(pairs, t + 1);
      const int64_t rows = tile.columns > HalfTile::kHalfColumns ? HalfTile::kRows : HalfTile::kNarrowRows;
      for (int64_t k = 0; k < dy_.channels; k += rows) {
        tile.rows = static_cast<int>(std::min(rows, dy_.channels - k));
        tile.a = dy + (step * dy_rows_ + group * dy_.channels + k) * dy_stride_;
        tile.c = sums + t / 2 * panel_floats_ + k * HalfTile::kColumns;
        kernels_->multiply(tile);
      }
    }
  }
  kernels_->end();
}

// Of some output channels from `first` on: the sums of all chunks, in their order.
void HalfFilterProduct::put_filter(const float* sums, int64_t group, int64_t number, int64_t first,
                                   BFloat16* dw) const {
  const Block of = block(number);
  const int64_t chunk_floats = blocks_ * block_floats_;
  const int64_t tap_columns = padded_.has_value() ? tap_columns_ : of.channels;
  for (int64_t k = first; k < std::min(first + kPutChannels, dy_.channels); ++k) {
    BFloat16* to = dw + ((group * dy_.channels + k) * targets_.taps() + of.tap) * x_.channels + of.channel;
    for (int64_t tap = 0; tap < of.taps; ++tap, to += x_.channels) {
      for (int64_t c = 0; c < of.channels;) {
        const int64_t column = tap * tap_columns + c, in_panel = column % HalfTile::kColumns;
        const int64_t n = std::min(HalfTile::kColumns - in_panel, of.channels - c);
        const float* from = sums + column / HalfTile::kColumns * panel_floats_ + k * HalfTile::kColumns + in_panel;
        for (int64_t i = 0; i < n; ++i) {
          float sum = from[i];
          for (int64_t chunk = 1; chunk < chunks_; ++chunk) sum += from[chunk * chunk_floats + i];
          to[c + i] = BFloat16(sum);
        }
        c += n;
      }
    }
  }
}

void HalfFilterProduct::run(const BFloat16* dy, const BFloat16* x, BFloat16* dw, void* workspace) const {
  const int64_t own_floats = block_panels_ * panel_floats_;  // of a group's block
  auto* sums = static_cast<float*>(workspace);
  auto* turned = reinterpret_cast<BFloat16*>(sums + chunks_ * blocks_ * block_floats_);
  BFloat16* scratch = turned + transposed_numbers();
  transpose(dy, turned, scratch);
  const int64_t parts = shape_.groups * blocks_;
  parallel_for(threads_, chunks_ * parts, [&](int64_t task, int thread) {
    add_chunk(turned, x, task % parts / blocks_, task / parts, task % blocks_, sums + task * own_floats,
              scratch + thread * scratch_numbers());
  });
  const int64_t pieces = divide_up(dy_.channels, kPutChannels);
  parallel_for(threads_, parts * pieces, [&](int64_t task, int) {
    const int64_t part = task / pieces;
    put_filter(sums + part * own_floats, part / blocks_, part % blocks_, task % pieces * kPutChannels, dw);
  });
}

}  // namespace gpunn::cpu
