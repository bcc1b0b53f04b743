// Numbers and sizes that are known at import.
#include <algorithm>
#include <cmath>
#include <limits>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"

namespace gpunn::interchange {

namespace {

// For rows of a batch of any number: a size that is a multiple of it stays one.
using SizeFunction = Size (*)(Size, Size);
using FloatFunction = float (*)(float, float);
using FloatMap = float (*)(float);

[[noreturn]] void refuse_sizes() { throw Unsupported("computes a size that is not a multiple of the batch"); }

Size checked(bool overflow, int64_t factor, bool of_batch) {
  if (overflow) throw Unsupported("computes a size beyond 64 bits");
  return {factor, of_batch && factor != 0};
}

Size add_sizes(Size a, Size b) {
  if (a.of_batch != b.of_batch && a.factor != 0 && b.factor != 0) refuse_sizes();
  int64_t result = 0;
  const bool overflow = __builtin_add_overflow(a.factor, b.factor, &result);
  return checked(overflow, result, a.of_batch || b.of_batch);
}

Size subtract_sizes(Size a, Size b) {
  if (a.of_batch != b.of_batch && a.factor != 0 && b.factor != 0) refuse_sizes();
  int64_t result = 0;
  const bool overflow = __builtin_sub_overflow(a.factor, b.factor, &result);
  return checked(overflow, result, a.of_batch || b.of_batch);
}

Size multiply_sizes(Size a, Size b) {
  if (a.of_batch && b.of_batch) refuse_sizes();
  int64_t result = 0;
  const bool overflow = __builtin_mul_overflow(a.factor, b.factor, &result);
  return checked(overflow, result, a.of_batch || b.of_batch);
}

Size divide_sizes(Size a, Size b) {
  if (b.factor == 0 || (a.factor == std::numeric_limits<int64_t>::min() && b.factor == -1)) {
    throw Unsupported("divides a size by " + std::to_string(b.factor));
  }
  if (a.of_batch == b.of_batch) return {a.factor / b.factor, false};
  if (b.of_batch || a.factor % b.factor != 0) refuse_sizes();
  return {a.factor / b.factor, true};
}

Size larger_size(Size a, Size b) {
  if (a.of_batch != b.of_batch) refuse_sizes();
  return a.factor > b.factor ? a : b;
}

Size smaller_size(Size a, Size b) {
  if (a.of_batch != b.of_batch) refuse_sizes();
  return a.factor < b.factor ? a : b;
}

float plus(float a, float b) { return a + b; }
float minus(float a, float b) { return a - b; }
float times(float a, float b) { return a * b; }
float over(float a, float b) { return a / b; }
float larger(float a, float b) { return std::max(a, b); }
float smaller(float a, float b) { return std::min(a, b); }
float negative_of(float x) { return -x; }
float root_of(float x) { return std::sqrt(x); }
float inverse_of(float x) { return 1 / x; }
float exp_of(float x) { return std::exp(x); }
float floor_of(float x) { return std::floor(x); }
float ceil_of(float x) { return std::ceil(x); }

template <SizeFunction of_sizes, FloatFunction of_floats>
bool combine(Call& call) {
  if (!all_known(call) || call.count() != 2) return false;
  const Constant &a = call.constant(0, "an operand"), &b = call.constant(1, "an operand");
  if (is_floating(a.element) != is_floating(b.element)) throw Unsupported("mixes integers and floats");
  const Shape shape = broadcast_shape(a.shape, b.shape);
  const auto count = static_cast<std::size_t>(call.importer().take_room(shape));
  const auto places = [&](std::size_t i) {
    return std::pair(static_cast<std::size_t>(broadcast_place(static_cast<int64_t>(i), shape, a.shape)),
                     static_cast<std::size_t>(broadcast_place(static_cast<int64_t>(i), shape, b.shape)));
  };
  if (is_floating(a.element)) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto [left, right] = places(i);
      values[i] = of_floats((*a.floats)[left], (*b.floats)[right]);
    }
    Constant result = floats_constant(shape, std::move(values));
    result.element = a.element;
    result.trained = a.trained || b.trained;
    call.give_constant(std::move(result));
  } else {
    std::vector<Size> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto [left, right] = places(i);
      values[i] = of_sizes(a.integers[left], b.integers[right]);
    }
    Constant result = sizes_constant(shape, std::move(values));
    result.element = a.element;
    call.give_constant(std::move(result));
  }
  return true;
}

