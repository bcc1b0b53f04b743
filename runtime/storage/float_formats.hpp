#pragma once

#include <bit>
#include <cstdint>

namespace gpunn::storage {

// IEEE binary16, exactly: every value is an f32.
inline float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  constexpr float kSmallest = 5.9604644775390625e-8F;  // 2^-24, a step between subnormals
  const float magnitude = static_cast<float>(fraction) * kSmallest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

// bf16 is the upper half of an f32.
inline float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace gpunn::storage
