#include "convolution/depthwise.hpp"

#include <algorithm>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kMostDepthwiseChunks = 16;
// Channels that are taken at once through several rows of the image: the rows that a filter sees stay in the
// first-level cache.
constexpr int64_t kDepthwiseChannels = 128;

// Calls body(row, first channel, channels) for the rows [begin, end).
template <class Body>
void each_channel_block(int64_t begin, int64_t end, int64_t channels, const Body& body) {
  for (int64_t first = 0; first < channels; first += kDepthwiseChannels) {
    for (int64_t row = begin; row < end; ++row) body(row, first, std::min(kDepthwiseChannels, channels - first));
  }
}

// Calls body(begin, end, taps) for runs of targets [begin, end) of a class that take the same taps inside the image.
template <class Body>
void each_run(const AxisClass& axis, int64_t inputs, const Body& body) {
  for (int64_t begin = 0; begin < axis.targets;) {
    const TapRange taps = axis.taps_within(begin, 0, inputs);
    int64_t end = begin + 1;
    for (; end < axis.targets; ++end) {
      const TapRange next = axis.taps_within(end, 0, inputs);
      if (next.begin != taps.begin || next.end != taps.end) break;
    }
    body(begin, end, taps);
    begin = end;
  }
}

}  // namespace

bool is_depthwise(const ConvolutionShape& s) {
  return s.groups > 1 && s.group_inputs == 1 && s.group_outputs == 1 && s.rows.taps <= kMostDepthwiseRows;
}

DepthwiseImages::DepthwiseImages(const ConvolutionShape& shape, ConvolutionPass pass, int threads)
    : kernels_(&GPUNN_SELECT_ISA(depthwise_kernels)),
      threads_(threads),
      batch_(shape.batch),
      tap_rows_(shape.rows.taps),
      tap_columns_(shape.columns.taps),
      source_(images_of(shape, pass != ConvolutionPass::forward)),
      target_(images_of(shape, pass == ConvolutionPass::forward)) {
  const bool forward = pass == ConvolutionPass::forward;
  row_classes_ = forward ? forward_classes(shape.rows) : backward_classes(shape.rows);
  for (const AxisClass& axis : forward ? forward_classes(shape.columns) : backward_classes(shape.columns)) {
    add_columns(axis);
  }
}

void DepthwiseImages::add_columns(const AxisClass& axis) {
  each_run(axis, source_.width, [&](int64_t begin, int64_t end, TapRange taps) {
    Columns made{.first_target = axis.first_target + begin * axis.target_step,
                 .target_step = axis.target_step,
                 .targets = end - begin,
                 .source = 0,
                 .per_target = axis.per_target,
                 .per_tap = axis.per_tap,
                 .tap = axis.first_tap + taps.begin * axis.tap_step,
                 .tap_step = axis.tap_step,
                 .taps = taps.end - taps.begin};
    if (made.taps > 0) made.source = axis.source(begin, taps.begin);
    columns_.push_back(made);
  });
}

double DepthwiseImages::workspace_floats() const {
  return static_cast<double>(tap_rows_ * tap_columns_) * static_cast<double>(target_.all_channels);
}

template <class T>
void DepthwiseImages::run_row(int64_t image, int64_t row, int64_t first_channel, int64_t channels_at_once,
                              const T* source, const float* taps, const float* bias, bool relu, T* target) const {
  const int64_t channels = target_.all_channels;
  const int64_t step = row_classes_[0].target_step;
  const AxisClass& axis = row_classes_[static_cast<std::size_t>(row % step)];
  const TapRange range = axis.taps_within(row / step, 0, source_.height);
  const T* source_rows[kMostDepthwiseRows];
  const float* filter_rows[kMostDepthwiseRows];
  for (const Columns& columns : columns_) {
    DepthwiseRun<T> run{};
    run.x = source_rows;
    run.w = filter_rows;
    run.taps = static_cast<int>(columns.taps);
    run.rows = columns.taps == 0 ? 0 : static_cast<int>(range.end - range.begin);
    run.x_tap = columns.per_tap * channels;
    run.w_tap = columns.tap_step * channels;
    run.x_target = columns.per_target * channels;
    run.targets = columns.targets;
    run.channels = channels_at_once;
    for (int r = 0; r < run.rows; ++r) {
      const int64_t u = range.begin + r;
      const int64_t at = (image * source_.height + axis.source(row / step, u)) * source_.width + columns.source;
      source_rows[r] = source + at * channels + first_channel;
      filter_rows[r] =
          taps + ((axis.first_tap + u * axis.tap_step) * tap_columns_ + columns.tap) * channels + first_channel;
    }
    T* to = target + ((image * target_.height + row) * target_.width + columns.first_target) * channels + first_channel;
    const float* own_bias = bias == nullptr ? nullptr : bias + first_channel;
    kernels_->of<T>().row(run, own_bias, relu, to, columns.target_step * channels);
  }
}

