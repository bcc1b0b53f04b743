#include "convolution/image_product.hpp"

#include <algorithm>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// A task's rows stay in the second-level cache beside a panel of the filter.
constexpr int64_t kRowsFloats = 128 * 1024;
constexpr int64_t kMostBlockTargets = 112;
constexpr int64_t kFewestBlockTargets = 28;
constexpr int64_t kProductTasks = 16;
constexpr int64_t kFewestSplitPanels = 2;
// A panel of so many products' depth stays in the first-level cache.
constexpr int64_t kProductDepth = 1024;
// Of the filter's gradient: what a task has of the filter, and the outputs that it multiplies at once.
constexpr int64_t kBlockColumns = 288;
constexpr int64_t kFilterDepth = 256;
constexpr int64_t kFilterTasks = 32;
// Pixels of so few channels are multiplied where they lie, which takes 0.5 to 0.9 of the time. The channels that a tile
// reads of longer ones share few sets of the first-level cache: these are copied.
constexpr int64_t kShortRow = 256;
constexpr int64_t kMostFilterChunks = 16;
constexpr double kMostPartialFloats = 4.0 * 1024 * 1024;

int64_t row_stride(int64_t numbers) { return round_up(numbers, 16) + 16; }

double times(std::initializer_list<int64_t> factors) {
  double value = 1;
  for (const int64_t factor : factors) value *= static_cast<double>(factor);
  return value;
}

}  // namespace

ImageProduct::ImageProduct(const ConvolutionShape& shape, ConvolutionPass pass, int threads)
    : kernels_(&GPUNN_SELECT_ISA(gemm_kernels)),
      shape_(shape),
      forward_(pass == ConvolutionPass::forward),
      in_place_(sees_itself(shape)),
      threads_(threads),
      source_(images_of(shape, !forward_)),
      target_(images_of(shape, forward_)),
      panel_(kernels_->tile_columns),
      panels_(divide_up(target_.channels, panel_)) {
  for (const TargetClass& targets : target_classes(shape, forward_)) {
    const bool dense = targets.rows.target_step == 1 && targets.columns.target_step == 1;
    Part part{
        .targets = targets,
        .lines = dense ? 1 : shape.batch * targets.rows.targets,
        .line_targets = dense ? shape.batch * targets.rows.targets * targets.columns.targets : targets.columns.targets,
        .block_lines = 1,
        .block_targets = 1,
        .splits = 1,
        .packed_filter = group_filter_,
        .first_task = tasks_,
        .tasks = 0};
    const int64_t terms = targets.taps() * source_.channels;
    const int64_t most = std::clamp(kRowsFloats / std::max<int64_t>(terms, 1), kFewestBlockTargets, kMostBlockTargets);
    part.block_targets = even_block(part.line_targets, most);
    if (part.block_targets == part.line_targets) {
      part.block_lines = even_block(part.lines, std::max<int64_t>(most / part.line_targets, 1));
    }
    const int64_t blocks = part.line_blocks() * divide_up(part.lines, part.block_lines);
    while (blocks * part.splits * shape.groups < kProductTasks && panels_ / (2 * part.splits) >= kFewestSplitPanels) {
      part.splits *= 2;
    }
    part.tasks = blocks * part.splits;
    tasks_ += part.tasks;
    group_filter_ += terms * panels_ * panel_;
    if (!in_place_) {
      rows_floats_ = std::max(rows_floats_, part.block_lines * part.block_targets * row_stride(terms));
    }
    parts_.push_back(part);
  }
}

double ImageProduct::workspace_floats() const {
  const double filter =
      times({shape_.groups, panels_ * panel_, source_.channels, shape_.rows.taps * shape_.columns.taps});
  double rows = 0;
  for (const Part& part : parts_) {
    const double row = times({part.targets.taps(), source_.channels}) + 32;
    rows = std::max(rows, row * static_cast<double>(part.block_lines * part.block_targets));
  }
  return filter + 32 + (in_place_ ? 0 : threads_ * rows);
}

