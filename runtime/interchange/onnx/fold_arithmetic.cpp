// Numbers and sizes that are known at import.
#include <algorithm>
#include <cmath>
#include <functional>
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

// With the sign of the divisor.
Size modulo_sizes(Size a, Size b) {
  if (b.factor == 0 || b.of_batch) throw Unsupported("divides a size by " + std::to_string(b.factor));
  if (b.factor == -1) return {0, false};
  const int64_t rest = a.factor % b.factor;
  if (a.of_batch && rest != 0) refuse_sizes();
  return {rest != 0 && (rest < 0) != (b.factor < 0) ? rest + b.factor : rest, false};
}

Size larger_size(Size a, Size b) {
  if (a.of_batch != b.of_batch) refuse_sizes();
  return a.factor > b.factor ? a : b;
}

Size smaller_size(Size a, Size b) {
  if (a.of_batch != b.of_batch) refuse_sizes();
  return a.factor < b.factor ? a : b;
}

Size power_of_sizes(Size a, Size b) {
  if (a.of_batch || b.of_batch || b.factor < 0) refuse_sizes();
  Size all{1, false};
  for (int64_t i = 0; i < std::min<int64_t>(b.factor, 64) && a.factor != 1; ++i) all = multiply_sizes(all, a);
  return all;
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
float modulo_of(float a, float b) { return std::fmod(a, b); }
float power_of(float a, float b) { return std::pow(a, b); }
float log_of(float x) { return std::log(x); }
float abs_of(float x) { return std::abs(x); }
float sin_of(float x) { return std::sin(x); }
float cos_of(float x) { return std::cos(x); }
float tanh_of(float x) { return std::tanh(x); }
float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }
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

// Of a batch of any number of rows, which is none of the numbers that a graph compares it with.
template <class Compare>
bool compare(Call& call) {
  if (!all_known(call)) return false;
  const Constant &a = call.constant(0, "an operand"), &b = call.constant(1, "an operand");
  if (is_floating(a.element) != is_floating(b.element)) throw Unsupported("mixes integers and floats");
  const Shape shape = broadcast_shape(a.shape, b.shape);
  std::vector<Size> values(static_cast<std::size_t>(call.importer().take_room(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto left = static_cast<std::size_t>(broadcast_place(static_cast<int64_t>(i), shape, a.shape));
    const auto right = static_cast<std::size_t>(broadcast_place(static_cast<int64_t>(i), shape, b.shape));
    if (is_floating(a.element)) {
      values[i].factor = Compare()((*a.floats)[left], (*b.floats)[right]) ? 1 : 0;
      continue;
    }
    const Size x = a.integers[left], y = b.integers[right];
    if (x.of_batch != y.of_batch && (x.of_batch ? y : x).factor > 0) {
      throw Unsupported("compares the size of the batch with a number");
    }
    values[i].factor = Compare()(x.factor, y.factor) ? 1 : 0;
  }
  Constant result = sizes_constant(shape, std::move(values));
  result.element = Element::boolean;
  call.give_constant(std::move(result));
  return true;
}

bool select_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant &condition = call.constant(0, "the condition"), &a = call.constant(1, "a value"),
                 &b = call.constant(2, "a value");
  if (is_floating(condition.element) || is_floating(a.element) != is_floating(b.element)) {
    throw Unsupported("chooses by or between values of other types");
  }
  const Shape shape = broadcast_shape(condition.shape, broadcast_shape(a.shape, b.shape));
  const auto is_wanted = [&](int64_t i) {
    return condition.integers[static_cast<std::size_t>(broadcast_place(i, shape, condition.shape))].factor != 0;
  };
  Constant chosen = taken(call, a, shape, [&](int64_t i) { return broadcast_place(i, shape, a.shape); });
  const Constant others = taken(call, b, shape, [&](int64_t i) { return broadcast_place(i, shape, b.shape); });
  std::vector<float> floats = chosen.floats ? *chosen.floats : std::vector<float>();
  for (int64_t i = 0; i < element_count(shape); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (is_wanted(i)) continue;
    if (is_floating(a.element)) {
      floats[at] = (*others.floats)[at];
    } else {
      chosen.integers[at] = others.integers[at];
    }
  }
  if (chosen.floats) chosen.floats = std::make_shared<const std::vector<float>>(std::move(floats));
  call.give_constant(std::move(chosen));
  return true;
}

// Norms and the like of weights, over dimensions of an attribute or, in later opsets, of an input; none: over all.
template <class Step, class Finish>
bool reduce_floats(Call& call, float first, Step step, Finish finish) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  if (!is_floating(from.element)) throw Unsupported("reduces integers");
  const std::vector<int64_t> given = call.has(1) ? call.integers(1, "the dimensions") : call.list("axes");
  Shape kept = from.shape, left;
  for (const int64_t axis : given) kept[call.dimension(axis, kept.size())] = 1;
  if (given.empty() && call.integer("noop_with_empty_axes", 0) == 0) kept.assign(kept.size(), 1);
  const bool keeps = call.integer("keepdims", 1) != 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool is_reduced = given.empty() || std::ranges::any_of(given, [&](int64_t axis) {
                              return call.dimension(axis, kept.size()) == i;
                            });
    if (keeps || !is_reduced) left.push_back(kept[i]);
  }
  std::vector<float> values(static_cast<std::size_t>(call.importer().take_room(kept)), first);
  for (std::size_t i = 0; i < from.floats->size(); ++i) {
    // Where the element goes is where one of `kept` comes from that has its place.
    float& value = values[static_cast<std::size_t>(broadcast_place(static_cast<int64_t>(i), from.shape, kept))];
    value = step(value, (*from.floats)[i]);
  }
  const float count = static_cast<float>(from.floats->size()) / static_cast<float>(values.size());
  for (float& value : values) value = finish(value, count);
  call.give_constant(floats_constant(left, std::move(values)));
  return true;
}

