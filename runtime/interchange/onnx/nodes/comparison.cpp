// Truth values, which layers have as 0 and 1, and choices by them.
#include <limits>
#include <string>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"

namespace gpunn::interchange {

namespace {

constexpr char kEqual[] = "equal", kLess[] = "less", kAtMost[] = "less_or_equal", kGreater[] = "greater",
               kAtLeast[] = "greater_or_equal", kUnequal[] = "not_equal";

template <auto& is>
void compare(Call& call) {
  call.give(comparison_of(call, is, call.input(0), call.input(1)));
}

template <auto& layer>
void join(Call& call) {
  Value y = elementwise(call, layer, {call.input(0), call.input(1)});
  y.element = Element::boolean;
  call.give(y);
}
constexpr char kBoth[] = "minimum", kEither[] = "maximum";

void negate_truth(Call& call) { call.give(comparison_of(call, "equal", call.data_anywhere(0), number(0))); }

void select(Call& call) { call.give(choice_of(call, call.input(0), call.input(1), call.input(2))); }

// Only NaN differs from itself.
void is_nan(Call& call) { call.give(comparison_of(call, "not_equal", call.data_anywhere(0), call.data_anywhere(0))); }

void is_infinite(Call& call) {
  const bool negative = call.integer("detect_negative", 1) != 0, positive = call.integer("detect_positive", 1) != 0;
  Value x = call.data_anywhere(0);
  constexpr float kLargest = std::numeric_limits<float>::max();
  if (negative && positive) x = elementwise(call, "abs", {x});
  if (positive) return call.give(comparison_of(call, "greater", x, number(kLargest)));
  const float bound = negative ? -kLargest : -std::numeric_limits<float>::infinity();
  call.give(comparison_of(call, "less", x, number(bound)));
}

}  // namespace

std::vector<OpRow> comparison_rows() {
  return {{"Equal", 1, compare<kEqual>},
          {"Less", 7, compare<kLess>},
          {"LessOrEqual", 12, compare<kAtMost>},
          {"Greater", 7, compare<kGreater>},
          {"GreaterOrEqual", 12, compare<kAtLeast>},
          {"Xor", 7, compare<kUnequal>},
          {"And", 7, join<kBoth>},
          {"Or", 7, join<kEither>},
          {"Not", 1, negate_truth},
          {"Where", 9, select},
          {"IsNaN", 9, is_nan},
          {"IsInf", 10, is_infinite}};
}

}  // namespace gpunn::interchange