FilterLayout ImageProduct::filter_layout() const {
  return {"product",
          {shape_.groups, shape_.group_inputs, shape_.group_outputs, shape_.rows.taps, shape_.columns.taps, panel_}};
}

int64_t ImageProduct::packed_floats() const { return round_up(shape_.groups * group_filter_ + kernels_->lanes, 16); }

// [group][class][panel][tap][source channel][target channel of the panel]
void ImageProduct::pack_filter(const float* filter, float* packed, float* /*scratch*/) const {
  const int64_t all_taps = shape_.rows.taps * shape_.columns.taps;
  const int64_t filter_floats = all_taps * shape_.group_inputs;
  parallel_for(threads_, shape_.groups * panels_, [&](int64_t task, int) {
    const int64_t group = task / panels_;
    const int64_t target = task % panels_ * panel_;
    const int64_t count = std::min(panel_, target_.channels - target);
    const float* of_group = filter + group * shape_.group_outputs * filter_floats;
    for (const Part& part : parts_) {
      const TargetClass& c = part.targets;
      float* to =
          packed + group * group_filter_ + part.packed_filter + task % panels_ * c.taps() * source_.channels * panel_;
      for (int64_t u = 0; u < c.rows.taps; ++u) {
        for (int64_t v = 0; v < c.columns.taps; ++v) {
          const float* tap = of_group + c.tap(shape_.columns.taps, u, v) * shape_.group_inputs;
          const float* from = tap + target * (forward_ ? filter_floats : 1);
          kernels_->pack(from, forward_ ? filter_floats : 1, forward_ ? 1 : filter_floats, count, panel_,
                         source_.channels, to);
          to += source_.channels * panel_;
        }
      }
    }
  });
}

void ImageProduct::multiply(const Part& part, int64_t group, int64_t task, const float* source, const float* packed,
                            const ConvolutionEpilogue& epilogue, float* target, float* rows) const {
  const TargetClass& c = part.targets;
  const int64_t terms = c.taps() * source_.channels;
  const int64_t block = task / part.splits;
  const int64_t line_block = block % part.line_blocks();
  const int64_t first_line = block / part.line_blocks() * part.block_lines;
  const int64_t lines = std::min(part.block_lines, part.lines - first_line);
  const int64_t first = line_block * part.block_targets;
  const int64_t count = std::min(part.block_targets, part.line_targets - first);
  const int64_t stride = in_place_ ? source_.all_channels : row_stride(terms);
  const int64_t begin = first_line * part.line_targets + first;
  const float* a = source + begin * source_.all_channels + group * source_.channels;
  if (!in_place_) {
    copy_rows(source_, c, source, group * source_.channels, source_.channels, {0, c.taps()}, begin, lines * count, rows,
              stride);
    a = rows;
  }
  const int64_t rows_at_once = even_block(count, kernels_->tile_rows);
  const int64_t depth = even_block(std::max<int64_t>(terms, 1), kProductDepth);
  const int64_t panels_in_split = divide_up(panels_, part.splits);
  const int64_t last_panel = std::min((task % part.splits + 1) * panels_in_split, panels_);
  GemmTile tile{};
  tile.a_stride = stride;
  tile.b_stride = panel_;
  tile.c_row = c.columns.target_step * target_.all_channels;
  tile.c_column = 1;
  for (int64_t panel = task % part.splits * panels_in_split; panel < last_panel; ++panel) {
    const int64_t channel = group * target_.channels + panel * panel_;
    const float* b = packed + group * group_filter_ + part.packed_filter + panel * terms * panel_;
    tile.columns = static_cast<int>(std::min(panel_, target_.channels - panel * panel_));
    int64_t p = 0;
    do {
      tile.k = std::min(depth, terms - p);
      tile.b = b + p * panel_;
      tile.accumulate = p > 0 || epilogue.add;
      const bool last = p + depth >= terms;
      tile.column_bias = last && epilogue.bias != nullptr ? epilogue.bias + channel : nullptr;
      tile.relu = last && epilogue.relu;
      for (int64_t line = 0; line < lines; ++line) {
        const int64_t image = (first_line + line) / c.rows.targets;
        const int64_t row = c.rows.first_target + (first_line + line) % c.rows.targets * c.rows.target_step;
        float* to = target + channel;
        to += part.lines == 1 && c.rows.target_step == 1 && c.columns.target_step == 1
                  ? first * target_.all_channels
                  : ((image * target_.height + row) * target_.width + c.columns.first_target +
                     first * c.columns.target_step) *
                        target_.all_channels;
        for (int64_t i = 0; i < count; i += rows_at_once) {
          tile.rows = static_cast<int>(std::min(rows_at_once, count - i));
          tile.a = a + (line * count + i) * stride + p;
          tile.c = to + i * tile.c_row;
          kernels_->rows_tile(tile);
        }
      }
      p += depth;
    } while (p < terms);
  }
}