bool sum_constant(Call& call) {
  return reduce_floats(call, 0, plus, [](float sum, float) { return sum; });
}
bool mean_constant(Call& call) {
  return reduce_floats(call, 0, plus, [](float sum, float count) { return sum / count; });
}
bool largest_constant(Call& call) {
  return reduce_floats(call, -std::numeric_limits<float>::infinity(), larger, [](float most, float) { return most; });
}
bool norm_constant(Call& call) {
  const auto add_square = [](float sum, float x) { return sum + x * x; };
  return reduce_floats(call, 0, add_square, [](float sum, float) { return std::sqrt(sum); });
}

// Weights that are normalised by their own means and variances, as of NFNets.
bool normalise_constant(Call& call) {
  if (!call.input(0).constant) return false;
  const Constant &from = call.floats(0, "the data"), &weight = call.floats(1, "the weights"),
                 &bias = call.floats(2, "the biases");
  const bool is_own = call.integer("training_mode", 0) != 0;
  const Constant &means = call.floats(3, "the means"), &variances = call.floats(4, "the variances");
  const std::size_t channels = from.shape.size() < 2 ? 0 : static_cast<std::size_t>(from.shape[1]);
  for (const Constant* each : {&weight, &bias, &means, &variances}) {
    if (channels == 0 || each->floats->size() != channels) throw Unsupported("its statistics are not by channel");
  }
  call.require_first_output_alone("gives its statistics, which layers don't");
  call.importer().take_room(from.shape);
  const auto inner = static_cast<std::size_t>(strides_of(from.shape)[1]);
  const auto channel_of = [&](std::size_t i) { return i / inner % channels; };
  std::vector<float> values = *from.floats;
  const double count = static_cast<double>(values.size()) / static_cast<double>(channels);
  std::vector<double> mean(means.floats->begin(), means.floats->end());
  std::vector<double> variance(variances.floats->begin(), variances.floats->end());
  if (is_own) {
    std::ranges::fill(mean, 0);
    std::ranges::fill(variance, 0);
    for (std::size_t i = 0; i < values.size(); ++i) mean[channel_of(i)] += static_cast<double>(values[i]) / count;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double off = static_cast<double>(values[i]) - mean[channel_of(i)];
      variance[channel_of(i)] += off * off / count;
    }
  }
  const double epsilon = call.number("epsilon", 1e-5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = channel_of(i);
    const double off = static_cast<double>(values[i]) - mean[c];
    values[i] = static_cast<float>(off / std::sqrt(variance[c] + epsilon) * static_cast<double>((*weight.floats)[c]) +
                                   static_cast<double>((*bias.floats)[c]));
  }
  call.give_constant(floats_constant(from.shape, std::move(values)));
  return true;
}

// Between bounds of inputs, or up to opset 10 of attributes.
bool clip_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.floats(0, "the data");
  constexpr double kLargest = std::numeric_limits<float>::max();
  const auto low = static_cast<float>(call.has(1) ? call.scalar(1, "the bound") : call.number("min", -kLargest));
  const auto high = static_cast<float>(call.has(2) ? call.scalar(2, "the bound") : call.number("max", kLargest));
  call.importer().take_room(from.shape);
  std::vector<float> values = *from.floats;
  for (float& value : values) value = std::min(std::max(value, low), high);
  call.give_constant(floats_constant(from.shape, std::move(values)));
  return true;
}

bool negated_truth(Call& call) {
  if (!all_known(call)) return false;
  Constant result = call.constant(0, "the data");
  for (Size& size : result.integers) size.factor = size.factor == 0 ? 1 : 0;
  call.give_constant(std::move(result));
  return true;
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
      {"Pow", combine<power_of_sizes, power_of>},
      {"Mod", combine<modulo_sizes, modulo_of>},
      {"Clip", clip_constant},
      {"BatchNormalization", normalise_constant},
      {"ReduceSum", sum_constant},
      {"ReduceMean", mean_constant},
      {"ReduceMax", largest_constant},
      {"ReduceL2", norm_constant},
      {"Equal", compare<std::equal_to<>>},
      {"Less", compare<std::less<>>},
      {"LessOrEqual", compare<std::less_equal<>>},
      {"Greater", compare<std::greater<>>},
      {"GreaterOrEqual", compare<std::greater_equal<>>},
      {"And", compare<std::logical_and<>>},
      {"Or", compare<std::logical_or<>>},
      {"Not", negated_truth},
      {"Where", select_constant},
      {"Log", map_floats<log_of>},
      {"Abs", map_floats<abs_of>},
      {"Sin", map_floats<sin_of>},
      {"Cos", map_floats<cos_of>},
      {"Tanh", map_floats<tanh_of>},
      {"Sigmoid", map_floats<sigmoid_of>},
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
