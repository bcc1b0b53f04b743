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
constexpr int64_t kOutputsInTranspose = 64;

int64_t whole(int64_t numbers, int64_t unit) { return round_up(numbers, unit); }

// Two rows as pairs: to[j][0] = first[j * step], to[j][1] = second[j * step]; zeros behind count, and for a row of
// null.
void interleave(const BFloat16* first, const BFloat16* second, int64_t step, int64_t count, BFloat16* to) {
  if (first != nullptr && second != nullptr && step == 1) {
    for (int64_t j = 0; j < count; ++j) {
      to[2 * j] = first[j];
      to[2 * j + 1] = second[j];
    }
  } else {
    for (int64_t j = 0; j < count; ++j) {
      to[2 * j] = first == nullptr ? BFloat16() : first[j * step];
      to[2 * j + 1] = second == nullptr ? BFloat16() : second[j * step];
    }
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
        interleave(term(p), term(p + 1), forward_ ? filter_numbers : 1, count, to);
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
  HalfTile tile{.k = part.depth, .a = rows, .a_stride = stride, .b = nullptr, .c = sums, .rows = 0};
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
}

double HalfFilterProduct::workspace_bytes() const {
  const double sums = static_cast<double>(chunks_) * static_cast<double>(shape_.groups * shape_.group_outputs) *
                      static_cast<double>(shape_.group_inputs * targets_.taps());
  const double dy = static_cast<double>(dy_.all_channels + 16) * static_cast<double>(dy_stride_);
  const double rows = static_cast<double>(depth_) * static_cast<double>(2 * rows_stride_ + 2 * HalfTile::kColumns);
  return sums * sizeof(float) + (dy + threads_ * rows + 128) * sizeof(BFloat16);
}

// [channel][output]; zeros behind the last output.
void HalfFilterProduct::transpose(const BFloat16* dy, BFloat16* to) const {
  const int64_t channels = dy_.all_channels;
  parallel_for(threads_, divide_up(outputs_, kOutputsInTranspose), [&](int64_t task, int) {
    const int64_t begin = task * kOutputsInTranspose;
    const int64_t end = std::min(outputs_, begin + kOutputsInTranspose);
    for (int64_t k = 0; k < channels; ++k) {
      for (int64_t p = begin; p < end; ++p) to[k * dy_stride_ + p] = dy[p * channels + k];
    }
    if (end < outputs_) return;
    for (int64_t k = 0; k < channels; ++k) {
      std::fill(to + k * dy_stride_ + outputs_, to + (k + 1) * dy_stride_, BFloat16());
    }
  });
}

void HalfFilterProduct::add_chunk(const BFloat16* dy, const BFloat16* x, int64_t group, int64_t chunk, int64_t block,
                                  float* sums, BFloat16* scratch) const {
  const int64_t steps = divide_up(outputs_, depth_);
  const int64_t begin = steps * chunk / chunks_;
  const int64_t channel = block % channel_blocks_ * block_channels_;
  const int64_t channels = std::min(block_channels_, x_.channels - channel);
  const int64_t tap = block / channel_blocks_ * block_taps_;
  const int64_t taps = std::min(block_taps_, targets_.taps() - tap);
  const int64_t columns = taps * channels;
  const int64_t filter_numbers = targets_.taps() * x_.channels;
  BFloat16* pairs = scratch + depth_ * rows_stride_;
  alignas(64) float made[HalfTile::kRows * HalfTile::kColumns];
  kernels_->begin();
  for (int64_t step = begin; step < steps * (chunk + 1) / chunks_; ++step) {
    const int64_t first = step * depth_;
    const int64_t count = std::min(depth_, outputs_ - first);
    const int64_t depth = round_up(count, HalfTile::kDepth);
    copy_rows(x_, targets_, x, group * x_.channels + channel, channels, {tap, tap + taps}, first, count, scratch,
              rows_stride_);
    HalfTile tile{.k = depth, .a = nullptr, .a_stride = dy_stride_, .b = pairs, .c = made, .rows = 0};
    for (int64_t j = 0; j < columns; j += HalfTile::kColumns) {
      const int64_t width = std::min<int64_t>(HalfTile::kColumns, columns - j);
      for (int64_t p = 0; p < depth; p += 2) {
        const BFloat16* pair = scratch + p * rows_stride_ + j;
        interleave(p < count ? pair : nullptr, p + 1 < count ? pair + rows_stride_ : nullptr, 1, width,
                   pairs + p * HalfTile::kColumns);
      }
      for (int64_t k = 0; k < dy_.channels; k += HalfTile::kRows) {
        tile.rows = static_cast<int>(std::min<int64_t>(HalfTile::kRows, dy_.channels - k));
        tile.a = dy + (group * dy_.channels + k) * dy_stride_ + first;
        kernels_->multiply(tile);
        for (int r = 0; r < tile.rows; ++r) {
          float* to = sums + (group * dy_.channels + k + r) * filter_numbers + tap * x_.channels + channel + j;
          const float* from = made + r * HalfTile::kColumns;
          if (step == begin) {
            std::copy_n(from, width, to);
          } else {
            for (int64_t i = 0; i < width; ++i) to[i] += from[i];
          }
        }
      }
    }
  }
  kernels_->end();
}

void HalfFilterProduct::run(const BFloat16* dy, const BFloat16* x, BFloat16* dw, void* workspace) const {
  const int64_t all = shape_.groups * shape_.group_outputs * shape_.group_inputs * targets_.taps();
  auto* sums = static_cast<float*>(workspace);
  auto* turned = reinterpret_cast<BFloat16*>(sums + round_up(chunks_ * all, 16));
  BFloat16* scratch = turned + round_up((dy_.all_channels + 16) * dy_stride_, 32);
  const int64_t thread_numbers = depth_ * (rows_stride_ + HalfTile::kColumns);
  transpose(dy, turned);
  parallel_for(threads_, chunks_ * shape_.groups * blocks_, [&](int64_t task, int thread) {
    const int64_t chunk = task / blocks_ / shape_.groups;
    add_chunk(turned, x, task / blocks_ % shape_.groups, chunk, task % blocks_, sums + chunk * all,
              scratch + thread * thread_numbers);
  });
  parallel_for(threads_, divide_up(all, kGrain), [&](int64_t task, int) {
    for (int64_t i = task * kGrain; i < std::min(all, (task + 1) * kGrain); ++i) {
      float sum = sums[i];
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) sum += sums[chunk * all + i];
      dw[i] = BFloat16(sum);
    }
  });
}

}  // namespace gpunn::cpu
