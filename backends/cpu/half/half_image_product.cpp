#include "half/half_image_product.hpp"

#include <algorithm>
#include <cstdint>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kLeftNumbers = 256 * 1024;  // of a task's left factor, which stays in the second-level cache
constexpr int64_t kMostGatheredRows = 128;
constexpr int64_t kFewestPaddedRows = 256;  // for which a panel of the filter is fetched
constexpr int64_t kPointerNumbers = int64_t{sizeof(uintptr_t)} / int64_t{sizeof(BFloat16)};
constexpr int64_t kSameSet = 256;  // numbers: rows that lie a multiple apart share the first-level cache's sets

// The steps of an instruction's depth that `terms` terms in a row need, where all are equal and even; 0: none are.
int64_t equal_steps(int64_t terms) {
  for (int64_t steps = divide_up(terms, HalfTile::kDepth); 2 * steps <= terms; ++steps) {
    if (terms % (2 * steps) == 0) return steps;
  }
  return 0;
}

// Of `all`, as many as a task has: at most `most`, as few as make enough tasks, but not fewer than `fewest`.
int64_t block_of(int64_t all, int64_t most, int64_t fewest) {
  return even_block(all, std::max(std::min(most, divide_up(all, kHalfTasks)), fewest));
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
    Part part;
    part.targets = targets;
    part.padded = padded_pixels(source_, targets, shape.batch, target_.channels);
    if (part.padded.has_value()) {
      plan_padded(part);
    } else {
      plan_gathered(part);
    }
    const int64_t blocks = divide_up(part.all_rows, part.block_rows);
    while (blocks * part.splits * shape.groups < kHalfTasks && panels_ >= 2 * part.splits) part.splits *= 2;
    part.tasks = blocks * part.splits;
    part.first_task = tasks_;
    part.packed_filter = group_filter_;
    tasks_ += part.tasks;
    group_filter_ += panels_ * part.panel();
    scratch_numbers_ = std::max(scratch_numbers_, scratch_numbers(part));
    parts_.push_back(std::move(part));
  }
}

void HalfImageProduct::plan_padded(Part& part) const {
  const TargetClass& c = part.targets;
  // Neighbouring columns' channels are one run of terms, unless channels alone fill whole steps.
  const bool runs = c.columns.taps > 1 && c.columns.per_tap == 1 && source_.channels % HalfTile::kDepth != 0;
  const int64_t run_taps = runs ? c.columns.taps : 1;
  int64_t fewest = 0;
  for (int64_t channels = source_.channels; channels < source_.channels + HalfTile::kDepth; ++channels) {
    const int64_t steps = equal_steps(run_taps * channels);
    if (steps == 0 || (fewest > 0 && steps >= fewest)) continue;
    fewest = steps;
    part.padded_channels = channels;
  }
  part.depth = static_cast<int>(run_taps * part.padded_channels / fewest);
  part.stride = part.padded_channels + (part.padded_channels % kSameSet == 0 ? kHalfLineNumbers : 0);
  for (int64_t u = 0; u < c.rows.taps; ++u) {
    for (int64_t v = 0; v < c.columns.taps; v += run_taps) {
      for (int64_t s = 0; s < fewest; ++s) {
        part.steps.push_back(part.padded->tap_offset(c, u, v) * part.stride + s * part.depth);
      }
      for (int64_t i = 0; i < run_taps * part.padded_channels; ++i) {
        const int64_t channel = i % part.padded_channels;
        const int64_t tap = c.tap(shape_.columns.taps, u, v + i / part.padded_channels);
        part.terms.push_back({channel < source_.channels ? tap : -1, channel});
      }
    }
  }
  part.row_step = c.columns.per_target * part.stride;
  if (part.has_gaps()) {
    part.all_rows = part.line_rows = part.padded->pixels();
    const int64_t rows = block_of(part.all_rows, kLeftNumbers / part.stride, kFewestPaddedRows);
    part.block_rows = round_up(rows, HalfTile::kNarrowRows);
  } else {
    part.line_rows = c.columns.targets;
    const int64_t lines = shape_.batch * c.rows.targets, pixels = c.rows.per_target * part.padded->pitch;
    part.all_rows = lines * part.line_rows;
    part.block_rows = part.line_rows * block_of(lines, kLeftNumbers / (pixels * part.stride),
                                                divide_up(kFewestPaddedRows, part.line_rows));
  }
}

