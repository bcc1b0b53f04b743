#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpunn::data {

// One side of a picture: the stretch of it that is scaled, the length that becomes, and the part of that which is kept.
struct ResizedSide {
  double from = 0, to = 0;
  int64_t target = 0;
  int64_t first = 0, count = 0;
};

// The source positions that make each kept target position along one side, and their weights.
class TriangleFilter {
 public:
  // A target pixel is a triangle around its centre. Growing, the triangle reaches to the next source pixels; shrinking,
  // it widens to the next target pixels, so that every source pixel counts and thin lines don't vanish.
  explicit TriangleFilter(const ResizedSide& side);

  // Weights are integers, 1 being 2^22: eight bits of pixel and the sign leave a 32-bit sum room for weights of up to
  // 2. They come in pairs, as positions do, and each as a higher and a lower part of 16 bits, of which one instruction
  // multiplies two with two pixels and adds: high * 2^12 + low.
  struct Pair {
    std::array<int16_t, 2> high, low;
  };
  struct Taps {
    int64_t first = 0, count = 0;
    std::size_t pairs = 0;  // where they begin; of an odd count the last weight is 0
  };

  // `target` counts from 0, the first one kept.
  const Taps& taps(int64_t target) const { return taps_[static_cast<std::size_t>(target)]; }
  const Pair* pairs(int64_t target) const { return pairs_.data() + taps(target).pairs; }

 private:
  std::vector<Taps> taps_;
  std::vector<Pair> pairs_;
};

// How many bytes behind a row's pixels weigh_across() may read.
inline constexpr std::size_t kReadBeyond = 8;

// `count` target pixels of a row, of 1 or 3 channels. Positions of the filter are pixels of `source`.
void weigh_across(const TriangleFilter& across, const uint8_t* source, int64_t count, int64_t channels,
                  uint8_t* target);

// A target row of so many bytes. `first_row` is the first of the rows that make it.
void weigh_down(const TriangleFilter& down, int64_t target_row, const uint8_t* first_row, std::size_t row_bytes,
                uint8_t* target);

}  // namespace gpunn::data
