#include "half/padded_pixels.hpp"

#include <algorithm>

#include "threads/grain.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kTileRows = 16;
// Copying what a target sees takes as long as multiplying it with so many channels.
constexpr int64_t kCopyingChannels = 64;
// Numbers that a task may copy beside those of its own pixels.
constexpr int64_t kMostSeen = 256 * 1024;

// Of a line of `size` pixels and its zeros, or of an image's lines.
int64_t padded_size(const AxisClass& axis, int64_t size) {
  const int64_t low = axis.source(0, 0), high = axis.source(axis.targets - 1, axis.taps - 1);
  return std::max(size + std::max<int64_t>({-low, high - (size - 1), 0}), (axis.targets - 1) * axis.per_target + 1);
}

}  // namespace

std::optional<PaddedPixels> padded_pixels(const GroupedImages& source, const TargetClass& targets, int64_t batch,
                                          int64_t channels) {
  // Windows that do not overlap are copied once in any case.
  if (targets.taps() == 0) return std::nullopt;
  if (targets.is_strided() && targets.taps() <= targets.rows.per_target * targets.columns.per_target) {
    return std::nullopt;
  }
  const PaddedPixels padded{.images = batch,
                            .lines = padded_size(targets.rows, source.height),
                            .pitch = padded_size(targets.columns, source.width)};
  if (padded.last_tap_offset(targets) * source.channels > kMostSeen) return std::nullopt;
  const int64_t rows = targets.is_strided() ? targets.rows.targets * round_up(targets.columns.targets, kTileRows)
                                            : padded.lines * padded.pitch;
  const int64_t pixels = targets.rows.targets * targets.columns.targets;
  if (rows * channels > pixels * (channels + kCopyingChannels)) return std::nullopt;
  return padded;
}

void PaddedPixels::copy(const GroupedImages& source, const BFloat16* data, int64_t channel, int64_t channels,
                        int64_t begin, int64_t end, BFloat16* to, int64_t stride, int64_t padded) const {
  const auto run = [&](int64_t image, int64_t row, int64_t column, int64_t first, int64_t count) {
    const BFloat16* from =
        data + ((image * source.height + row) * source.width + column) * source.all_channels + channel;
    BFloat16* at = to + first * stride;
    if (channels == source.all_channels && channels == stride) {
      std::copy_n(from, count * channels, at);
      return;
    }
    for (int64_t i = 0; i < count; ++i, from += source.all_channels, at += stride) {
      std::copy_n(from, channels, at);
      std::fill(at + channels, at + padded, BFloat16());
    }
  };
  const auto gap = [&](int64_t first, int64_t count) { std::fill_n(to + first * stride, count * stride, BFloat16()); };
  walk(source.height, source.width, begin, end, run, gap);
}

}  // namespace gpunn::cpu
