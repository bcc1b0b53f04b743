// Computes along one dimension: sums so far, the order of elements, and shares of all of them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/constants/sizes.hpp"

namespace gpunn::interchange::constants {

namespace {

// Calls `visit(place, whether it is the first)` for each element of each line.
template <class Visit>
void for_each_step(const Lines& lines, bool is_reversed, Visit visit) {
  for (int64_t line = 0; line < lines.count(); ++line) {
    for (int64_t i = 0; i < lines.size; ++i) {
      const int64_t at = is_reversed ? lines.size - 1 - i : i;
      visit(static_cast<std::size_t>(lines.begin(line) + at * lines.inner), i == 0);
    }
  }
}

// Sums all elements up to each one, with or without itself.
void sum_so_far(Call& call) {
  const Constant& x = call.constant(0, "the data");
  require_numbers(x);
  const std::vector<int64_t> axis = call.integers(1, "the dimension");
  if (axis.size() != 1) throw Unsupported("names several dimensions");
  const Lines lines = lines_along(x.shape, call.dimension(axis.front(), x.shape.size()));
  const bool excludes = call.integer("exclusive", 0) != 0, is_reversed = call.integer("reverse", 0) != 0;
  call.importer().take_room(x.shape);
  if (is_floating(x.element)) {
    std::vector<double> values(x.count());
    double sum = 0;
    for_each_step(lines, is_reversed, [&](std::size_t at, bool is_first) {
      const double before = is_first ? 0 : sum;
      sum = before + x.number(at);
      values[at] = excludes ? before : sum;
    });
    return call.give_constant(rounded_constant(x.element, x.shape, std::move(values)));
  }
  std::vector<Size> values(x.count());
  Size sum;
  for_each_step(lines, is_reversed, [&](std::size_t at, bool is_first) {
    const Size before = is_first ? Size{} : sum;
    sum = add_sizes(x.element, before, x.integers[at]);
    values[at] = excludes ? before : sum;
  });
  call.give_constant(integers_constant(x.element, x.shape, std::move(values)));
}

// Tells whether an element is less than another one. NaN is the largest number.
bool is_less(const Constant& x, int64_t first, int64_t second) {
  const auto a = static_cast<std::size_t>(first), b = static_cast<std::size_t>(second);
  if (!is_floating(x.element)) return is_in_order(orders_of(x.element, x.integers[a], x.integers[b]), kLess);
  const double left = x.number(a), right = x.number(b);
  return std::isnan(right) ? !std::isnan(left) : left < right;
}

int64_t count_of_best(Call& call) {
  constexpr int64_t kInput = 10;
  if (call.opset() < kInput) return call.integer("k", -1);
  const std::vector<int64_t> count = call.integers(1, "the count");
  return count.size() == 1 ? count.front() : -1;
}

// Gives the best elements of each line and their places. Of equal elements the first one comes first.
void take_best(Call& call) {
  const Constant& x = call.constant(0, "the data");
  require_numbers(x);
  const std::size_t axis = call.axis("axis", -1, x.shape.size());
  const Lines lines = lines_along(x.shape, axis);
  const int64_t count = count_of_best(call);
  if (count < 0 || count > lines.size) {
    throw Unsupported("takes the best " + std::to_string(count) + " of " + std::to_string(lines.size));
  }
  const bool is_largest = call.integer("largest", 1) != 0;
  Shape shape = x.shape;
  shape[axis] = count;
  call.importer().take_room(x.shape);
  const Lines of_result = lines_along(shape, axis);
  std::vector<int64_t> places(static_cast<std::size_t>(call.importer().take_room(shape))), sources(places.size());
  std::vector<int64_t> order(static_cast<std::size_t>(lines.size));
  for (int64_t line = 0; line < lines.count(); ++line) {
    const auto at = [&](int64_t i) { return lines.begin(line) + i * lines.inner; };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, [&](int64_t a, int64_t b) { return is_largest ? is_less(x, at(b), at(a)) : is_less(x, at(a), at(b)); });
    for (int64_t i = 0; i < count; ++i) {
      const auto to = static_cast<std::size_t>(of_result.begin(line) + i * of_result.inner);
      places[to] = order[static_cast<std::size_t>(i)];
      sources[to] = at(places[to]);
    }
  }
  call.give(0, constant_value(moved(call, x, shape, [&](int64_t i) { return sources[static_cast<std::size_t>(i)]; })));
  call.give(1, constant_value(places_constant(shape, places)));
}

// Gives the place of the best element of each line.
void give_best_places(Call& call, bool is_largest) {
  const Constant& x = call.constant(0, "the data");
  require_numbers(x);
  const std::size_t axis = call.axis("axis", 0, x.shape.size());
  const Lines lines = lines_along(x.shape, axis);
  if (lines.size == 0 && lines.count() > 0) throw Unsupported("looks for the best of no elements");
  const bool takes_last = call.integer("select_last_index", 0) != 0;
  call.importer().take_room(x.shape);
  std::vector<int64_t> places(static_cast<std::size_t>(lines.count()), 0);
  for (int64_t line = 0; line < lines.count(); ++line) {
    const auto at = [&](int64_t i) { return lines.begin(line) + i * lines.inner; };
    int64_t& best = places[static_cast<std::size_t>(line)];
    for (int64_t i = 1; i < lines.size; ++i) {
      const bool is_better = is_largest ? is_less(x, at(best), at(i)) : is_less(x, at(i), at(best));
      const bool is_worse = is_largest ? is_less(x, at(i), at(best)) : is_less(x, at(best), at(i));
      if (is_better || (takes_last && !is_worse)) best = i;
    }
  }
  Shape shape = x.shape;
  shape[axis] = 1;
  if (call.integer("keepdims", 1) == 0) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  call.give_constant(places_constant(shape, places));
}
void largest_places(Call& call) { give_best_places(call, true); }
void smallest_places(Call& call) { give_best_places(call, false); }

// `share` makes the values of each line from those that it has. Up to opset 12 a line is all from `axis` on together.
template <class Share>
void share_lines(Call& call, Share share) {
  const Constant& x = call.constant(0, "the data");
  require_floating(x);
  constexpr int64_t kOneDimension = 13;
  const bool is_one = call.opset() >= kOneDimension;
  Shape shape = x.shape;
  std::size_t axis = call.axis("axis", is_one ? -1 : 1, shape.size());
  if (!is_one) {
    shape = {element_count(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis))),
             element_count(Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end()))};
    axis = 1;
  }
  const Lines lines = lines_along(shape, axis);
  call.importer().take_room(x.shape);
  std::vector<double> values = numbers_of(x), line(static_cast<std::size_t>(lines.size));
  for (int64_t i = 0; i < lines.count() && !line.empty(); ++i) {
    const auto at = [&](std::size_t j) {
      return static_cast<std::size_t>(lines.begin(i) + static_cast<int64_t>(j) * lines.inner);
    };
    for (std::size_t j = 0; j < line.size(); ++j) line[j] = values[at(j)];
    share(line);
    for (std::size_t j = 0; j < line.size(); ++j) values[at(j)] = line[j];
  }
  call.give_constant(rounded_constant(x.element, x.shape, std::move(values)));
}