void ImageProduct::run(const float* source, const float* packed, const ConvolutionEpilogue& epilogue, float* target,
                       float* scratch) const {
  parallel_for(threads_, shape_.groups * tasks_, [&](int64_t task, int thread) {
    const int64_t in_group = task % tasks_;
    const auto part = std::prev(std::upper_bound(parts_.begin(), parts_.end(), in_group,
                                                 [](int64_t at, const Part& p) { return at < p.first_task; }));
    multiply(*part, task / tasks_, in_group - part->first_task, source, packed, epilogue, target,
             scratch + thread * rows_floats_);
  });
}

ImageFilterProduct::ImageFilterProduct(const ConvolutionShape& shape, int threads)
    : kernels_(&GPUNN_SELECT_ISA(gemm_kernels)),
      shape_(shape),
      threads_(threads),
      x_(images_of(shape, false)),
      dy_(images_of(shape, true)),
      targets_(target_classes(shape, true)[0]),
      outputs_(shape.batch * shape.rows.outputs * shape.columns.outputs) {
  block_channels_ = even_block(x_.channels, kBlockColumns);
  channel_blocks_ = divide_up(x_.channels, block_channels_);
  block_taps_ =
      channel_blocks_ > 1 ? 1 : even_block(targets_.taps(), std::max<int64_t>(kBlockColumns / x_.channels, 1));
  blocks_ = channel_blocks_ * divide_up(targets_.taps(), block_taps_);
  depth_ = even_block(outputs_, kFilterDepth);
  const double most =
      kMostPartialFloats / times({shape.groups, shape.group_outputs, shape.group_inputs, targets_.taps()});
  chunks_ = std::min({divide_up(kFilterTasks, shape.groups * blocks_), divide_up(outputs_, depth_), kMostFilterChunks,
                      std::max<int64_t>(static_cast<int64_t>(most), 1)});
  rows_stride_ = row_stride(block_taps_ * block_channels_);
  rows_at_once_ = even_block(dy_.channels, kernels_->tile_rows);
  dy_tile_ = round_up(rows_at_once_ * depth_ + kernels_->lanes, 16);
  x_in_place_ = sees_itself(shape) && x_.all_channels <= kShortRow && x_.channels % kernels_->lanes == 0;
  dy_in_place_ = dy_.all_channels <= kShortRow;
}

double ImageFilterProduct::workspace_floats() const {
  const double partials =
      times({chunks_, shape_.groups, shape_.group_outputs, shape_.group_inputs, targets_.taps()}) + 16;
  return partials +
         threads_ * (times({depth_, rows_stride_}) + times({divide_up(dy_.channels, rows_at_once_), dy_tile_}));
}