void HalfImageProduct::plan_gathered(Part& part) const {
  const TargetClass& c = part.targets;
  const int64_t terms = c.taps() * source_.channels, depth = round_up(terms, HalfTile::kDepth);
  part.all_rows = part.line_rows = shape_.batch * c.rows.targets * c.columns.targets;
  part.depth = HalfTile::kDepth;
  part.stride = part.row_step = depth + kHalfLineNumbers;
  for (int64_t step = 0; step < depth; step += HalfTile::kDepth) part.steps.push_back(step);
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t tap = i / source_.channels;
    part.terms.push_back({i < terms ? c.tap(shape_.columns.taps, tap / c.columns.taps, tap % c.columns.taps) : -1,
                          i % source_.channels});
  }
  const int64_t most =
      std::clamp<int64_t>(kLeftNumbers / std::max<int64_t>(depth, 1), HalfTile::kRows, kMostGatheredRows);
  part.block_rows = round_up(even_block(part.all_rows, most), 16);
}

// The pixels, or what targets see side by side, that rows [first, first + count) read.
int64_t HalfImageProduct::pixels_read(const Part& part, int64_t first, int64_t count) {
  if (!part.padded.has_value()) return count;
  const int64_t seen = part.padded->last_tap_offset(part.targets);
  if (part.has_gaps()) return count + seen;
  return part.line_pixel(first + count - part.line_rows) - part.line_pixel(first) +
         (part.line_rows - 1) * part.targets.columns.per_target + 1 + seen;
}

// The rows' targets, and the left factor, whose tiles are read whole.
int64_t HalfImageProduct::scratch_numbers(const Part& part) {
  int64_t pixels = 0;
  for (int64_t first = 0; first < part.all_rows; first += part.block_rows) {
    pixels = std::max(pixels, pixels_read(part, first, std::min(part.block_rows, part.all_rows - first)));
  }
  return pointer_numbers(part) +
         round_up(pixels * part.stride + HalfTile::kNarrowRows * part.row_step, kHalfLineNumbers);
}

int64_t HalfImageProduct::pointer_numbers(const Part& part) {
  return round_up((part.block_rows + HalfTile::kNarrowRows) * kPointerNumbers, kHalfLineNumbers);
}

double HalfImageProduct::workspace_bytes() const {
  const double filter = static_cast<double>(shape_.groups) * static_cast<double>(group_filter_);
  return (filter + static_cast<double>(threads_) * static_cast<double>(scratch_numbers_) + 32) * sizeof(BFloat16);
}

// [group][class][panel][pair of terms][target channel of the panel][term of the pair]
void HalfImageProduct::pack_filter(const BFloat16* filter, BFloat16* packed) const {
  const int64_t filter_numbers = shape_.rows.taps * shape_.columns.taps * shape_.group_inputs;
  const int64_t of_target = forward_ ? filter_numbers : 1;  // from a target channel's term to that of the next one
  const int64_t of_channel = forward_ ? 1 : filter_numbers;
  parallel_for(threads_, shape_.groups * panels_, [&](int64_t task, int) {
    const int64_t group = task / panels_;
    const int64_t panel = task % panels_;
    const int64_t target = panel * HalfTile::kColumns;
    const int64_t count = std::min<int64_t>(HalfTile::kColumns, target_.channels - target);
    const BFloat16* of_group = filter + group * shape_.group_outputs * filter_numbers + target * of_target;
    for (const Part& part : parts_) {
      BFloat16* to = packed + group * group_filter_ + part.packed_filter + panel * part.panel();
      const auto terms = static_cast<int64_t>(part.terms.size());
      // Of the first target channel; null: it is a zero.
      const auto at = [&](int64_t p) -> const BFloat16* {
        const Term& term = part.terms[static_cast<std::size_t>(p)];
        return term.tap < 0 ? nullptr : of_group + term.tap * shape_.group_inputs + term.channel * of_channel;
      };
      for (int64_t p = 0; p < terms;) {
        const BFloat16* const first = at(p);
        int64_t run = 1;
        while (first != nullptr && run < std::min<int64_t>(HalfTile::kDepth, terms - p) &&
               at(p + run) == first + run * of_channel) {
          ++run;
        }
        const int64_t pairs = std::max<int64_t>(run / 2, 1);
        if (run > 1) {
          pack_pairs(first, filter_numbers, pairs, count, to);
        } else {
          const BFloat16* const second = at(p + 1);
          std::fill_n(to, 2 * HalfTile::kColumns, BFloat16());
          for (int64_t j = 0; j < count; ++j) {
            if (first != nullptr) to[2 * j] = first[j * of_target];
            if (second != nullptr) to[2 * j + 1] = second[j * of_target];
          }
        }
        p += 2 * pairs;
        to += 2 * pairs * HalfTile::kColumns;
      }
    }
  });
}