template <class T>
void DepthwiseImages::run(const T* source, const T* filter, const float* bias, bool relu, T* target,
                          float* workspace) const {
  const int64_t channels = target_.all_channels;
  const int64_t all_taps = tap_rows_ * tap_columns_;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < all_taps; ++tap)
      workspace[tap * channels + c] = static_cast<float>(filter[c * all_taps + tap]);
  }
  const int64_t rows = batch_ * target_.height;
  const int64_t at_once = rows_per_task(target_.width * channels);
  parallel_for(threads_, divide_up(rows, at_once), [&](int64_t task, int) {
    each_channel_block(
        task * at_once, std::min(rows, (task + 1) * at_once), channels, [&](int64_t row, int64_t first, int64_t n) {
          run_row(row / target_.height, row % target_.height, first, n, source, workspace, bias, relu, target);
        });
  });
}

DepthwiseFilter::DepthwiseFilter(const ConvolutionShape& shape, int threads)
    : kernels_(&GPUNN_SELECT_ISA(depthwise_kernels)),
      threads_(threads),
      batch_(shape.batch),
      x_(images_of(shape, false)),
      dy_(images_of(shape, true)),
      rows_(forward_classes(shape.rows)[0]),
      columns_(forward_classes(shape.columns)[0]),
      chunks_(std::min(kMostDepthwiseChunks, shape.batch * dy_.height)) {}

double DepthwiseFilter::workspace_floats() const {
  return static_cast<double>(chunks_) * static_cast<double>(rows_.taps * columns_.taps) *
         static_cast<double>(x_.all_channels);
}

template <class T>
void DepthwiseFilter::add_row(int64_t image, int64_t row, int64_t first_channel, int64_t channels_at_once, const T* dy,
                              const T* x, float* sums) const {
  const int64_t channels = x_.all_channels;
  const TapRange range = rows_.taps_within(row, 0, x_.height);
  if (range.begin == range.end) return;
  const T* source_rows[kMostDepthwiseRows];
  each_run(columns_, x_.width, [&](int64_t begin, int64_t end, TapRange taps) {
    if (taps.begin == taps.end) return;
    DepthwiseRun<T> run{};
    run.x = source_rows;
    run.rows = static_cast<int>(range.end - range.begin);
    run.taps = static_cast<int>(taps.end - taps.begin);
    run.x_tap = columns_.per_tap * channels;
    run.x_target = columns_.per_target * channels;
    run.targets = end - begin;
    run.channels = channels_at_once;
    for (int r = 0; r < run.rows; ++r) {
      const int64_t source = rows_.source(row, range.begin + r);
      source_rows[r] =
          x + ((image * x_.height + source) * x_.width + columns_.source(begin, taps.begin)) * channels + first_channel;
    }
    const T* gradients = dy + ((image * dy_.height + row) * dy_.width + begin) * channels + first_channel;
    float* to = sums + (range.begin * columns_.taps + taps.begin) * channels + first_channel;
    kernels_->of<T>().filter(run, gradients, channels, to, columns_.taps * channels, channels);
  });
}

template <class T>
void DepthwiseFilter::run(const T* dy, const T* x, T* dw, float* workspace) const {
  const int64_t channels = x_.all_channels;
  const int64_t all_taps = rows_.taps * columns_.taps;
  const int64_t rows = batch_ * dy_.height;
  parallel_for(threads_, chunks_, [&](int64_t chunk, int) {
    float* sums = workspace + chunk * all_taps * channels;
    std::fill_n(sums, all_taps * channels, 0.0F);
    const int64_t at_once = rows_per_task(dy_.width * channels);
    const int64_t end = rows * (chunk + 1) / chunks_;
    for (int64_t row = rows * chunk / chunks_; row < end; row += at_once) {
      each_channel_block(row, std::min(end, row + at_once), channels, [&](int64_t at, int64_t first, int64_t n) {
        add_row(at / dy_.height, at % dy_.height, first, n, dy, x, sums);
      });
    }
  });
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < all_taps; ++tap) {
      float sum = 0;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) sum += workspace[(chunk * all_taps + tap) * channels + c];
      dw[c * all_taps + tap] = T(sum);
    }
  }
}

template void DepthwiseImages::run(const float*, const float*, const float*, bool, float*, float*) const;
template void DepthwiseImages::run(const BFloat16*, const BFloat16*, const float*, bool, BFloat16*, float*) const;
template void DepthwiseFilter::run(const float*, const float*, float*, float*) const;
template void DepthwiseFilter::run(const BFloat16*, const BFloat16*, BFloat16*, float*) const;

}  // namespace gpunn::cpu
