// Computes sums, products, extremes and norms over dimensions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/constants/sizes.hpp"

namespace gpunn::interchange::constants {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Target {
  Shape kept;    // with 1 for each dimension that goes
  Shape result;  // as `keepdims` says
};

// The dimensions are those of an attribute or, in later opsets, of an input. Without them all go, or none does.
Target target_of(Call& call, const Shape& from) {
  const std::vector<int64_t> given = axes_of(call, 1);
  std::vector<bool> goes(from.size(), given.empty() && call.integer("noop_with_empty_axes", 0) == 0);
  for (const std::size_t axis : sound_axes(call, given, from.size())) goes[axis] = true;
  const bool keeps = call.integer("keepdims", 1) != 0;
  Target target;
  for (std::size_t d = 0; d < from.size(); ++d) {
    target.kept.push_back(goes[d] ? 1 : from[d]);
    if (keeps || !goes[d]) target.result.push_back(target.kept.back());
  }
  return target;
}

// Calls `step(to, from)` for each element, with the place of the result that it becomes part of.
template <class Step>
void for_each_part(const Shape& from, const Shape& kept, std::size_t count, Step step) {
  Walk<1> walk(from, {broadcast_steps(kept, from)});
  for (std::size_t i = 0; i < count; ++i, walk.next()) step(walk.place(0), i);
}

template <class Step>
std::vector<double> accumulated(const std::vector<double>& from, const Shape& shape, const Target& target, double first,
                                Step step) {
  std::vector<double> values(static_cast<std::size_t>(element_count(target.kept)), first);
  for_each_part(shape, target.kept, from.size(),
                [&](std::size_t to, std::size_t i) { values[to] = step(values[to], from[i]); });
  return values;
}

double added(double a, double b) { return a + b; }

// Numbers become one from the first value on, step by step. Their count can decide on the end.
struct Rule {
  double first;
  double (*step)(double, double);
  double (*finish)(double, double);
};

double kept(double sum, double) { return sum; }
double over_count(double sum, double count) {
  if (count == 0) throw Unsupported("takes the mean of no elements");
  return sum / count;
}
double root(double sum, double) { return std::sqrt(sum); }
double logarithm(double sum, double) { return std::log(sum); }
double product(double a, double b) { return a * b; }
double plus_size(double a, double b) { return a + std::abs(b); }
double plus_square(double a, double b) { return a + b * b; }

constexpr Rule kSum{0, added, kept};
constexpr Rule kMean{0, added, over_count};
constexpr Rule kProduct{1, product, kept};
constexpr Rule kLargest{-kInfinity, larger_float, kept};
constexpr Rule kSmallest{kInfinity, smaller_float, kept};
constexpr Rule kNorm1{0, plus_size, kept};
constexpr Rule kNorm2{0, plus_square, root};
constexpr Rule kSquares{0, plus_square, kept};
constexpr Rule kLogOfSum{0, added, logarithm};

void give_reals(Call& call, const Constant& from, const Target& target, std::vector<double> values) {
  if (is_floating(from.element))
    return call.give_constant(rounded_constant(from.element, target.result, std::move(values)));
  // Results of integers are rounded towards 0.
  call.give_constant(cast_constant(numbers_constant(Element::f64, target.result, std::move(values)), from.element));
}

void reduce_reals(Call& call, const Rule& rule) {
  const Constant& from = call.constant(0, "the data");
  require_numbers(from);
  const Target target = target_of(call, from.shape);
  call.importer().take_room(from.shape);
  std::vector<double> values = accumulated(numbers_of(from), from.shape, target, rule.first, rule.step);
  const double count = static_cast<double>(from.count()) / static_cast<double>(values.size());
  for (double& value : values) value = rule.finish(value, count);
  give_reals(call, from, target, std::move(values));
}

template <auto& rule>
void reduce_to_real(Call& call) {
  reduce_reals(call, rule);
}

// Integers stay integers, so a size that depends on the batch stays one.
void reduce_integers(Call& call, const Constant& from, int64_t first, SizeFunction step) {
  const Target target = target_of(call, from.shape);
  call.importer().take_room(from.shape);
  std::vector<Size> values(static_cast<std::size_t>(element_count(target.kept)), Size{first, false});
  std::vector<bool> has_value(values.size(), false);
  for_each_part(from.shape, target.kept, from.count(), [&](std::size_t to, std::size_t i) {
    // An extreme begins with an element, because a size that depends on the batch can't be compared with any number.
    const bool is_extreme = step == larger_size || step == smaller_size;
    const bool begins = is_extreme && !has_value[to];
    values[to] = begins ? from.integers[i] : step(from.element, values[to], from.integers[i]);
    has_value[to] = true;
  });
  call.give_constant(integers_constant(from.element, target.result, std::move(values)));
}

Size plus_absolute(Element element, Size a, Size b) { return add_sizes(element, a, absolute_size(element, b)); }
Size plus_squared(Element element, Size a, Size b) { return add_sizes(element, a, multiply_sizes(element, b, b)); }

template <auto& rule, int64_t first, SizeFunction step>
void reduce(Call& call) {
  const Constant& from = call.constant(0, "the data");
  require_numbers(from);
  if (is_floating(from.element)) return reduce_reals(call, rule);
  reduce_integers(call, from, first, step);
}

// Truth values have extremes too: whether one of them, or each, is true.
template <auto& rule, bool is_largest>
void reduce_to_extreme(Call& call) {
  const Constant& from = call.constant(0, "the data");
  if (from.element != Element::boolean) require_numbers(from);
  if (is_floating(from.element)) return reduce_reals(call, rule);
  const int64_t first = is_largest ? lowest_integer(from.element) : highest_integer(from.element);
  reduce_integers(call, from, first, is_largest ? larger_size : smaller_size);
}

// Gives log(sum(exp(x))). Subtracting the largest keeps exp() finite.
void log_of_exponentials(Call& call) {
  const Constant& from = call.constant(0, "the data");
  require_numbers(from);
  const Target target = target_of(call, from.shape);
  call.importer().take_room(from.shape);
  const std::vector<double> numbers = numbers_of(from);
  const std::vector<double> most = accumulated(numbers, from.shape, target, -kInfinity, larger_float);
  std::vector<double> values(most.size(), 0);
  const auto shift = [&](std::size_t to) { return std::isfinite(most[to]) ? most[to] : 0; };
  for_each_part(from.shape, target.kept, numbers.size(),
                [&](std::size_t to, std::size_t i) { values[to] += std::exp(numbers[i] - shift(to)); });
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::log(values[i]) + shift(i);
  give_reals(call, from, target, std::move(values));
}

}  // namespace

std::vector<EvaluatorRow> reduction_evaluators() {
  return {
      {"ReduceL1", 1, reduce<kNorm1, 0, plus_absolute>},     {"ReduceL2", 1, reduce_to_real<kNorm2>},
      {"ReduceLogSum", 1, reduce_to_real<kLogOfSum>},        {"ReduceLogSumExp", 1, log_of_exponentials},
      {"ReduceMax", 1, reduce_to_extreme<kLargest, true>},   {"ReduceMean", 1, reduce_to_real<kMean>},
      {"ReduceMin", 1, reduce_to_extreme<kSmallest, false>}, {"ReduceProd", 1, reduce<kProduct, 1, multiply_sizes>},
      {"ReduceSum", 1, reduce<kSum, 0, add_sizes>},          {"ReduceSumSquare", 1, reduce<kSquares, 0, plus_squared>},
  };
}

}  // namespace gpunn::interchange::constants
