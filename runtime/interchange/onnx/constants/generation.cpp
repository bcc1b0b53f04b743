// Makes constants out of attributes and shapes.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/constants/sizes.hpp"

namespace gpunn::interchange::constants {

namespace {

void give_attribute(Call& call) {
  if (const Constant* value = call.tensor("value")) {
    call.give_constant(*value);
  } else if (call.has_attribute("value_float")) {
    call.give_constant(floats_constant({}, {static_cast<float>(call.number("value_float", 0))}));
  } else if (call.has_attribute("value_int")) {
    call.give_constant(sizes_constant({}, {{call.integer("value_int", 0), false}}));
  } else if (call.has_attribute("value_ints")) {
    call.give_constant(integers_constant(call.list("value_ints")));
  } else if (call.has_attribute("value_floats")) {
    std::vector<float> values = call.numbers("value_floats");
    const auto count = static_cast<int64_t>(values.size());
    call.give_constant(floats_constant({count}, std::move(values)));
  } else {
    throw Unsupported("holds a constant of a kind that is not read");
  }
}

void constant_of_shape(Call& call) {
  const Constant* value = call.tensor("value");
  if (value != nullptr && value->count() != 1) throw Unsupported("its value is not one number");
  const Constant zero = floats_constant({1}, {0});
  const GivenShape given = given_shape(call, 0);
  give_rows(call, moved(call, value == nullptr ? zero : *value, given.sizes, [](int64_t) { return int64_t{0}; }),
            given);
}

void give_shape(Call& call) {
  const Sizes& shape = call.input(0).shape;
  const auto within = [rank = std::ssize(shape)](int64_t place) {
    return std::clamp<int64_t>(place < 0 ? place + rank : place, 0, rank);
  };
  const int64_t begin = within(call.integer("start", 0)), end = within(call.integer("end", std::ssize(shape)));
  Sizes part;
  for (int64_t i = begin; i < end; ++i) part.push_back(shape[static_cast<std::size_t>(i)]);
  const auto count = static_cast<int64_t>(part.size());
  call.give_constant(sizes_constant({count}, std::move(part)));
}

void give_size(Call& call) {
  Size all{1, false};
  for (const Size& size : call.input(0).shape) all = multiply_sizes(Element::i64, all, size);
  call.give_constant(sizes_constant({}, {all}));
}

Constant range_of_integers(Call& call, Element element) {
  const int64_t start = integers_of(call.constant(0, "the start")).front(),
                limit = integers_of(call.constant(1, "the limit")).front(),
                step = integers_of(call.constant(2, "the step")).front();
  if (step == 0) throw Unsupported("goes by steps of 0");
  const bool is_empty = step > 0 ? start >= limit : start <= limit;
  const auto bits = [](int64_t value) { return static_cast<uint64_t>(value); };
  const uint64_t span = step > 0 ? bits(limit) - bits(start) : bits(start) - bits(limit);
  const uint64_t each = step > 0 ? bits(step) : 0 - bits(step);
  constexpr uint64_t kMost = uint64_t{1} << 40;
  const int64_t count = is_empty ? 0 : static_cast<int64_t>(std::min((span - 1) / each + 1, kMost));
  std::vector<Size> values(static_cast<std::size_t>(call.importer().take_room({count})));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].factor = wrapped(element, static_cast<int64_t>(bits(start) + i * bits(step)));
  }
  return integers_constant(element, {count}, std::move(values));
}

Constant range_of_floats(Call& call, Element element) {
  const double start = call.constant(0, "the start").number(0), limit = call.constant(1, "the limit").number(0),
               step = call.constant(2, "the step").number(0);
  const double wanted = std::ceil(rounded(element, limit - start) / step);
  if (std::isnan(wanted) || step == 0) throw Unsupported("goes from " + text(start) + " by steps of " + text(step));
  constexpr double kMost = 1e15;
  const auto count = static_cast<int64_t>(std::clamp(wanted, 0.0, kMost));
  std::vector<double> values(static_cast<std::size_t>(call.importer().take_room({count})));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
  return rounded_constant(element, {count}, std::move(values));
}

void range(Call& call) {
  const Constant& start = call.constant(0, "the start");
  require_numbers(start);
  for (const std::size_t i : {0, 1, 2}) {
    const Constant& each = call.constant(i, "a bound");
    require_same_type(start, each);
    if (each.count() != 1) throw Unsupported("its bounds are not single numbers");
  }
  call.give_constant(is_floating(start.element) ? range_of_floats(call, start.element)
                                                : range_of_integers(call, start.element));
}

void eye_like(Call& call) {
  const Constant& like = call.constant(0, "the data");
  if (like.shape.size() != 2) throw Unsupported("makes a diagonal in " + gpunn::to_string(like.shape));
  const auto element = static_cast<Element>(call.integer("dtype", static_cast<int64_t>(like.element)));
  const int64_t columns = like.shape[1], most = like.shape[0] + columns;
  const int64_t diagonal = std::clamp(call.integer("k", 0), -most, most);
  const Constant values = cast_constant(integers_constant({0, 1}), element);
  call.give_constant(moved(call, values, like.shape,
                           [&](int64_t i) { return int64_t{i % columns - i / columns == diagonal ? 1 : 0}; }));
}

// Gives the places of all elements that are not 0, one column for each.
void non_zero(Call& call) {
  const Constant& x = call.constant(0, "the data");
  std::vector<int64_t> found;
  for (std::size_t i = 0; i < x.count(); ++i) {
    const bool is_zero = is_floating(x.element) ? x.number(i) == 0 : x.integers[i].factor == 0;
    if (!is_zero) found.push_back(static_cast<int64_t>(i));
  }
  const Shape strides = strides_of(x.shape), shape = {std::ssize(x.shape), std::ssize(found)};
  call.importer().take_room(shape);
  std::vector<int64_t> places;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    for (const int64_t at : found) places.push_back(at / strides[d] % x.shape[d]);
  }
  call.give_constant(places_constant(shape, places));
}

}  // namespace

std::vector<EvaluatorRow> generation_evaluators() {
  return {
      {"Constant", 1, give_attribute},
      {"ConstantOfShape", 9, constant_of_shape},
      {"EyeLike", 9, eye_like},
      {"NonZero", 9, non_zero},
      {"Range", 11, range},
      {"Shape", 1, give_shape, always_known},
      {"Size", 1, give_size, always_known},
  };
}

}  // namespace gpunn::interchange::constants
