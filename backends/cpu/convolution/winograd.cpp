#include "convolution/winograd.hpp"

#include <algorithm>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kWinogradTile = 4;
constexpr int64_t kAllPoints = 36;
constexpr int64_t kAllTaps = 9;
// Of fewer channels, and at pixels that see one or two taps, the transforms' roundings pass what a sum of so many
// products may be off by.
constexpr int64_t kFewestChannels = 32;
constexpr int64_t kMostMargin = 1;
// Of few pixels the transform of the filter costs more than the products save.
constexpr int64_t kFewestPixels = 128;
// The products that are saved must pay for the transforms, which are bound by memory.
constexpr double kLargestShare = 0.6;
// The points of a task's sources stay in the second-level cache.
constexpr int64_t kBlockFloats = 256 * 1024;
constexpr int64_t kMostBlockTiles = 56;
constexpr int64_t kFewestBlockTiles = 14;
constexpr int64_t kWinogradTasks = 16;
constexpr int64_t kFewestSplitChannels = 64;
// Source channels of a filter whose taps are rearranged at once.
constexpr int64_t kFilterChannels = 64;
// The points of a chunk's images stay in the third-level cache.
constexpr int64_t kChunkFloats = 2 * 1024 * 1024;
constexpr int64_t kFewestChunkTiles = 64;
constexpr int64_t kTilesInTask = 8;
constexpr int64_t kPanelsInTask = 2;

// Numbers of a row, so that the rows of a tile don't meet in one set of the first-level cache.
int64_t staggered(int64_t numbers) { return round_up(numbers, 16) + 16; }

double as_product(std::initializer_list<int64_t> factors) {
  double value = 1;
  for (const int64_t factor : factors) value *= static_cast<double>(factor);
  return value;
}

WinogradImages images_of(const ConvolutionShape& s, bool outputs, int64_t margin, int size) {
  return {.height = outputs ? s.rows.outputs : s.rows.inputs,
          .width = outputs ? s.columns.outputs : s.columns.inputs,
          .channels = outputs ? s.group_outputs : s.group_inputs,
          .margin = margin,
          .size = size};
}

}  // namespace

bool suits_winograd(const ConvolutionShape& s, ConvolutionPass pass) {
  const bool backward = pass == ConvolutionPass::backward_data;
  const auto plain = [backward](const ConvolutionAxis& axis) {
    const int64_t margin = backward ? 2 - axis.pad : axis.pad;
    return axis.taps == 3 && axis.stride == 1 && axis.dilation == 1 && axis.pad <= 2 && margin <= kMostMargin;
  };
  // Of unequal padding the margins would be two numbers.
  if (s.groups != 1 || !plain(s.rows) || !plain(s.columns) || s.rows.pad != s.columns.pad) return false;
  if (std::min(s.group_inputs, s.group_outputs) < kFewestChannels) return false;
  const int64_t height = backward ? s.rows.inputs : s.rows.outputs;
  const int64_t width = backward ? s.columns.inputs : s.columns.outputs;
  const double pixels = as_product({s.batch, height, width});
  const double tiles = as_product({s.batch, divide_up(height, kWinogradTile), divide_up(width, kWinogradTile)});
  return pixels >= kFewestPixels && tiles * kAllPoints <= kLargestShare * pixels * kAllTaps;
}

WinogradTiling::WinogradTiling(int64_t batch, int64_t height, int64_t width)
    : rows(divide_up(height, kWinogradTile)), columns(divide_up(width, kWinogradTile)), tiles(batch * rows * columns) {}

int64_t WinogradImages::locate(const WinogradTiling& tiling, int64_t tile, WinogradTile& where) const {
  const int64_t image = tile / (tiling.rows * tiling.columns);
  const int64_t row = tile / tiling.columns % tiling.rows * kWinogradTile - margin;
  const int64_t column = tile % tiling.columns * kWinogradTile - margin;
  const auto within = [this](int64_t at) { return static_cast<int>(std::clamp<int64_t>(at, 0, size)); };
  where = {.row_begin = within(-row),
           .row_end = within(height - row),
           .column_begin = within(-column),
           .column_end = within(width - column),
           .row = width * channels,
           .column = channels};
  return ((image * height + row) * width + column) * channels;
}

WinogradProduct::WinogradProduct(const ConvolutionShape& shape, ConvolutionPass pass, int threads)
    : products_(&GPUNN_SELECT_ISA(gemm_kernels)),
      transforms_(&GPUNN_SELECT_ISA(winograd_kernels)),
      forward_(pass == ConvolutionPass::forward),
      threads_(threads),
      source_(images_of(shape, !forward_, forward_ ? shape.rows.pad : 2 - shape.rows.pad, 6)),
      target_(images_of(shape, forward_, 0, 4)),
      tiling_(shape.batch, target_.height, target_.width),
      panel_(products_->tile_columns),
      panels_(divide_up(target_.channels, panel_)),
      tile_floats_(staggered(source_.channels)) {
  block_tiles_ = even_block(
      tiling_.tiles, std::clamp(kBlockFloats / (kAllPoints * source_.channels), kFewestBlockTiles, kMostBlockTiles));
  blocks_ = divide_up(tiling_.tiles, block_tiles_);
  while (blocks_ * splits_ < kWinogradTasks && target_.channels / (2 * splits_) >= kFewestSplitChannels) splits_ *= 2;
  rows_at_once_ = even_block(block_tiles_, products_->tile_rows);
}

