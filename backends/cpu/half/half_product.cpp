#include "half/half_product.hpp"

#include <algorithm>

#include "grain.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kHalfRows = 256 * 1024;  // numbers of a task's rows, which stay in the second-level cache
constexpr int64_t kMostHalfTargets = 128;
constexpr int64_t kHalfTasks = 16;
constexpr int64_t kHalfColumns = 288;
constexpr int64_t kHalfDepth = 512;
constexpr int64_t kMostHalfChunks = 16;
constexpr double kMostHalfPartials = 4.0 * 1024 * 1024;

int64_t whole(int64_t numbers, int64_t unit) { return round_up(numbers, unit); }

// Two rows as pairs: to[j][0] = first[j * step], to[j][1] = second[j * step]; zeros behind count, and for a row of
// null.
void interleave_any(const BFloat16* first, const BFloat16* second, int64_t step, int64_t count, BFloat16* to) {
  for (int64_t j = 0; j < count; ++j) {
    to[2 * j] = first == nullptr ? BFloat16() : first[j * step];
    to[2 * j + 1] = second == nullptr ? BFloat16() : second[j * step];
  }
  std::fill(to + 2 * count, to + 2 * HalfTile::kColumns, BFloat16());
}

}  // namespace

HalfImageProduct::HalfImageProduct(const ConvolutionShape& shape, ConvolutionPass pass, int threads,
                                   const HalfTileKernels& kernels)
    : kernels_(&kernels),
      shape_(shape),
      forward_(pass == ConvolutionPass::forward),
      threads_(threads),
      source_(images_of(shape, !forward_)),
      target_(images_of(shape, forward_)),
      panels_(divide_up(target_.channels, HalfTile::kColumns)) {
  for (const TargetClass& targets : target_classes(shape, forward_)) {
    Part part{.targets = targets,
              .all_targets = shape.batch * targets.rows.targets * targets.columns.targets,
              .terms = targets.taps() * source_.channels,
              .depth = whole(targets.taps() * source_.channels, HalfTile::kDepth),
              .block_targets = 1,
              .splits = 1,
              .packed_filter = group_filter_,
              .first_task = tasks_,
              .tasks = 0};
    const int64_t most =
        std::clamp<int64_t>(kHalfRows / std::max<int64_t>(part.depth, 1), HalfTile::kRows, kMostHalfTargets);
    part.block_targets = whole(even_block(part.all_targets, most), 16);
    const int64_t blocks = divide_up(part.all_targets, part.block_targets);
    while (blocks * part.splits * shape.groups < kHalfTasks && panels_ >= 2 * part.splits) part.splits *= 2;
    part.tasks = blocks * part.splits;
    tasks_ += part.tasks;
    group_filter_ += part.depth * panels_ * HalfTile::kColumns;
    // Tiles read whole groups of 16 rows.
    rows_numbers_ = std::max(rows_numbers_, (part.block_targets + 16) * (part.depth + 32));
    parts_.push_back(part);
  }
}

double HalfImageProduct::workspace_bytes() const {
  const double filter = static_cast<double>(shape_.groups) * static_cast<double>(group_filter_);
  return (filter + static_cast<double>(threads_) * static_cast<double>(rows_numbers_) + 32) * sizeof(BFloat16);
}

// [group][class][panel][pair of terms][target channel of the panel][term of the pair]
void HalfImageProduct::pack_filter(const BFloat16* filter, BFloat16* packed) const {
  const int64_t filter_numbers = shape_.rows.taps * shape_.columns.taps * shape_.group_inputs;
  parallel_for(threads_, shape_.groups * panels_, [&](int64_t task, int) {
    const int64_t group = task / panels_;
    const int64_t panel = task % panels_;
    const int64_t target = panel * HalfTile::kColumns;
    const int64_t count = std::min<int64_t>(HalfTile::kColumns, target_.channels - target);
    const BFloat16* of_group = filter + group * shape_.group_outputs * filter_numbers;
    for (const Part& part : parts_) {
      BFloat16* to = packed + group * group_filter_ + part.packed_filter + panel * part.depth * HalfTile::kColumns;
      // A term of the first target channel; null behind the last.
      const auto term = [&](int64_t p) -> const BFloat16* {
        if (p >= part.terms) return nullptr;
        const int64_t tap = p / source_.channels;
        const int64_t channel = p % source_.channels;
        const int64_t columns = part.targets.columns.taps;
        const BFloat16* at =
            of_group + part.targets.tap(shape_.columns.taps, tap / columns, tap % columns) * shape_.group_inputs;
        return forward_ ? at + target * filter_numbers + channel : at + channel * filter_numbers + target;
      };
      for (int64_t p = 0; p < part.depth; p += 2) {
        const BFloat16* first = term(p);
        const BFloat16* second = term(p + 1);
        if (!forward_ && second != nullptr) {
          kernels_->interleave(first, second, static_cast<int>(count), to);
        } else {
          interleave_any(first, second, forward_ ? filter_numbers : 1, count, to);
        }
        to += 2 * HalfTile::kColumns;
      }
    }
  });
}

