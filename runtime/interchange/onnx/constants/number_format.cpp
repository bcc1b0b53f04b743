#include "interchange/onnx/constants/number_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

NumberFormat integer(int bits, bool is_signed) {
  return {.kind = NumberKind::integer, .bits = bits, .is_signed = is_signed};
}

NumberFormat floating(int exponent_bits, int fraction_bits, Specials specials = Specials::ieee) {
  const int ieee_bias = (1 << (exponent_bits - 1)) - 1;
  return {.kind = NumberKind::floating,
          .bits = 1 + exponent_bits + fraction_bits,
          .is_signed = true,
          .exponent_bits = exponent_bits,
          .fraction_bits = fraction_bits,
          .bias = ieee_bias + (specials == Specials::nuz ? 1 : 0),
          .specials = specials};
}

}  // namespace

NumberFormat format_of(Element element) {
  switch (element) {
    case Element::f64:
      return floating(11, 52);
    case Element::f32:
      return floating(8, 23);
    case Element::f16:
      return floating(5, 10);
    case Element::bf16:
      return floating(8, 7);
    case Element::f8e4m3fn:
      return floating(4, 3, Specials::one_nan);
    case Element::f8e4m3fnuz:
      return floating(4, 3, Specials::nuz);
    case Element::f8e5m2:
      return floating(5, 2);
    case Element::f8e5m2fnuz:
      return floating(5, 2, Specials::nuz);
    case Element::f4e2m1:
      return floating(2, 1, Specials::none);
    case Element::f8e8m0:
      return {.kind = NumberKind::floating,
              .bits = 8,
              .is_signed = false,
              .exponent_bits = 8,
              .fraction_bits = 0,
              .bias = 127,
              .specials = Specials::one_nan};
    case Element::u8:
    case Element::boolean:
      return integer(8, false);
    case Element::u2:
      return integer(2, false);
    case Element::i2:
      return integer(2, true);
    case Element::u4:
      return integer(4, false);
    case Element::i4:
      return integer(4, true);
    case Element::i8:
      return integer(8, true);
    case Element::u16:
      return integer(16, false);
    case Element::i16:
      return integer(16, true);
    case Element::u32:
      return integer(32, false);
    case Element::i32:
      return integer(32, true);
    case Element::u64:
      return integer(64, false);
    case Element::i64:
      return integer(64, true);
    case Element::none:
    case Element::text:
      break;
  }
  return {};
}

double decoded(const NumberFormat& format, uint64_t bits) {
  const auto field = [&](int from, int count) { return (bits >> from) & ((uint64_t{1} << count) - 1); };
  const uint64_t fraction = field(0, format.fraction_bits),
                 exponent = field(format.fraction_bits, format.exponent_bits);
  const uint64_t most = (uint64_t{1} << format.exponent_bits) - 1;
  const bool is_negative = format.is_signed && field(format.bits - 1, 1) != 0;
  const bool is_last = exponent == most && fraction == (uint64_t{1} << format.fraction_bits) - 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (format.specials == Specials::one_nan && is_last) return kNan;
  if (format.specials == Specials::nuz && is_negative && exponent == 0 && fraction == 0) return kNan;
  const double sign = is_negative ? -1 : 1;
  if (format.specials == Specials::ieee && exponent == most) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : kNan;
  }
  // The lowest exponent is that of subnormal numbers. A type that has only exponents has no 0, and none of these.
  const bool is_subnormal = exponent == 0 && format.is_signed;
  const double whole = is_subnormal ? 0 : std::ldexp(1.0, format.fraction_bits);
  const int power = std::max(static_cast<int>(exponent), is_subnormal ? 1 : 0) - format.bias - format.fraction_bits;
  return sign * std::ldexp(whole + static_cast<double>(fraction), power);
}

