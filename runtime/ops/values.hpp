#pragma once

#include <gpunn/random.h>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gpunn::ops {

// A tensor of any type with its values widened to float64 (integers up to 2^53 are exact).
struct ReferenceTensor {
  TensorType type;
  std::vector<double> values;
};

// A tensor [N,C,...] as [images][channels][inner], whose first `counted` images enter the statistics.
struct ChannelView {
  std::size_t images, channels, inner, counted;

  double elements() const { return static_cast<double>(counted * inner); }

  // visit(element) for what of channel c is in the images [0, last).
  template <class Visit>
  void for_channel(std::size_t c, std::size_t last, Visit visit) const {
    for (std::size_t n = 0; n < last; ++n) {
      for (std::size_t i = 0; i < inner; ++i) visit((n * channels + c) * inner + i);
    }
  }
};

// Test data that depends on the seed and the case's name alone, so that a case can be repeated by itself.
class Random {
 public:
  Random(uint64_t seed, std::string_view stream);
  double uniform(double low, double high);
  int64_t below(int64_t n);  // 0..n-1

 private:
  uint32_t word();
  uint64_t seed_, stream_, position_ = 0;
  gpunn_random_words block_{};  // that position_ is in
};

// The value of the type that is nearest, or for an integer type the one towards zero.
double rounded(double value, DType type);

// A number as it lies in memory.
void store(double value, DType type, std::byte* to);

// The tensor as it lies in memory, and back.
std::vector<std::byte> encode(const ReferenceTensor& tensor);
ReferenceTensor decode(const TensorType& type, std::span<const std::byte> bytes);

}  // namespace gpunn::ops