double WinogradProduct::workspace_floats() const {
  const double filter = as_product({panels_, panel_, kAllPoints, source_.channels});
  const double points = as_product({kAllPoints, block_tiles_, tile_floats_});
  const double products = as_product({kAllPoints, block_tiles_, panel_});
  const double taps = as_product({kAllTaps, kFilterChannels, panel_}) + 16;
  return filter + threads_ * std::max(points + products, taps);
}

FilterLayout WinogradProduct::filter_layout() const {
  return {"winograd", {source_.channels, target_.channels, panel_, 0, 0, 0}};
}

int64_t WinogradProduct::packed_floats() const { return panels_ * panel_ * kAllPoints * source_.channels; }

// [panel][point][source channel][target channel of the panel]
void WinogradProduct::pack_filter(const float* filter, float* points, float* scratch) const {
  const int64_t taps_floats = kAllTaps * kFilterChannels * panel_ + 16;
  const int64_t parts = divide_up(source_.channels, kFilterChannels);
  const int64_t inputs = forward_ ? source_.channels : target_.channels;  // of a filter
  parallel_for(threads_, panels_ * parts, [&](int64_t task, int thread) {
    const int64_t target = task / parts * panel_;
    const int64_t source = task % parts * kFilterChannels;
    const int64_t count = std::min(kFilterChannels, source_.channels - source);
    float* taps = scratch + thread * taps_floats;
    for (int64_t tap = 0; tap < kAllTaps; ++tap) {
      const float* from = forward_ ? filter + (target * kAllTaps + tap) * inputs + source
                                   : filter + (source * kAllTaps + kAllTaps - 1 - tap) * inputs + target;
      const int64_t to_filter = kAllTaps * inputs;
      products_->pack(from, forward_ ? to_filter : 1, forward_ ? 1 : to_filter,
                      std::min(panel_, target_.channels - target), panel_, count, taps + tap * count * panel_);
    }
    transforms_->filter(taps, count * panel_, count * panel_,
                        points + (task / parts * kAllPoints * source_.channels + source) * panel_,
                        source_.channels * panel_);
  });
}

void WinogradProduct::run(const float* source, const float* filter_points, const ConvolutionEpilogue& epilogue,
                          float* target, float* scratch) const {
  const int64_t source_point = block_tiles_ * tile_floats_;
  const int64_t product_point = block_tiles_ * panel_;
  const int64_t panels_in_split = divide_up(panels_, splits_);
  parallel_for(threads_, blocks_ * splits_, [&](int64_t task, int thread) {
    float* points = scratch + thread * kAllPoints * (source_point + product_point);
    float* products = points + kAllPoints * source_point;
    const int64_t first = task / splits_ * block_tiles_;
    const int64_t tiles = std::min(block_tiles_, tiling_.tiles - first);
    WinogradTile where{};
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t offset = source_.locate(tiling_, first + t, where);
      transforms_->input(source + offset, where, source_.channels, points + t * tile_floats_, source_point);
    }
    const int64_t begin = task % splits_ * panels_in_split;
    GemmTile tile{};
    tile.k = source_.channels;
    tile.a_stride = tile_floats_;
    tile.b_stride = panel_;
    tile.c_row = panel_;
    tile.c_column = 1;
    tile.columns = static_cast<int>(panel_);
    for (int64_t panel = begin; panel < std::min(begin + panels_in_split, panels_); ++panel) {
      for (int64_t point = 0; point < kAllPoints; ++point) {
        tile.b = filter_points + (panel * kAllPoints + point) * source_.channels * panel_;
        for (int64_t t = 0; t < tiles; t += rows_at_once_) {
          tile.rows = static_cast<int>(std::min(rows_at_once_, tiles - t));
          tile.a = points + point * source_point + t * tile_floats_;
          tile.c = products + point * product_point + t * panel_;
          products_->rows_tile(tile);
        }
      }
      const int64_t channel = panel * panel_;
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t offset = target_.locate(tiling_, first + t, where);
        transforms_->output(products + t * panel_, product_point, std::min(panel_, target_.channels - channel),
                            epilogue.bias == nullptr ? nullptr : epilogue.bias + channel, epilogue.add, epilogue.relu,
                            target + offset + channel, where);
      }
    }
  });
}