void HalfImageProduct::multiply(const Part& part, int64_t group, int64_t task, const BFloat16* source,
                                const BFloat16* packed, const float* bias, bool relu, BFloat16* target,
                                BFloat16* rows) const {
  const TargetClass& c = part.targets;
  const int64_t first = task / part.splits * part.block_targets;
  const int64_t count = std::min(part.block_targets, part.all_targets - first);
  const int64_t stride = part.depth + 32;
  copy_rows(source_, c, source, group * source_.channels, source_.channels, {0, c.taps()}, first, count, rows, stride);
  if (part.depth > part.terms) {
    for (int64_t i = 0; i < count; ++i) {
      std::fill_n(rows + i * stride + part.terms, part.depth - part.terms, BFloat16());
    }
  }
  BFloat16* to[kMostHalfTargets + 16];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t line = (first + i) / c.columns.targets;
    const int64_t row = c.rows.first_target + line % c.rows.targets * c.rows.target_step;
    const int64_t column = c.columns.first_target + (first + i) % c.columns.targets * c.columns.target_step;
    to[i] = target + ((line / c.rows.targets * target_.height + row) * target_.width + column) * target_.all_channels +
            group * target_.channels;
  }
  alignas(64) float sums[HalfTile::kRows * HalfTile::kColumns];
  BFloat16* in_panel[HalfTile::kRows];
  const int64_t panels_in_split = divide_up(panels_, part.splits);
  const int64_t last_panel = std::min((task % part.splits + 1) * panels_in_split, panels_);
  HalfTile tile{
      .k = part.depth, .a = rows, .a_stride = stride, .b = nullptr, .c = sums, .rows = 0, .accumulate = false};
  kernels_->begin();
  for (int64_t panel = task % part.splits * panels_in_split; panel < last_panel; ++panel) {
    const int64_t channel = panel * HalfTile::kColumns;
    tile.b = packed + group * group_filter_ + part.packed_filter + channel * part.depth;
    for (int64_t i = 0; i < count; i += HalfTile::kRows) {
      tile.rows = static_cast<int>(std::min<int64_t>(HalfTile::kRows, count - i));
      tile.a = rows + i * stride;
      kernels_->multiply(tile);
      for (int r = 0; r < tile.rows; ++r) in_panel[r] = to[i + r] + channel;
      kernels_->store(sums, tile.rows,
                      static_cast<int>(std::min<int64_t>(HalfTile::kColumns, target_.channels - channel)),
                      bias == nullptr ? nullptr : bias + group * target_.channels + channel, relu, in_panel);
    }
  }
  kernels_->end();
}

void HalfImageProduct::run(const BFloat16* source, const BFloat16* filter, const float* bias, bool relu,
                           BFloat16* target, void* workspace) const {
  auto* packed = static_cast<BFloat16*>(workspace);
  BFloat16* scratch = packed + round_up(shape_.groups * group_filter_, 32);
  pack_filter(filter, packed);
  parallel_for(threads_, shape_.groups * tasks_, [&](int64_t task, int thread) {
    const int64_t in_group = task % tasks_;
    const auto part = std::prev(std::upper_bound(parts_.begin(), parts_.end(), in_group,
                                                 [](int64_t at, const Part& p) { return at < p.first_task; }));
    multiply(*part, task / tasks_, in_group - part->first_task, source, packed, bias, relu, target,
             scratch + thread * rows_numbers_);
  });
}