void ImageFilterProduct::add_chunk(const float* dy, const float* x, int64_t group, int64_t chunk, int64_t block,
                                   float* sums, const Scratch& scratch) const {
  const int64_t steps = divide_up(outputs_, depth_);
  const int64_t last = steps * (chunk + 1) / chunks_;
  const int64_t channel = block % channel_blocks_ * block_channels_;
  const int64_t channels = std::min(block_channels_, x_.channels - channel);
  const int64_t tap = block / channel_blocks_ * block_taps_;
  const int64_t taps = std::min(block_taps_, targets_.taps() - tap);
  const int64_t columns = taps * channels;
  const int64_t filter_floats = targets_.taps() * x_.channels;
  GemmTile tile{};
  tile.a_stride = dy_in_place_ ? dy_.all_channels : rows_at_once_;
  tile.b_stride = x_in_place_ ? x_.all_channels : rows_stride_;
  tile.c_row = filter_floats;
  tile.c_column = 1;
  for (int64_t step = steps * chunk / chunks_; step < last; ++step) {
    const int64_t first = step * depth_;
    const int64_t count = std::min(depth_, outputs_ - first);
    tile.k = count;
    tile.accumulate = step > steps * chunk / chunks_;
    const float* rows = x + first * x_.all_channels + group * x_.channels + channel;
    if (!x_in_place_) {
      rows = scratch.rows;
      copy_rows(x_, targets_, x, group * x_.channels + channel, channels, {tap, tap + taps}, first, count, scratch.rows,
                rows_stride_);
    }
    const float* own_dy = dy + first * dy_.all_channels + group * dy_.channels;
    for (int64_t k = 0; !dy_in_place_ && k < dy_.channels; k += rows_at_once_) {
      kernels_->pack(own_dy + k, 1, dy_.all_channels, std::min(rows_at_once_, dy_.channels - k), rows_at_once_, count,
                     scratch.dy + k / rows_at_once_ * dy_tile_);
    }
    for (int64_t j = 0; j < columns; j += kernels_->tile_columns) {
      tile.columns = static_cast<int>(std::min<int64_t>(kernels_->tile_columns, columns - j));
      tile.b = rows + j;
      for (int64_t k = 0; k < dy_.channels; k += rows_at_once_) {
        tile.rows = static_cast<int>(std::min(rows_at_once_, dy_.channels - k));
        tile.a = dy_in_place_ ? own_dy + k : scratch.dy + k / rows_at_once_ * dy_tile_;
        tile.c = sums + (group * dy_.channels + k) * filter_floats + tap * x_.channels + channel + j;
        kernels_->tile(tile);
      }
    }
  }
}

void ImageFilterProduct::run(const float* dy, const float* x, float* dw, float* workspace) const {
  const int64_t all = shape_.groups * shape_.group_outputs * shape_.group_inputs * targets_.taps();
  float* scratch = workspace + (chunks_ == 1 ? 0 : round_up(chunks_ * all, 16));
  const int64_t rows_floats = depth_ * rows_stride_;
  const int64_t thread_floats = rows_floats + divide_up(dy_.channels, rows_at_once_) * dy_tile_;
  parallel_for(threads_, chunks_ * shape_.groups * blocks_, [&](int64_t task, int thread) {
    const int64_t chunk = task / blocks_ / shape_.groups;
    float* own = scratch + thread * thread_floats;
    add_chunk(dy, x, task / blocks_ % shape_.groups, chunk, task % blocks_, chunks_ == 1 ? dw : workspace + chunk * all,
              {own, own + rows_floats});
  });
  if (chunks_ == 1) return;
  parallel_for(threads_, divide_up(all, kGrain), [&](int64_t task, int) {
    for (int64_t i = task * kGrain; i < std::min(all, (task + 1) * kGrain); ++i) {
      float sum = workspace[i];
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) sum += workspace[chunk * all + i];
      dw[i] = sum;
    }
  });
}

}  // namespace gpunn::cpu
