// bf16 and f16 as C++ numbers, for the host and for plugins that compute on it. Each converts to f32 exactly. An f32 is
// rounded to the nearest one, ties to even; beyond the largest it becomes an infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace gpunn {

// IEEE binary16.
class Half {
 public:
  Half() = default;
  explicit Half(float value) : bits_(rounded(std::bit_cast<uint32_t>(value))) {}
  static Half of_bits(uint16_t bits) {
    Half half;
    half.bits_ = bits;
    return half;
  }
  uint16_t bits() const { return bits_; }

  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits_ & 0x8000U) << 16;
    const uint32_t exponent = (bits_ >> 10) & 0x1FU;
    const uint32_t fraction = bits_ & 0x3FFU;
    if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    constexpr float kSmallest = 5.9604644775390625e-8F;  // 2^-24, a step between subnormals
    return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(fraction) * kSmallest) | sign);
  }

 private:
  static uint16_t rounded(uint32_t value) {
    constexpr uint32_t kInfinity = 0x7C00U, kNan = 0x7E00U;
    constexpr uint32_t kSmallestNormal = 0x38800000U;    // 2^-14
    constexpr uint32_t kRoundsToInfinity = 0x477FF000U;  // 65520
    const uint32_t sign = (value >> 16) & 0x8000U;
    const uint32_t magnitude = value & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<uint16_t>(sign | kNan);
    if (magnitude >= kRoundsToInfinity) return static_cast<uint16_t>(sign | kInfinity);
    if (magnitude < kSmallestNormal) {
      // Beside 1/2 an f32 has steps of 2^-24, as subnormals have.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F)));
    }
    const uint32_t up = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    return static_cast<uint16_t>(sign | (up - (112U << 23)) >> 13);
  }

  uint16_t bits_ = 0;
};

// The upper half of an f32.
class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) : bits_(rounded(std::bit_cast<uint32_t>(value))) {}
  static BFloat16 of_bits(uint16_t bits) {
    BFloat16 number;
    number.bits_ = bits;
    return number;
  }
  uint16_t bits() const { return bits_; }

  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16); }

 private:
  static uint16_t rounded(uint32_t value) {
    if ((value & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>(value >> 16 | 0x40U);  // a NaN stays one
    return static_cast<uint16_t>((value + 0x7FFFU + ((value >> 16) & 1U)) >> 16);
  }

  uint16_t bits_ = 0;
};

}  // namespace gpunn
