// Computes the largest, the mean or the norm of neighbours.
#include <algorithm>
#include <cmath>
#include <utility>

#include "interchange/onnx/constants/windows.hpp"

namespace gpunn::interchange::constants {

namespace {

Shape pooled_shape(const Constant& x, const Windows& w) {
  Shape shape = {x.shape[0], x.shape[1]};
  shape.insert(shape.end(), w.output.begin(), w.output.end());
  return shape;
}

// Calls `visit(output, first element of its channel, window)` for each output.
template <class Visit>
void for_each_window(Call& call, const Constant& x, const Windows& w, Visit visit) {
  const int64_t channels = x.shape[0] * x.shape[1], space = element_count(w.space), outputs = w.outputs();
  take_work(call, {channels, outputs, std::ssize(w.taps)});
  for (int64_t channel = 0; channel < channels; ++channel) {
    Walk<1> walk(w.output, {Shape(w.output.size(), 0)});
    for (int64_t i = 0; i < outputs; ++i, walk.next()) {
      visit(static_cast<std::size_t>(channel * outputs + i), channel * space, walk.at());
    }
  }
}

// Gives a place as if the first dimension of the space were the innermost one.
int64_t column_major(const Shape& space, int64_t place) {
  int64_t result = 0;
  for (std::size_t d = space.size(); d-- > 0;) {
    result += place % space[d] * element_count(Shape(space.begin(), space.begin() + static_cast<std::ptrdiff_t>(d)));
    place /= space[d];
  }
  return result;
}

void give_largest(Call& call, const Constant& x, const Windows& w) {
  require_numbers(x);
  const Shape shape = pooled_shape(x, w);
  std::vector<int64_t> sources(static_cast<std::size_t>(call.importer().take_room(shape)), -1), places(sources.size());
  const bool by_columns = call.integer("storage_order", 0) != 0;
  for_each_window(call, x, w, [&](std::size_t to, int64_t channel, const Shape& at) {
    int64_t& best = sources[to];
    w.for_each_tap(at, [&](int64_t place, std::size_t) {
      const double value = x.number(static_cast<std::size_t>(channel + place));
      if (best < 0 || value > x.number(static_cast<std::size_t>(best)) || std::isnan(value)) best = channel + place;
    });
    if (best < 0) throw Unsupported("has a window of padding only");
    places[to] = by_columns ? channel + column_major(w.space, best - channel) : best;
  });
  call.give(0, constant_value(moved(call, x, shape, [&](int64_t i) { return sources[static_cast<std::size_t>(i)]; })));
  call.give(1, constant_value(places_constant(shape, places)));
}

template <class Mean>
void give_means(Call& call, const Constant& x, const Windows& w, Mean mean) {
  require_floating(x);
  const Shape shape = pooled_shape(x, w);
  std::vector<double> values(static_cast<std::size_t>(call.importer().take_room(shape)));
  const std::vector<double> numbers = numbers_of(x);
  for_each_window(call, x, w, [&](std::size_t to, int64_t channel, const Shape& at) {
    values[to] = mean(at, [&](int64_t place) { return numbers[static_cast<std::size_t>(channel + place)]; });
  });
  call.give_constant(rounded_constant(x.element, shape, std::move(values)));
}

void give_average(Call& call, const Constant& x, const Windows& w, bool counts_padding) {
  give_means(call, x, w, [&](const Shape& at, const auto& number_at) {
    double sum = 0;
    int64_t inside = 0, padded = 0;
    w.for_each_tap(at, [&](int64_t place, std::size_t) {
      sum += number_at(place);
      ++inside;
    });
    // A window that was rounded up can reach beyond the padding, which does not count.
    for (std::size_t tap = 0; counts_padding && tap < w.taps.size(); ++tap) {
      bool is_padded = true;
      for (std::size_t d = 0; d < w.space.size(); ++d) {
        is_padded = is_padded && w.coordinate(at, tap, d) < w.space[d] + w.behind[d];
      }
      padded += is_padded ? 1 : 0;
    }
    return sum / static_cast<double>(counts_padding ? padded : inside);
  });
}

void give_norm(Call& call, const Constant& x, const Windows& w) {
  const int64_t p = call.integer("p", 2);
  if (p < 1) throw Unsupported("its norm is " + std::to_string(p));
  const auto power = static_cast<double>(p);
  give_means(call, x, w, [&](const Shape& at, const auto& number_at) {
    double sum = 0;
    w.for_each_tap(at, [&](int64_t place, std::size_t) { sum += std::pow(std::abs(number_at(place)), power); });
    return std::pow(sum, 1 / power);
  });
}

const Constant& pooled_data(const Call& call) { return call.constant(0, "the data"); }
Windows own_windows(Call& call) { return windows_over(call, space_of(pooled_data(call).shape), {}); }

// Makes one window over the whole space.
Windows whole_window(Call& call) {
  const Shape space = space_of(pooled_data(call).shape);
  if (element_count(space) == 0) throw Unsupported("pools nothing");
  return windows_over(call, space, space);
}

void largest(Call& call) { give_largest(call, pooled_data(call), own_windows(call)); }
void global_largest(Call& call) { give_largest(call, pooled_data(call), whole_window(call)); }
void average(Call& call) {
  give_average(call, pooled_data(call), own_windows(call), call.integer("count_include_pad", 0) != 0);
}
void global_average(Call& call) { give_average(call, pooled_data(call), whole_window(call), false); }
void norm(Call& call) { give_norm(call, pooled_data(call), own_windows(call)); }
void global_norm(Call& call) { give_norm(call, pooled_data(call), whole_window(call)); }

}  // namespace

std::vector<EvaluatorRow> pooling_evaluators() {
  return {
      {"AveragePool", 1, average},
      {"GlobalAveragePool", 1, global_average},
      {"GlobalLpPool", 2, global_norm},
      {"GlobalMaxPool", 1, global_largest},
      {"LpPool", 2, norm},
      {"MaxPool", 1, largest},
  };
}

}  // namespace gpunn::interchange::constants
