// Turns numbers of one type into numbers of another one.
#include <cmath>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

namespace {

// Rounds towards 0. ONNX leaves the result open for a number that the type does not hold.
int64_t truncated(Element to, double value) {
  const double whole = std::trunc(value);
  const double lowest = static_cast<double>(lowest_integer(to));
  // The first number beyond the highest one, which itself may be no double.
  const double end = std::ldexp(1.0, format_of(to).bits - (format_of(to).is_signed ? 1 : 0));
  if (!(whole >= lowest && whole < end)) throw Unsupported("makes " + name_of(to) + " of " + text(value));
  constexpr double kSigned = 9223372036854775808.0;
  if (whole >= kSigned) return static_cast<int64_t>(static_cast<uint64_t>(whole));
  return static_cast<int64_t>(whole);
}

bool holds_sizes(Element element) {
  constexpr int kWide = 32;
  return is_integer(element) && format_of(element).bits >= kWide;
}

Size integer_of(const Constant& from, std::size_t i, Element to) {
  if (is_floating(from.element)) {
    const double value = from.number(i);
    return {to == Element::boolean ? static_cast<int64_t>(value != 0) : truncated(to, value), false};
  }
  const Size size = from.integers[i];
  if (to == Element::boolean) return {size.factor != 0 ? 1 : 0, false};
  if (!size.of_batch) return {wrapped(to, size.factor), false};
  if (!holds_sizes(to)) throw Unsupported("makes " + name_of(to) + " of the size of the batch");
  return size;
}

void give_cast(Call& call, Element to) {
  const Constant& from = call.constant(0, "the data");
  call.importer().take_room(from.shape);
  const bool saturates = call.integer("saturate", 1) != 0;
  call.give_constant(cast_constant(from, to, saturates, call.word("round_mode", "up")));
}

void cast(Call& call) {
  const Element to = static_cast<Element>(call.integer("to", 0));
  give_cast(call, to);
}

void cast_like(Call& call) {
  const Value& like = call.input(1);
  give_cast(call, like.constant ? like.constant->element : Element::f32);
}

}  // namespace

Constant cast_constant(const Constant& from, Element to, bool saturates, const std::string& round_mode) {
  if (!is_floating(to) && !is_integer(to)) throw Unsupported("makes " + name_of(to) + ", which is not read");
  if (to == from.element) return from;
  Constant result;
  if (is_floating(to)) {
    constexpr int kHalf = 16;
    const bool is_narrow = format_of(to).bits < kHalf;
    std::vector<double> values = numbers_of(from);
    for (double& value : values) {
      value = to == Element::f8e8m0 ? rounded_to_power(value, saturates, round_mode)
                                    : rounded(to, value, is_narrow && saturates);
    }
    if (to == Element::f64 && is_integer(from.element)) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const int64_t value = from.integers[i].factor;
        values[i] = from.element == Element::u64 ? static_cast<double>(static_cast<uint64_t>(value))
                                                 : static_cast<double>(value);
      }
    }
    result = numbers_constant(to, from.shape, std::move(values));
    result.trained = from.trained;
  } else {
    std::vector<Size> values(from.count());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = integer_of(from, i, to);
    result = integers_constant(to, from.shape, std::move(values));
  }
  return result;
}

std::vector<EvaluatorRow> cast_evaluators() { return {{"Cast", 1, cast}, {"CastLike", 15, cast_like, first_known}}; }

}  // namespace gpunn::interchange::constants
