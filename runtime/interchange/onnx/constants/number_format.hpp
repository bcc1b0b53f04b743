// The numbers that each element type of ONNX can hold.
#pragma once

#include <cstdint>
#include <string>

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

enum class NumberKind { none, integer, floating };

// Tells how a float type stores numbers that are not finite.
enum class Specials {
  ieee,     // the highest exponent: infinities and NaN
  one_nan,  // all bits set: NaN ("fn")
  nuz,      // the bits of -0: NaN ("fnuz")
  none,     // each pattern is a finite number
};

// The bits of a float are, from the lowest: fraction, exponent, sign.
struct NumberFormat {
  NumberKind kind = NumberKind::none;
  int bits = 0;
  bool is_signed = true;
  int exponent_bits = 0, fraction_bits = 0, bias = 0;
  Specials specials = Specials::ieee;
};

NumberFormat format_of(Element element);

// Gives the float of these bits, exactly.
double decoded(const NumberFormat& format, uint64_t bits);
// Gives the nearest number that the type holds, ties to even. A number beyond the largest becomes that one or, without
// `saturates`, an infinity, or NaN where the type has no infinity.
double rounded(Element element, double value, bool saturates = false);
// Rounds to a power of two, as float8e8m0 holds it: "up", "down" or "nearest". Throws Unsupported for numbers below 0.
double rounded_to_power(double value, bool saturates, const std::string& mode);
double largest_of(Element element);

// Keeps the low bits of an integer, as its type reads them. A bool is 1 for all but 0.
int64_t wrapped(Element element, int64_t value);
int64_t lowest_integer(Element element);
int64_t highest_integer(Element element);  // of uint64: as the bits of an int64
// Gives the integer as a double: exactly, or rounded so that a second rounding to a narrower type gives the nearest.
double real(Element element, int64_t value);

}  // namespace gpunn::interchange
