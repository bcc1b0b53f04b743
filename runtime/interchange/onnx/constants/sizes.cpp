#include "interchange/onnx/constants/sizes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange::constants {

namespace {

[[noreturn]] void refuse_sizes() { throw Unsupported("computes a size that is not a multiple of the batch"); }

Size of_width(Element element, bool overflows, int64_t factor, bool of_batch) {
  const int64_t kept = wrapped(element, factor);
  if (!of_batch) return {kept, false};
  if (overflows || kept != factor) throw Unsupported("computes a size beyond " + name_of(element));
  return {factor, factor != 0};
}

uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

void require_divisor(Size b) {
  if (b.factor == 0) throw Unsupported("divides an integer by 0");
}

}  // namespace

Size add_sizes(Element element, Size a, Size b) {
  if (a.of_batch != b.of_batch && a.factor != 0 && b.factor != 0) refuse_sizes();
  int64_t result = 0;
  const bool overflows = __builtin_add_overflow(a.factor, b.factor, &result);
  return of_width(element, overflows, result, a.of_batch || b.of_batch);
}

Size subtract_sizes(Element element, Size a, Size b) {
  if (a.of_batch != b.of_batch && a.factor != 0 && b.factor != 0) refuse_sizes();
  int64_t result = 0;
  const bool overflows = __builtin_sub_overflow(a.factor, b.factor, &result);
  return of_width(element, overflows, result, a.of_batch || b.of_batch);
}

Size multiply_sizes(Element element, Size a, Size b) {
  if (a.of_batch && b.of_batch) refuse_sizes();
  int64_t result = 0;
  const bool overflows = __builtin_mul_overflow(a.factor, b.factor, &result);
  return of_width(element, overflows, result, a.of_batch || b.of_batch);
}

Size divide_sizes(Element element, Size a, Size b) {
  require_divisor(b);
  if (element == Element::u64 && !a.of_batch && !b.of_batch) {
    return {static_cast<int64_t>(bits(a.factor) / bits(b.factor)), false};
  }
  if (a.of_batch && b.of_batch) a.of_batch = b.of_batch = false;  // which cancel
  if (b.factor == -1 && !b.of_batch) return subtract_sizes(element, {0, false}, a);
  if (a.of_batch == b.of_batch) return of_width(element, false, a.factor / b.factor, false);
  if (b.of_batch || a.factor % b.factor != 0) refuse_sizes();
  return {a.factor / b.factor, true};
}

Size remainder_sizes(Element element, Size a, Size b) {
  require_divisor(b);
  if (element == Element::u64 && !a.of_batch && !b.of_batch) {
    return {static_cast<int64_t>(bits(a.factor) % bits(b.factor)), false};
  }
  const int64_t rest = b.factor == -1 ? 0 : a.factor % b.factor;
  if ((a.of_batch || b.of_batch) && (rest != 0 || !a.of_batch)) refuse_sizes();
  return {rest, false};
}

Size modulo_sizes(Element element, Size a, Size b) {
  const Size rest = remainder_sizes(element, a, b);
  const bool is_other_sign = element != Element::u64 && rest.factor != 0 && (rest.factor < 0) != (b.factor < 0);
  return is_other_sign ? Size{rest.factor + b.factor, false} : rest;
}

Size power_of_sizes(Element element, Size a, Size b) {
  if (a.of_batch || b.of_batch) refuse_sizes();
  if (b.factor < 0 && element != Element::u64) {
    if (a.factor == 0) throw Unsupported("divides an integer by 0");
    if (a.factor != 1 && a.factor != -1) return {0, false};
    return {b.factor % 2 == 0 ? 1 : a.factor, false};
  }
  uint64_t result = 1, factor = bits(a.factor);
  for (uint64_t left = bits(b.factor); left > 0; left /= 2, factor *= factor) {
    if (left % 2 == 1) result *= factor;
  }
  return {wrapped(element, static_cast<int64_t>(result)), false};
}

Size larger_size(Element element, Size a, Size b) {
  return is_in_order(orders_of(element, a, b), kGreater | kEqual) ? a : b;
}

Size smaller_size(Element element, Size a, Size b) {
  return is_in_order(orders_of(element, a, b), kLess | kEqual) ? a : b;
}

Size absolute_size(Element element, Size a) {
  return a.factor < 0 && element != Element::u64 ? subtract_sizes(element, {0, false}, a) : a;
}

double larger_float(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double smaller_float(double a, double b) { return std::isnan(a) || a < b ? a : b; }

unsigned orders_of(Element element, Size a, Size b) {
  if (element == Element::u64 && !a.of_batch && !b.of_batch) {
    return bits(a.factor) < bits(b.factor) ? kLess : a.factor == b.factor ? kEqual : kGreater;
  }
  const unsigned of_one_row = a.factor < b.factor ? kLess : a.factor == b.factor ? kEqual : kGreater;
  if (a.of_batch == b.of_batch) return of_one_row;
  // A batch has at least one row: with more of them the multiple moves away from 0.
  const unsigned of_many = (a.of_batch ? a.factor > 0 : b.factor < 0) ? kGreater : kLess;
  return of_one_row | of_many;
}

bool is_in_order(unsigned orders, unsigned wanted) {
  if ((orders & ~wanted) == 0) return true;
  if ((orders & wanted) == 0) return false;
  throw Unsupported("compares the size of the batch with a number");
}

}  // namespace gpunn::interchange::constants