// Pairs of terms of neighbouring channels of the source.
void HalfImageProduct::pack_pairs(const BFloat16* first, int64_t filter_numbers, int64_t pairs, int64_t count,
                                  BFloat16* to) const {
  constexpr int64_t kRow = 2 * HalfTile::kColumns;
  for (int64_t j = 0; j < HalfTile::kColumns; j += HalfTile::kHalfColumns) {
    const int64_t n = std::clamp<int64_t>(count - j, 0, HalfTile::kHalfColumns);
    if (n == 0) {
      for (int64_t p = 0; p < pairs; ++p) std::fill_n(to + p * kRow + 2 * j, 2 * HalfTile::kHalfColumns, BFloat16());
    } else if (forward_) {
      kernels_->transpose_pairs(first + j * filter_numbers, filter_numbers, static_cast<int>(n),
                                static_cast<int>(pairs), to + 2 * j, kRow);
    } else {
      kernels_->pair_up(first + j, filter_numbers, pairs, n, to + 2 * j, kRow);
    }
  }
}

// Rows [first, first + count).
void HalfImageProduct::copy_left(const Part& part, const BFloat16* source, int64_t group, int64_t first, int64_t count,
                                 BFloat16* to) const {
  const TargetClass& c = part.targets;
  const int64_t channel = group * source_.channels;
  if (part.padded.has_value()) {
    const int64_t begin = (part.has_gaps() ? first : part.line_pixel(first)) + part.padded->first_offset(c);
    const int64_t end = begin + pixels_read(part, first, count);
    part.padded->copy(source_, source, channel, source_.channels, begin, end, to, part.stride, part.padded_channels);
    return;
  }
  copy_rows(source_, c, source, channel, source_.channels, {0, c.taps()}, first, count, to, part.stride);
  const int64_t terms = c.taps() * source_.channels, depth = static_cast<int64_t>(part.terms.size());
  for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * part.stride + terms, depth - terms, BFloat16());
}

// Where the rows' targets are; null for a row that is none.
void HalfImageProduct::find_targets(const Part& part, int64_t group, int64_t first, int64_t count, BFloat16* target,
                                    BFloat16** to) const {
  const AxisClass &rows = part.targets.rows, &columns = part.targets.columns;
  const int64_t step = columns.target_step * target_.all_channels;
  const auto run = [&](int64_t image, int64_t row, int64_t column, int64_t begin, int64_t n) {
    const int64_t line = image * target_.height + rows.first_target + row * rows.target_step;
    BFloat16* at = target + (line * target_.width + columns.first_target) * target_.all_channels +
                   group * target_.channels + column * step;
    for (int64_t i = begin; i < begin + n; ++i, at += step) to[i] = at;
  };
  if (part.has_gaps()) {
    part.padded->walk(rows.targets, columns.targets, first, first + count, run,
                      [&](int64_t begin, int64_t n) { std::fill_n(to + begin, n, nullptr); });
    return;
  }
  for (int64_t i = 0; i < count;) {
    const int64_t line = (first + i) / columns.targets, column = (first + i) % columns.targets;
    const int64_t n = std::min(count - i, columns.targets - column);
    run(line / rows.targets, line % rows.targets, column, i, n);
    i += n;
  }
}

