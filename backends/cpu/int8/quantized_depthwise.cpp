// Depthwise convolution in eight bits: a task is a row of pixels of an image, its sums are of all channels at once.
#include <algorithm>

#include "convolution/quantized_convolution.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int16_t kDepthwiseFilterZero = 128;

// The pixel that a tap of an axis reads; -1: it lies in the padding.
int64_t pixel_at(const ConvolutionAxis& axis, int64_t output, int64_t tap) {
  const int64_t pixel = output * axis.stride - axis.pad + tap * axis.dilation;
  return pixel < axis.inputs ? std::max<int64_t>(pixel, -1) : -1;
}

}  // namespace

std::size_t QuantizedConvolution::depthwise_bytes() const {
  return static_cast<std::size_t>(shape_.rows.taps * shape_.columns.taps * padded_channels()) * sizeof(int16_t);
}

void QuantizedConvolution::pack_depthwise(const uint8_t* filter, int16_t* packed) const {
  const int64_t taps = shape_.rows.taps * shape_.columns.taps, padded = padded_channels();
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t c = 0; c < padded; ++c) {
      const bool there = c < shape_.groups;
      packed[tap * padded + c] =
          there ? static_cast<int16_t>(filter[c * taps + tap] - kDepthwiseFilterZero) : int16_t{0};
    }
  }
}

void QuantizedConvolution::run_depthwise(const Operands& operands, const Channels& channels, int32_t* sums) const {
  const ConvolutionAxis &rows = shape_.rows, &columns = shape_.columns;
  const int64_t count = shape_.groups, padded = padded_channels();
  const auto* const filter = static_cast<const int16_t*>(operands.packed);
  parallel_for(threads_, shape_.batch * rows.outputs, [&](int64_t task, int thread) {
    const int64_t image = task / rows.outputs, p = task % rows.outputs;
    int32_t* const mine = sums + thread * padded;
    Int8Store how = store_of(operands);
    for (int64_t q = 0; q < columns.outputs; ++q) {
      std::fill_n(mine, padded, 0);
      for (int64_t r = 0; r < rows.taps; ++r) {
        const int64_t row = pixel_at(rows, p, r);
        for (int64_t s = 0; s < columns.taps && row >= 0; ++s) {
          const int64_t column = pixel_at(columns, q, s);
          if (column < 0) continue;
          const int64_t pixel = (image * rows.inputs + row) * columns.inputs + column;
          kernels_->accumulate(operands.x + pixel * count, attrs_.x_zero_point,
                               filter + (r * columns.taps + s) * padded, mine, count);
        }
      }
      for (int64_t c = 0; c < count; c += Int8Tile::kColumns) {
        const int64_t at = (task * columns.outputs + q) * count + c;
        how.factor = channels.factor + c;
        how.offset = channels.offset + c;
        kernels_->store(mine + c, how, operands.residual == nullptr ? nullptr : operands.residual + at, operands.y + at,
                        static_cast<int>(std::min<int64_t>(Int8Tile::kColumns, count - c)));
      }
    }
  });
}

}  // namespace gpunn::cpu
