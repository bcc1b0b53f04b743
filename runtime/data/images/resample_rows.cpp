#include "data/images/resample_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace gpunn::data {

namespace {

constexpr int kWeightBits = 32 - 8 - 2;
constexpr int kLowBits = 12;
constexpr int32_t kHalfWeight = int32_t{1} << (kWeightBits - 1);

uint8_t rounded_sum(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

int32_t weighed(const TriangleFilter::Pair& pair, std::size_t which, uint8_t pixel) {
  return ((pair.high[which] << kLowBits) + pair.low[which]) * pixel;
}

// One value, `stride` bytes between the pixels that make it, of which `pixel` is the first.
uint8_t weigh_one(const TriangleFilter& filter, int64_t target, const uint8_t* pixel, std::size_t stride) {
  const TriangleFilter::Taps& taps = filter.taps(target);
  const TriangleFilter::Pair* pair = filter.pairs(target);
  int32_t sum = kHalfWeight;
  for (int64_t i = 0; i < taps.count; ++i, pixel += stride) {
    sum += weighed(pair[i / 2], static_cast<std::size_t>(i % 2), *pixel);
  }
  return rounded_sum(sum);
}

#ifdef __SSE2__

// Both weights of a pair, four times.
__m128i four_times(const std::array<int16_t, 2>& weights) {
  int32_t both = 0;
  std::memcpy(&both, weights.data(), sizeof(both));
  return _mm_set1_epi32(both);
}

// Of four values.
struct Sums {
  __m128i high = _mm_setzero_si128(), low = _mm_set1_epi32(kHalfWeight);

  void add(__m128i pixels, const TriangleFilter::Pair& pair) {
    high = _mm_add_epi32(high, _mm_madd_epi16(pixels, four_times(pair.high)));
    low = _mm_add_epi32(low, _mm_madd_epi16(pixels, four_times(pair.low)));
  }
  __m128i rounded() const { return _mm_srai_epi32(_mm_add_epi32(_mm_slli_epi32(high, kLowBits), low), kWeightBits); }
};

void weigh_colours_across(const TriangleFilter& across, const uint8_t* source, int64_t count, uint8_t* target) {
  const __m128i zero = _mm_setzero_si128();
  for (int64_t x = 0; x < count; ++x) {
    const TriangleFilter::Taps& taps = across.taps(x);
    const TriangleFilter::Pair* pair = across.pairs(x);
    const uint8_t* pixels = source + taps.first * 3;
    Sums sums;
    for (int64_t i = 0; i < taps.count; i += 2, pixels += 6, ++pair) {
      const __m128i rgbrgb = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixels));
      sums.add(_mm_unpacklo_epi8(_mm_unpacklo_epi8(rgbrgb, _mm_srli_si128(rgbrgb, 3)), zero), *pair);
    }
    const int32_t rgb = _mm_cvtsi128_si32(_mm_packus_epi16(_mm_packs_epi32(sums.rounded(), zero), zero));
    std::memcpy(target + x * 3, &rgb, 3);
  }
}

// Sixteen bytes of a row.
void weigh_down_16(const TriangleFilter::Pair* pair, int64_t count, const uint8_t* pixels, std::size_t row_bytes,
                   uint8_t* target) {
  const __m128i zero = _mm_setzero_si128();
  std::array<Sums, 4> sums;
  for (int64_t i = 0; i < count; i += 2, pixels += 2 * row_bytes, ++pair) {
    const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels));
    // Of an odd count the last weight is 0, and there may be no such row.
    const __m128i lower = i + 1 < count ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + row_bytes)) : zero;
    const __m128i first = _mm_unpacklo_epi8(upper, lower), last = _mm_unpackhi_epi8(upper, lower);
    sums[0].add(_mm_unpacklo_epi8(first, zero), *pair);
    sums[1].add(_mm_unpackhi_epi8(first, zero), *pair);
    sums[2].add(_mm_unpacklo_epi8(last, zero), *pair);
    sums[3].add(_mm_unpackhi_epi8(last, zero), *pair);
  }
  const __m128i left = _mm_packs_epi32(sums[0].rounded(), sums[1].rounded());
  const __m128i right = _mm_packs_epi32(sums[2].rounded(), sums[3].rounded());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm_packus_epi16(left, right));
}

#endif

}  // namespace

TriangleFilter::TriangleFilter(const ResizedSide& side) {
  const double scale = (side.to - side.from) / static_cast<double>(side.target);
  const double reach = std::max(1.0, scale);
  const auto least = static_cast<int64_t>(std::floor(side.from)), most = static_cast<int64_t>(std::ceil(side.to));
  // Halves round up, as Pillow's do: the sum is not negative, or is clamped to 0.
  const auto rounded = [](double value) { return static_cast<int64_t>(std::floor(value + 0.5)); };
  const double slope = 1 / reach;
  std::vector<double> exact;
  for (int64_t i = side.first; i < side.first + side.count; ++i) {
    const double centre = side.from + (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max(least, rounded(centre - reach));
    const int64_t end = std::min(most, rounded(centre + reach));
    exact.clear();
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      exact.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(j) - centre + 0.5) * slope)));
      sum += exact.back();
    }
    taps_.push_back({first, end - first, pairs_.size()});
    for (std::size_t k = 0; k < exact.size(); ++k) {
      const auto weight = static_cast<int32_t>(rounded(exact[k] / sum * static_cast<double>(1 << kWeightBits)));
      if (k % 2 == 0) pairs_.push_back({});
      pairs_.back().high[k % 2] = static_cast<int16_t>(weight >> kLowBits);
      pairs_.back().low[k % 2] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
    }
  }
}

void weigh_across(const TriangleFilter& across, const uint8_t* source, int64_t count, int64_t channels,
                  uint8_t* target) {
#ifdef __SSE2__
  if (channels == 3) {
    weigh_colours_across(across, source, count, target);
    return;
  }
#endif
  const auto stride = static_cast<std::size_t>(channels);
  for (int64_t x = 0; x < count; ++x) {
    const uint8_t* const first = source + across.taps(x).first * channels;
    for (std::size_t c = 0; c < stride; ++c) *target++ = weigh_one(across, x, first + c, stride);
  }
}

void weigh_down(const TriangleFilter& down, int64_t target_row, const uint8_t* first_row, std::size_t row_bytes,
                uint8_t* target) {
  std::size_t i = 0;
#ifdef __SSE2__
  const int64_t count = down.taps(target_row).count;
  for (; i + 16 <= row_bytes; i += 16) {
    weigh_down_16(down.pairs(target_row), count, first_row + i, row_bytes, target + i);
  }
#endif
  for (; i < row_bytes; ++i) target[i] = weigh_one(down, target_row, first_row + i, row_bytes);
}

}  // namespace gpunn::data
