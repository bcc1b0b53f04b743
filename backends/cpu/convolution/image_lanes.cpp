#include "convolution/image_lanes.hpp"

#include <algorithm>

#include "threads/grain.hpp"

namespace gpunn::cpu {
namespace {

// The share of lane rows that hold a row of the result.
double filled(int64_t batch, int64_t lanes, int64_t targets, int64_t strips, int64_t strip_targets) {
  const auto lane_rows =
      static_cast<double>(divide_up(batch * strips, lanes) * lanes) * static_cast<double>(strip_targets);
  return static_cast<double>(batch) * static_cast<double>(targets) / lane_rows;
}

}  // namespace

ImageLanes::ImageLanes(int64_t images, int64_t width, int64_t targets, int64_t target_step, int64_t per_target)
    : batch(images), lanes(width) {
  const auto rows_of = [&](int64_t n) { return divide_up(divide_up(targets, n), target_step) * target_step; };
  strip_targets = rows_of(1);
  // Each strip loads its neighbours' edges as well, so that more strips must gain something.
  constexpr double kGain = 1.1;
  double best = filled(batch, lanes, targets, 1, strip_targets);
  for (int64_t n = 2; n <= lanes && n <= targets; n *= 2) {
    const double share = filled(batch, lanes, targets, n, rows_of(n));
    if (share > kGain * best) {
      best = share;
      strips = n;
      strip_targets = rows_of(n);
    }
  }
  strip_sources = strip_targets / target_step * per_target;
  blocks = divide_up(items(), lanes);
}

void load_rows(const ConvolutionKernels& kernels, const ImageLanes& lanes, int64_t strip_rows, int64_t block,
               const Planes<const float>& planes, int64_t begin, int64_t end, float* to, int64_t to_row,
               int64_t to_column) {
  const float* from[ImageLanes::kMostLanes];
  const bool one_run = lanes.strips == 1 && to_row == planes.width * to_column && begin >= 0 && end <= planes.height;
  const int64_t rows_in_run = one_run ? end - begin : 1;
  for (int64_t row = begin; row < end; row += rows_in_run) {
    for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
      const int64_t item = block * lanes.lanes + lane;
      const int64_t at = row + lanes.strip(item) * strip_rows;
      from[lane] = item < lanes.items() && at >= 0 && at < planes.height
                       ? planes.data + lanes.image(item) * planes.image + at * planes.width
                       : nullptr;
    }
    kernels.load_lanes(from, rows_in_run * planes.width, to + (row - begin) * to_row, to_column);
  }
}

void store_rows(const ConvolutionKernels& kernels, const ImageLanes& lanes, int64_t block, const Planes<float>& planes,
                int64_t begin, int64_t end, const float* from, float bias, bool relu) {
  float* to[ImageLanes::kMostLanes];
  const bool one_run = lanes.strips == 1 && end <= planes.height;
  const int64_t rows_in_run = one_run ? end - begin : 1;
  for (int64_t row = begin; row < end; row += rows_in_run) {
    for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
      const int64_t item = block * lanes.lanes + lane;
      const int64_t at = row + lanes.strip(item) * lanes.strip_targets;
      to[lane] = item < lanes.items() && at < planes.height
                     ? planes.data + lanes.image(item) * planes.image + at * planes.width
                     : nullptr;
    }
    kernels.store_lanes(from + (row - begin) * planes.width * lanes.lanes, rows_in_run * planes.width, bias, relu, to);
  }
}

}  // namespace gpunn::cpu