double sum_of_exponentials(const std::vector<double>& line, double most) {
  return std::accumulate(line.begin(), line.end(), 0.0, [&](double sum, double x) { return sum + std::exp(x - most); });
}

void softmax(Call& call) {
  share_lines(call, [](std::vector<double>& line) {
    const double most = *std::ranges::max_element(line), sum = sum_of_exponentials(line, most);
    for (double& x : line) x = std::exp(x - most) / sum;
  });
}

void log_softmax(Call& call) {
  share_lines(call, [](std::vector<double>& line) {
    const double most = *std::ranges::max_element(line), sum = std::log(sum_of_exponentials(line, most));
    for (double& x : line) x = x - most - sum;
  });
}

void hardmax(Call& call) {
  share_lines(call, [](std::vector<double>& line) {
    const auto best = std::ranges::max_element(line) - line.begin();
    std::ranges::fill(line, 0);
    line[static_cast<std::size_t>(best)] = 1;
  });
}

// Gives each of the different entries of a dimension, or elements, once. With them come the place of the first of each,
// which of them each entry is, and how many there are.
void unique(Call& call) {
  Constant x = call.constant(0, "the data");
  if (!call.has_attribute("axis")) x.shape = {static_cast<int64_t>(x.count())};
  const std::size_t axis = call.axis("axis", 0, x.shape.size());
  const Lines lines = lines_along(x.shape, axis);
  const auto order_of = [&](int64_t a, int64_t b) {
    for (int64_t line = 0; line < lines.count(); ++line) {
      const int64_t left = lines.begin(line) + a * lines.inner, right = lines.begin(line) + b * lines.inner;
      if (is_less(x, left, right)) return -1;
      if (is_less(x, right, left)) return 1;
    }
    return 0;
  };
  call.importer().take_room(x.shape);
  std::vector<int64_t> order(static_cast<std::size_t>(lines.size));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return order_of(a, b) < 0; });
  std::vector<int64_t> firsts;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order_of(order[i - 1], order[i]) != 0) firsts.push_back(order[i]);
  }
  const bool is_sorted = call.integer("sorted", 1) != 0;
  if (!is_sorted) std::ranges::sort(firsts);
  std::vector<int64_t> group(order.size()), counts(firsts.size(), 0);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto same = is_sorted ? std::ranges::lower_bound(firsts, static_cast<int64_t>(i),
                                                           [&](int64_t a, int64_t b) { return order_of(a, b) < 0; })
                                : std::ranges::find_if(firsts, [&](int64_t first) {
                                    return order_of(first, static_cast<int64_t>(i)) == 0;
                                  });
    group[i] = same - firsts.begin();
    ++counts[static_cast<std::size_t>(group[i])];
  }
  Shape shape = x.shape;
  const int64_t count = shape[axis] = std::ssize(firsts);
  call.give(0, constant_value(moved(call, x, shape, [&](int64_t i) {
              const int64_t outer = i / (count * lines.inner), at = i / lines.inner % count;
              return (outer * lines.size + firsts[static_cast<std::size_t>(at)]) * lines.inner + i % lines.inner;
            })));
  call.give(1, constant_value(places_constant({count}, firsts)));
  call.give(2, constant_value(places_constant({lines.size}, group)));
  call.give(3, constant_value(places_constant({count}, counts)));
}

}  // namespace

std::vector<EvaluatorRow> scan_evaluators() {
  return {
      {"ArgMax", 1, largest_places}, {"ArgMin", 1, smallest_places}, {"CumSum", 11, sum_so_far},
      {"Hardmax", 1, hardmax},       {"LogSoftmax", 1, log_softmax}, {"Softmax", 1, softmax},
      {"TopK", 1, take_best},        {"Unique", 11, unique},
  };
}

}  // namespace gpunn::interchange::constants
