#pragma once

#include <algorithm>
#include <cstdint>

namespace gpunn::cpu {

// x[rows, channels, size]: `size` is the product of the dimensions after the channel's, 1 for [N,C].
struct ChannelShape {
  int64_t rows;
  int64_t channels;
  int64_t size;

  int64_t elements() const { return rows * channels * size; }
};

// Calls body(offset, first channel, strip) for strips of at most `largest` of `shape`, in the order of memory where
// they are whole rows, channels of a row, or elements of a channel.
template <class Body>
void each_strip(const ChannelShape& shape, const ChannelShape& largest, const Body& body) {
  for (int64_t row = 0; row < shape.rows; row += largest.rows) {
    for (int64_t c = 0; c < shape.channels; c += largest.channels) {
      for (int64_t i = 0; i < shape.size; i += largest.size) {
        const ChannelShape strip{.rows = std::min(largest.rows, shape.rows - row),
                                 .channels = std::min(largest.channels, shape.channels - c),
                                 .size = std::min(largest.size, shape.size - i)};
        body((row * shape.channels + c) * shape.size + i, c, strip);
      }
    }
  }
}

}  // namespace gpunn::cpu