HalfFilterProduct::HalfFilterProduct(const ConvolutionShape& shape, int threads, const HalfTileKernels& kernels)
    : kernels_(&kernels),
      shape_(shape),
      threads_(threads),
      x_(images_of(shape, false)),
      dy_(images_of(shape, true)),
      targets_(target_classes(shape, true)[0]),
      outputs_(shape.batch * shape.rows.outputs * shape.columns.outputs),
      dy_stride_(round_up(outputs_, HalfTile::kDepth) + 32) {
  block_channels_ = even_block(x_.channels, kHalfColumns);
  channel_blocks_ = divide_up(x_.channels, block_channels_);
  block_taps_ = channel_blocks_ > 1 ? 1 : even_block(targets_.taps(), std::max<int64_t>(kHalfColumns / x_.channels, 1));
  blocks_ = channel_blocks_ * divide_up(targets_.taps(), block_taps_);
  depth_ = round_up(even_block(outputs_, kHalfDepth), HalfTile::kDepth);
  const double most = kMostHalfPartials / static_cast<double>(shape.groups * shape.group_outputs) /
                      static_cast<double>(shape.group_inputs * targets_.taps());
  chunks_ = std::min({divide_up(2 * kHalfTasks, shape.groups * blocks_), divide_up(outputs_, depth_), kMostHalfChunks,
                      std::max<int64_t>(static_cast<int64_t>(most), 1)});
  rows_stride_ = block_taps_ * block_channels_ + 32;
  block_panels_ = divide_up(block_taps_ * block_channels_, HalfTile::kColumns);
  panel_floats_ = round_up(dy_.channels, HalfTile::kRows) * HalfTile::kColumns;
  block_floats_ = shape.groups * block_panels_ * panel_floats_;
}

double HalfFilterProduct::workspace_bytes() const {
  const double sums = static_cast<double>(chunks_ * blocks_) * static_cast<double>(block_floats_);
  const double dy = static_cast<double>(dy_.all_channels + 16) * static_cast<double>(dy_stride_);
  const double rows = static_cast<double>(depth_) * static_cast<double>(2 * rows_stride_ + 2 * HalfTile::kColumns);
  return sums * sizeof(float) + (dy + threads_ * rows + 128) * sizeof(BFloat16);
}

// [channel][output]; zeros behind the last output.
void HalfFilterProduct::transpose(const BFloat16* dy, BFloat16* to) const {
  const int64_t channels = dy_.all_channels;
  constexpr int64_t kAtOnce = 16;
  parallel_for(threads_, divide_up(outputs_, HalfTile::kDepth), [&](int64_t task, int) {
    const int64_t begin = task * HalfTile::kDepth;
    const bool all = begin + HalfTile::kDepth <= outputs_;
    for (int64_t k = 0; k < channels; k += kAtOnce) {
      const int64_t count = std::min(kAtOnce, channels - k);
      if (all) {
        kernels_->transpose(dy + begin * channels + k, channels, static_cast<int>(count), to + k * dy_stride_ + begin,
                            dy_stride_);
        continue;
      }
      for (int64_t i = k; i < k + count; ++i) {
        for (int64_t p = begin; p < begin + HalfTile::kDepth; ++p) {
          to[i * dy_stride_ + p] = p < outputs_ ? dy[p * channels + i] : BFloat16();
        }
      }
    }
  });
}