double largest_of(Element element) {
  const NumberFormat format = format_of(element);
  const uint64_t all = (uint64_t{1} << (format.exponent_bits + format.fraction_bits)) - 1;
  const uint64_t infinity = all - ((uint64_t{1} << format.fraction_bits) - 1);
  if (format.specials == Specials::ieee) return decoded(format, infinity - 1);
  return decoded(format, format.specials == Specials::one_nan ? all - 1 : all);
}

double rounded(Element element, double value, bool saturates) {
  if (element == Element::f64) return value;
  if (element == Element::f32 && !saturates) return static_cast<double>(static_cast<float>(value));
  const NumberFormat format = format_of(element);
  if (format.kind != NumberKind::floating) throw Unsupported("computes in " + name_of(element));
  if (element == Element::f8e8m0) return rounded_to_power(value, saturates, "up");
  if (std::isnan(value)) {
    if (format.specials == Specials::none) throw Unsupported("makes " + name_of(element) + " of NaN, which it lacks");
    return value;
  }
  const double largest = largest_of(element), magnitude = std::abs(value);
  double nearest = magnitude;
  if (std::isfinite(value)) {
    int above = 0;
    std::frexp(magnitude, &above);  // magnitude is below 2^above
    const double step = std::ldexp(1.0, std::max(above - 1, 1 - format.bias) - format.fraction_bits);
    nearest = std::nearbyint(magnitude / step) * step;
  }
  if (nearest > largest) {
    const bool keeps = saturates || format.specials == Specials::none;
    nearest = keeps                               ? largest
              : format.specials == Specials::ieee ? std::numeric_limits<double>::infinity()
                                                  : std::numeric_limits<double>::quiet_NaN();
  }
  if (nearest == 0 && format.specials == Specials::nuz) return 0;
  return std::copysign(nearest, value);
}

double rounded_to_power(double value, bool saturates, const std::string& mode) {
  if (value < 0) throw Unsupported("makes float8e8m0, which has no sign, of " + text(value));
  if (mode != "up" && mode != "down" && mode != "nearest") throw Unsupported("rounds by " + mode);
  constexpr uint32_t kMost = 0xFF, kFraction = 0x7FFFFF, kHalf = 0x400000;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t fraction = bits & kFraction;
  uint32_t exponent = (bits >> 23) & kMost;
  if (exponent == kMost) return std::numeric_limits<double>::quiet_NaN();
  const bool is_nearer_above = fraction > kHalf || (fraction == kHalf && exponent > 0);
  const bool goes_up = mode == "up" ? fraction != 0 : mode == "nearest" && is_nearer_above;
  if (goes_up && !(saturates && exponent == kMost - 1)) ++exponent;
  return decoded(format_of(Element::f8e8m0), exponent);
}

int64_t wrapped(Element element, int64_t value) {
  if (element == Element::boolean) return value != 0 ? 1 : 0;
  const NumberFormat format = format_of(element);
  const int unused = 64 - format.bits;
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return format.is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

int64_t lowest_integer(Element element) {
  const NumberFormat format = format_of(element);
  return format.is_signed ? std::numeric_limits<int64_t>::min() >> (64 - format.bits) : 0;
}

int64_t highest_integer(Element element) {
  if (element == Element::boolean) return 1;
  const NumberFormat format = format_of(element);
  const int unused = 64 - format.bits + (format.is_signed ? 1 : 0);
  return static_cast<int64_t>(std::numeric_limits<uint64_t>::max() >> unused);
}

double real(Element element, int64_t value) {
  const bool is_negative = value < 0 && element != Element::u64;
  const uint64_t magnitude = is_negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  constexpr uint64_t kExact = uint64_t{1} << 53, kLow = (uint64_t{1} << 11) - 1;
  double result = static_cast<double>(magnitude);
  // The lowest bit stands for all that is cut off. Without it a later rounding could see a tie that is none.
  if (magnitude > kExact) result = static_cast<double>(magnitude >> 11 | ((magnitude & kLow) != 0 ? 1 : 0)) * 2048;
  return is_negative ? -result : result;
}

}  // namespace gpunn::interchange