void HalfImageProduct::multiply(const Part& part, int64_t group, int64_t task, const BFloat16* source,
                                const BFloat16* packed, const float* bias, bool relu, BFloat16* target,
                                BFloat16* scratch) const {
  const int64_t first = task / part.splits * part.block_rows;
  const int64_t count = std::min(part.block_rows, part.all_rows - first);
  auto** const to = reinterpret_cast<BFloat16**>(scratch);
  BFloat16* const left = scratch + pointer_numbers(part);
  copy_left(part, source, group, first, count, left);
  find_targets(part, group, first, count, target, to);
  alignas(64) float sums[HalfTile::kNarrowRows * HalfTile::kColumns];
  BFloat16* in_panel[HalfTile::kNarrowRows];
  const int64_t panels_in_split = divide_up(panels_, part.splits);
  const int64_t last_panel = std::min((task % part.splits + 1) * panels_in_split, panels_);
  HalfTile tile{.steps = part.steps.data(),
                .step_count = static_cast<int64_t>(part.steps.size()),
                .depth = part.depth,
                .a = nullptr,
                .a_stride = part.row_step,
                .b = nullptr,
                .b_right = nullptr,
                .b_stride = 2 * HalfTile::kColumns,
                .c = sums,
                .rows = 0,
                .columns = 0,
                .accumulate = false};
  kernels_->begin(part.depth);
  for (int64_t panel = task % part.splits * panels_in_split; panel < last_panel; ++panel) {
    const int64_t channel = panel * HalfTile::kColumns;
    tile.b = packed + group * group_filter_ + part.packed_filter + panel * part.panel();
    tile.b_right = tile.b + HalfTile::kColumns;
    tile.columns = static_cast<int>(std::min<int64_t>(HalfTile::kColumns, target_.channels - channel));
    const int64_t most_rows = tile.columns > HalfTile::kHalfColumns ? HalfTile::kRows : HalfTile::kNarrowRows;
    for (int64_t i = 0; i < count;) {
      const int64_t line = i - i % part.line_rows, line_end = std::min(count, line + part.line_rows);
      tile.a = left + (i - line) * part.row_step;
      if (line > 0) tile.a += (part.line_pixel(first + line) - part.line_pixel(first)) * part.stride;
      tile.rows = static_cast<int>(std::min(most_rows, line_end - i));
      bool any = false;
      for (int r = 0; r < tile.rows; ++r) {
        in_panel[r] = to[i + r] == nullptr ? nullptr : to[i + r] + channel;
        any = any || in_panel[r] != nullptr;
      }
      i += tile.rows;
      if (!any) continue;
      kernels_->multiply(tile);
      kernels_->store(sums, tile.rows, tile.columns,
                      bias == nullptr ? nullptr : bias + group * target_.channels + channel, relu, in_panel);
    }
  }
  kernels_->end();
}

void HalfImageProduct::run(const BFloat16* source, const BFloat16* filter, const float* bias, bool relu,
                           BFloat16* target, void* workspace) const {
  auto* packed = static_cast<BFloat16*>(workspace);
  BFloat16* scratch = packed + round_up(shape_.groups * group_filter_, kHalfLineNumbers);
  pack_filter(filter, packed);
  parallel_for(threads_, shape_.groups * tasks_, [&](int64_t task, int thread) {
    const int64_t in_group = task % tasks_;
    const auto part = std::prev(std::upper_bound(parts_.begin(), parts_.end(), in_group,
                                                 [](int64_t at, const Part& p) { return at < p.first_task; }));
    multiply(*part, task / tasks_, in_group - part->first_task, source, packed, bias, relu, target,
             scratch + thread * scratch_numbers_);
  });
}

}  // namespace gpunn::cpu