// Sums are [panel of columns][output channel][column of the panel].
void HalfFilterProduct::add_chunk(const BFloat16* dy, const BFloat16* x, int64_t group, int64_t chunk, int64_t block,
                                  float* sums, BFloat16* scratch) const {
  const int64_t steps = divide_up(outputs_, depth_);
  const int64_t begin = steps * chunk / chunks_;
  const int64_t channel = block % channel_blocks_ * block_channels_;
  const int64_t channels = std::min(block_channels_, x_.channels - channel);
  const int64_t tap = block / channel_blocks_ * block_taps_;
  const int64_t taps = std::min(block_taps_, targets_.taps() - tap);
  const int64_t columns = taps * channels;
  BFloat16* pairs = scratch + depth_ * rows_stride_;
  kernels_->begin();
  for (int64_t step = begin; step < steps * (chunk + 1) / chunks_; ++step) {
    const int64_t first = step * depth_;
    const int64_t count = std::min(depth_, outputs_ - first);
    const int64_t depth = round_up(count, HalfTile::kDepth);
    copy_rows(x_, targets_, x, group * x_.channels + channel, channels, {tap, tap + taps}, first, count, scratch,
              rows_stride_);
    HalfTile tile{.k = depth,
                  .a = nullptr,
                  .a_stride = dy_stride_,
                  .b = pairs,
                  .c = nullptr,
                  .rows = 0,
                  .accumulate = step > begin};
    for (int64_t j = 0; j < columns; j += HalfTile::kColumns) {
      const int64_t width = std::min<int64_t>(HalfTile::kColumns, columns - j);
      for (int64_t p = 0; p < depth; p += 2) {
        const BFloat16* pair = scratch + p * rows_stride_ + j;
        if (p + 1 < count) {
          kernels_->interleave(pair, pair + rows_stride_, static_cast<int>(width), pairs + p * HalfTile::kColumns);
        } else {
          interleave_any(p < count ? pair : nullptr, nullptr, 1, width, pairs + p * HalfTile::kColumns);
        }
      }
      for (int64_t k = 0; k < dy_.channels; k += HalfTile::kRows) {
        tile.rows = static_cast<int>(std::min<int64_t>(HalfTile::kRows, dy_.channels - k));
        tile.a = dy + (group * dy_.channels + k) * dy_stride_ + first;
        tile.c = sums + j / HalfTile::kColumns * panel_floats_ + k * HalfTile::kColumns;
        kernels_->multiply(tile);
      }
    }
  }
  kernels_->end();
}

// The sums of all chunks, in their order.
void HalfFilterProduct::put_filter(const float* sums, int64_t group, int64_t block, BFloat16* dw) const {
  const int64_t channel = block % channel_blocks_ * block_channels_;
  const int64_t channels = std::min(block_channels_, x_.channels - channel);
  const int64_t tap = block / channel_blocks_ * block_taps_;
  const int64_t columns = std::min(block_taps_, targets_.taps() - tap) * channels;
  const int64_t filter_numbers = targets_.taps() * x_.channels;
  const int64_t chunk_floats = blocks_ * block_floats_;
  for (int64_t k = 0; k < dy_.channels; ++k) {
    BFloat16* to = dw + (group * dy_.channels + k) * filter_numbers + tap * x_.channels + channel;
    for (int64_t j = 0; j < columns; j += HalfTile::kColumns) {
      const float* from = sums + j / HalfTile::kColumns * panel_floats_ + k * HalfTile::kColumns;
      for (int64_t i = 0; i < std::min<int64_t>(HalfTile::kColumns, columns - j); ++i) {
        float sum = from[i];
        for (int64_t chunk = 1; chunk < chunks_; ++chunk) sum += from[chunk * chunk_floats + i];
        to[j + i] = BFloat16(sum);
      }
    }
  }
}

void HalfFilterProduct::run(const BFloat16* dy, const BFloat16* x, BFloat16* dw, void* workspace) const {
  const int64_t own_floats = block_panels_ * panel_floats_;  // of a group's block
  auto* sums = static_cast<float*>(workspace);
  auto* turned = reinterpret_cast<BFloat16*>(sums + chunks_ * blocks_ * block_floats_);
  BFloat16* scratch = turned + round_up((dy_.all_channels + 16) * dy_stride_, 32);
  const int64_t thread_numbers = depth_ * (rows_stride_ + HalfTile::kColumns);
  transpose(dy, turned);
  const int64_t parts = shape_.groups * blocks_;
  parallel_for(threads_, chunks_ * parts, [&](int64_t task, int thread) {
    add_chunk(turned, x, task % parts / blocks_, task / parts, task % blocks_, sums + task * own_floats,
              scratch + thread * thread_numbers);
  });
  parallel_for(threads_, parts,
               [&](int64_t part, int) { put_filter(sums + part * own_floats, part / blocks_, part % blocks_, dw); });
}

}  // namespace gpunn::cpu