template <FloatMap function>
bool map_floats(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.floats(0, "the data");
  call.importer().take_room(from.shape);
  std::vector<float> values = *from.floats;
  std::ranges::transform(values, values.begin(), function);
  Constant result = floats_constant(from.shape, std::move(values));
  result.element = from.element;
  result.trained = from.trained;
  call.give_constant(std::move(result));
  return true;
}

bool negate_constant(Call& call) {
  if (!all_known(call)) return false;
  if (is_floating(call.constant(0, "the data").element)) return map_floats<negative_of>(call);
  Constant result = call.constant(0, "the data");
  for (Size& size : result.integers) size = subtract_sizes({0, false}, size);
  call.give_constant(std::move(result));
  return true;
}

bool give_cast(Call& call, Element to) {
  if (bytes_of(to) == 0) throw Unsupported("makes " + name_of(to));
  const Constant& from = call.constant(0, "the data");
  Constant result = from;
  result.element = to;
  if (is_floating(to) && !is_floating(from.element)) {
    std::vector<float> values;
    for (const Size& size : from.integers) {
      if (size.of_batch) throw Unsupported("makes a float of the size of the batch");
      values.push_back(static_cast<float>(size.factor));
    }
    result.integers.clear();
    result.floats = std::make_shared<const std::vector<float>>(std::move(values));
  } else if (!is_floating(to) && is_floating(from.element)) {
    result.integers.clear();
    for (const float value : *from.floats) {
      if (!(std::abs(value) < 9e18F)) throw Unsupported("makes an integer of " + text(static_cast<double>(value)));
      result.integers.push_back({static_cast<int64_t>(value), false});
    }
    result.floats = nullptr;
    result.trained = false;
  }
  call.give_constant(std::move(result));
  return true;
}

bool cast_constant(Call& call) {
  return all_known(call) && give_cast(call, static_cast<Element>(call.integer("to", 0)));
}

bool cast_like_constant(Call& call) {
  if (!call.input(0).constant) return false;
  const Value& like = call.input(1);
  return give_cast(call, like.constant ? like.constant->element : Element::f32);
}

bool range_constant(Call& call) {
  if (!all_known(call)) return false;
  const std::vector<int64_t> start = call.integers(0, "the start"), limit = call.integers(1, "the limit"),
                             delta = call.integers(2, "the step");
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1 || delta[0] == 0) throw Unsupported("is no range");
  const double span =
      std::ceil((static_cast<double>(limit[0]) - static_cast<double>(start[0])) / static_cast<double>(delta[0]));
  const auto count = static_cast<int64_t>(std::clamp(span, 0.0, 1e15));
  call.importer().take_room({count});
  std::vector<int64_t> values(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = start[0] + i * delta[0];
  call.give_constant(integers_constant(values));
  return true;
}

bool multiply_all(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the sizes");
  if (is_floating(from.element) || from.shape.size() > 1) throw Unsupported("multiplies other constants than sizes");
  Size all{1, false};
  for (const Size& size : from.integers) all = multiply_sizes(all, size);
  call.give_constant(sizes_constant(call.integer("keepdims", 1) != 0 ? Shape{1} : Shape{}, {all}));
  return true;
}

}  // namespace

Foldings arithmetic_foldings() {
  return {
      {"Add", combine<add_sizes, plus>},
      {"Sub", combine<subtract_sizes, minus>},
      {"Mul", combine<multiply_sizes, times>},
      {"Div", combine<divide_sizes, over>},
      {"Max", combine<larger_size, larger>},
      {"Min", combine<smaller_size, smaller>},
      {"Neg", negate_constant},
      {"Sqrt", map_floats<root_of>},
      {"Reciprocal", map_floats<inverse_of>},
      {"Exp", map_floats<exp_of>},
      {"Floor", map_floats<floor_of>},
      {"Ceil", map_floats<ceil_of>},
      {"Cast", cast_constant},
      {"CastLike", cast_like_constant},
      {"Range", range_constant},
      {"ReduceProd", multiply_all},
  };
}

}  // namespace gpunn::interchange
