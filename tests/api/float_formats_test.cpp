#include <gpunn/float_formats.hpp>

#include <cmath>
#include <limits>

#include <catch.hpp>

using gpunn::BFloat16;
using gpunn::Half;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double value_of_half(uint32_t bits) {
  return bits < 0x400 ? std::ldexp(static_cast<double>(bits), -24)
                      : std::ldexp(1024.0 + (bits & 0x3FFU), static_cast<int>(bits >> 10) - 25);
}

}  // namespace

TEST_CASE("each f16 is the number that its bits say, and is rounded to itself") {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const Half half = Half::of_bits(static_cast<uint16_t>(bits));
    const Half minus = Half::of_bits(static_cast<uint16_t>(bits | 0x8000U));
    if (half != static_cast<float>(value_of_half(bits)) || minus != -static_cast<float>(value_of_half(bits)))
      FAIL(bits);
    if (Half(half).bits() != half.bits() || Half(minus).bits() != minus.bits()) FAIL(bits);
  }
  CHECK(Half::of_bits(0x7C00) == kInf);
  CHECK(std::isnan(Half::of_bits(0x7E00)));
  CHECK(std::isnan(Half(std::nanf(""))));
  CHECK(Half(-kInf) == -kInf);
  CHECK(std::signbit(Half(-0.0F)));
}

TEST_CASE("between two f16 the nearer is taken, in the middle the even one") {
  for (uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {
    const auto middle = static_cast<float>((value_of_half(bits) + value_of_half(bits + 1)) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    if (Half(middle).bits() != even || Half(-middle).bits() != (even | 0x8000U)) FAIL(bits);
    if (Half(std::nextafter(middle, 0.0F)).bits() != bits) FAIL(bits);
    if (Half(std::nextafter(middle, kInf)).bits() != bits + 1) FAIL(bits);
  }
  CHECK(Half(65519.996F) == 65504.0F);
  CHECK(Half(65520.0F) == kInf);
}

TEST_CASE("a bf16 is the upper half of an f32, rounded to the nearest, in the middle to the even one") {
  CHECK(BFloat16(1.0F).bits() == 0x3F80);
  CHECK(BFloat16(1.00390625F).bits() == 0x3F80);  // the middle
  CHECK(BFloat16(1.01171875F).bits() == 0x3F82);  // the next
  CHECK(BFloat16(1.0040F).bits() == 0x3F81);
  CHECK(BFloat16(-1.0040F).bits() == 0xBF81);
  CHECK(BFloat16(std::numeric_limits<float>::max()) == kInf);
  CHECK(BFloat16(-kInf) == -kInf);
  CHECK(std::isnan(BFloat16(std::nanf(""))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 number = BFloat16::of_bits(static_cast<uint16_t>(bits));
    if (!std::isnan(number) && BFloat16(number).bits() != bits) FAIL(bits);
  }
}
