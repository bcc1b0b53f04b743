// What a tap of a target is in padded pixels, against what the target sees, copied side by side.
#include "half/padded_pixels.hpp"

#include <array>
#include <vector>

#include "catch.hpp"

namespace {

using gpunn::BFloat16;
using gpunn::backends::ConvolutionAxis;
using gpunn::backends::ConvolutionShape;
using gpunn::cpu::GroupedImages;
using gpunn::cpu::images_of;
using gpunn::cpu::padded_pixels;
using gpunn::cpu::PaddedPixels;
using gpunn::cpu::target_classes;
using gpunn::cpu::TargetClass;

constexpr int64_t kManyChannels = 1;  // of products: copying always costs more than the gaps

ConvolutionAxis axis(int64_t inputs, int64_t taps, int64_t stride, int64_t pad, int64_t dilation) {
  return {inputs, (inputs + 2 * pad - dilation * (taps - 1) - 1) / stride + 1, taps, stride, pad, dilation};
}

// Numbers that all differ, and that bf16 holds.
std::vector<BFloat16> numbers(int64_t count) {
  std::vector<BFloat16> made;
  for (int64_t i = 0; i < count; ++i) made.push_back(BFloat16::of_bits(static_cast<uint16_t>(i % 30000 + 128)));
  return made;
}

// How many targets' taps were compared.
int64_t compare(const ConvolutionShape& shape, bool forward, int64_t group) {
  const GroupedImages source = images_of(shape, !forward);
  const int64_t channels = source.channels, stride = channels + 1;
  const std::vector<BFloat16> data = numbers(shape.batch * source.height * source.width * source.all_channels);
  int64_t compared = 0;
  for (const TargetClass& targets : target_classes(shape, forward)) {
    const auto padded = padded_pixels(source, targets, shape.batch, kManyChannels);
    if (!padded.has_value()) continue;
    const int64_t in_image = targets.rows.targets * targets.columns.targets, all = shape.batch * in_image;
    std::vector<BFloat16> rows(static_cast<std::size_t>(all * targets.taps() * channels));
    copy_rows(source, targets, data.data(), group * channels, channels, {0, targets.taps()}, 0, all, rows.data(),
              targets.taps() * channels);
    // In two pieces, as tasks have them.
    const int64_t middle = padded->pixels() / 2;
    for (const std::array<int64_t, 2>& piece : {std::array<int64_t, 2>{0, middle}, {middle, padded->pixels()}}) {
      const int64_t begin = piece[0] + padded->first_offset(targets);
      const int64_t end = piece[1] + padded->first_offset(targets) + padded->last_tap_offset(targets);
      std::vector<BFloat16> pixels(static_cast<std::size_t>((end - begin) * stride), BFloat16(7.0F));
      padded->copy(source, data.data(), group * channels, channels, begin, end, pixels.data(), stride, stride);
      for (int64_t target = 0; target < all; ++target) {
        const int64_t line = target / targets.columns.targets;
        const int64_t pixel = padded->pixel(targets, line / targets.rows.targets, line % targets.rows.targets,
                                            target % targets.columns.targets);
        if (pixel < piece[0] || pixel >= piece[1]) continue;
        for (int64_t tap = 0; tap < targets.taps(); ++tap) {
          const int64_t offset = padded->tap_offset(targets, tap / targets.columns.taps, tap % targets.columns.taps);
          const BFloat16* seen = pixels.data() + (pixel - piece[0] + offset) * stride;
          const BFloat16* copied = rows.data() + (target * targets.taps() + tap) * channels;
          for (int64_t c = 0; c < channels; ++c) REQUIRE(seen[c].bits() == copied[c].bits());
          REQUIRE(seen[channels].bits() == 0);
          ++compared;
        }
      }
    }
    if (compared == 0) FAIL("no target was found");
  }
  return compared;
}

}  // namespace

TEST_CASE("a tap is an offset in padded pixels, forward and backward") {
  for (const int64_t taps : {1, 2, 3, 5}) {
    for (const int64_t pad : {0, 1, 2, 4}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t stride : {1, 2}) {
          const ConvolutionShape shape{.batch = 3,
                                       .groups = 2,
                                       .group_inputs = 3,
                                       .group_outputs = 2,
                                       .rows = axis(9, taps, 1, pad, 1),
                                       .columns = axis(11, taps, stride, pad, dilation)};
          INFO(taps << " taps, pad " << pad << ", dilation " << dilation << ", stride " << stride);
          const int64_t outputs = 3 * shape.rows.outputs * shape.columns.outputs;
          CHECK(compare(shape, true, 1) == (stride == 1 || taps > 1 ? outputs * taps * taps : 0));
          CHECK(compare(shape, false, 0) > 0);
        }
      }
    }
  }
}