WinogradFilter::WinogradFilter(const ConvolutionShape& shape, int threads)
    : products_(&GPUNN_SELECT_ISA(gemm_kernels)),
      transforms_(&GPUNN_SELECT_ISA(winograd_kernels)),
      threads_(threads),
      x_(images_of(shape, false, shape.rows.pad, 6)),
      dy_(images_of(shape, true, 0, 4)),
      tiling_(shape.batch, dy_.height, dy_.width),
      panel_(products_->tile_columns),
      sums_point_(staggered(x_.channels * dy_.channels)) {
  chunk_tiles_ = even_block(tiling_.tiles,
                            std::max(kChunkFloats / (kAllPoints * (x_.channels + dy_.channels)), kFewestChunkTiles));
}

int64_t WinogradFilter::points_floats(const WinogradImages& images) const {
  return kAllPoints * round_up(images.channels, panel_) * chunk_tiles_;
}

double WinogradFilter::workspace_floats() const {
  const double points =
      as_product({kAllPoints, round_up(x_.channels, panel_) + round_up(dy_.channels, panel_), chunk_tiles_});
  return points + as_product({kAllPoints, sums_point_}) + 16;
}

void WinogradFilter::transform(const WinogradImages& images, const float* data, int64_t first, int64_t tiles,
                               float* points) const {
  const int64_t panels = divide_up(images.channels, panel_);
  const auto kernel = images.size == 6 ? transforms_->input : transforms_->gradient;
  parallel_for(threads_, divide_up(tiles, kTilesInTask), [&](int64_t task, int) {
    WinogradTile where{};
    for (int64_t t = task * kTilesInTask; t < std::min(tiles, (task + 1) * kTilesInTask); ++t) {
      const int64_t offset = images.locate(tiling_, first + t, where);
      for (int64_t panel = 0; panel < panels; ++panel) {
        float* to = points + (panel * chunk_tiles_ + t) * panel_;
        const int64_t channels = std::min(panel_, images.channels - panel * panel_);
        kernel(data + offset + panel * panel_, where, channels, to, panels * chunk_tiles_ * panel_);
      }
    }
  });
}

void WinogradFilter::multiply(const float* x, const float* dy, int64_t tiles, bool accumulate, float* sums) const {
  const int64_t x_panels = divide_up(x_.channels, panel_);
  const int64_t dy_panels = divide_up(dy_.channels, panel_);
  const int64_t dy_tasks = divide_up(dy_panels, kPanelsInTask);
  const int64_t panel_floats = chunk_tiles_ * panel_;
  const int64_t rows_at_once = even_block(panel_, products_->tile_rows);
  parallel_for(threads_, kAllPoints * dy_tasks, [&](int64_t task, int) {
    const int64_t point = task / dy_tasks;
    const int64_t begin = task % dy_tasks * kPanelsInTask;
    GemmTile tile{};
    tile.k = tiles;
    tile.a_stride = panel_;
    tile.b_stride = panel_;
    tile.c_row = x_.channels;
    tile.c_column = 1;
    tile.accumulate = accumulate;
    for (int64_t xp = 0; xp < x_panels; ++xp) {
      tile.b = x + (point * x_panels + xp) * panel_floats;
      tile.columns = static_cast<int>(std::min(panel_, x_.channels - xp * panel_));
      for (int64_t dp = begin; dp < std::min(begin + kPanelsInTask, dy_panels); ++dp) {
        const int64_t channels = std::min(panel_, dy_.channels - dp * panel_);
        for (int64_t i = 0; i < channels; i += rows_at_once) {
          tile.rows = static_cast<int>(std::min(rows_at_once, channels - i));
          tile.a = dy + (point * dy_panels + dp) * panel_floats + i;
          tile.c = sums + point * sums_point_ + (dp * panel_ + i) * x_.channels + xp * panel_;
          products_->tile(tile);
        }
      }
    }
  });
}

void WinogradFilter::run(const float* dy, const float* x, float* dw, float* workspace) const {
  float* x_points = workspace;
  float* dy_points = x_points + points_floats(x_);
  float* sums = dy_points + points_floats(dy_);
  for (int64_t first = 0; first < tiling_.tiles; first += chunk_tiles_) {
    const int64_t tiles = std::min(chunk_tiles_, tiling_.tiles - first);
    transform(x_, x, first, tiles, x_points);
    transform(dy_, dy, first, tiles, dy_points);
    multiply(x_points, dy_points, tiles, first > 0, sums);
  }
  const int64_t filters = rows_per_task(x_.channels * kAllTaps);
  parallel_for(threads_, divide_up(dy_.channels, filters), [&](int64_t task, int) {
    for (int64_t k = task * filters; k < std::min(dy_.channels, (task + 1) * filters); ++k) {
      transforms_->weight_gradient(sums + k * x_.channels, sums_point_, x_.channels, dw + k * kAllTaps * x_.channels,
                                   x_.channels);
    }
  });
}

}  // namespace gpunn::cpu
