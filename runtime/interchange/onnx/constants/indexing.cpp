// Takes and replaces elements at places that a constant names.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/constants/sizes.hpp"

namespace gpunn::interchange::constants {

namespace {

// Counts a negative place from the end of its dimension.
int64_t sound_place(int64_t given, int64_t size) {
  if (given < -size || given >= size) {
    throw Unsupported("takes place " + std::to_string(given) + " of a dimension of " + std::to_string(size));
  }
  return given < 0 ? given + size : given;
}

void gather(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::size_t axis = call.axis("axis", 0, from.shape.size());
  const Lines lines = lines_along(from.shape, axis);
  std::vector<int64_t> places = call.integers(1, "the places");
  for (int64_t& place : places) place = sound_place(place, lines.size);
  Shape shape = from.shape;
  const Shape& of_places = call.constant(1, "the places").shape;
  const auto at = shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(at, of_places.begin(), of_places.end());
  const int64_t count = std::ssize(places);
  call.give_constant(moved(call, from, shape, [&](int64_t i) {
    const int64_t outer = i / (count * lines.inner), place = i / lines.inner % count;
    return (outer * lines.size + places[static_cast<std::size_t>(place)]) * lines.inner + i % lines.inner;
  }));
}

// Gives the place in `data` of each element of the input `places`, which names one along a dimension.
std::vector<int64_t> places_along(Call& call, const Shape& data, const char* attribute) {
  const Constant& given = call.constant(1, "the places");
  const std::vector<int64_t> places = call.integers(1, "the places");
  const std::size_t axis = call.axis(attribute, 0, data.size());
  bool fits = given.shape.size() == data.size();
  for (std::size_t d = 0; fits && d < data.size(); ++d) fits = d == axis || given.shape[d] <= data[d];
  if (!fits) {
    throw Unsupported("its places " + gpunn::to_string(given.shape) + " don't fit its data " + gpunn::to_string(data));
  }
  Shape steps = strides_of(data);
  const int64_t step = std::exchange(steps[axis], 0);
  Walk<1> walk(given.shape, {steps});
  std::vector<int64_t> result;
  result.reserve(places.size());
  for (std::size_t i = 0; i < places.size(); ++i, walk.next()) {
    result.push_back(static_cast<int64_t>(walk.place(0)) + sound_place(places[i], data[axis]) * step);
  }
  return result;
}

void gather_elements(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::vector<int64_t> places = places_along(call, from.shape, "axis");
  call.give_constant(moved(call, from, call.constant(1, "the places").shape,
                           [&](int64_t i) { return places[static_cast<std::size_t>(i)]; }));
}

// Tells where each tuple of places points to, behind dimensions that data and places share.
struct Pieces {
  std::vector<int64_t> begins;
  int64_t size = 1;  // elements at each of them
  Shape shape;       // of all pieces together
};

Pieces pieces_of(Call& call, const Shape& data, std::size_t shared) {
  const Shape& of_places = call.constant(1, "the places").shape;
  const std::vector<int64_t> places = call.integers(1, "the places");
  const std::size_t rank = of_places.size();
  const int64_t depth = of_places.empty() ? 0 : of_places.back();
  bool fits = depth >= 1 && shared < rank && depth <= std::ssize(data) - static_cast<int64_t>(shared);
  for (std::size_t d = 0; fits && d < shared; ++d) fits = of_places[d] == data[d];
  if (!fits) {
    throw Unsupported("its places " + gpunn::to_string(of_places) + " don't fit its data " + gpunn::to_string(data));
  }
  const std::size_t end = shared + static_cast<std::size_t>(depth);
  const auto head = [](const Shape& shape, std::size_t count) {
    return Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(count));
  };
  Pieces result;
  result.shape = head(of_places, rank - 1);
  const Shape piece(data.begin() + static_cast<std::ptrdiff_t>(end), data.end());
  result.shape.insert(result.shape.end(), piece.begin(), piece.end());
  result.size = element_count(piece);
  const int64_t count = std::ssize(places) / depth, batches = element_count(head(data, shared));
  const Shape strides = strides_of(data);
  const int64_t batch = shared == 0 ? 0 : strides[shared - 1];
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = shared == 0 ? 0 : i / (count / batches) * batch;
    for (int64_t d = 0; d < depth; ++d) {
      const std::size_t dimension = shared + static_cast<std::size_t>(d);
      begin += sound_place(places[static_cast<std::size_t>(i * depth + d)], data[dimension]) * strides[dimension];
    }
    result.begins.push_back(begin);
  }
  return result;
}

void gather_pieces(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const int64_t shared = call.integer("batch_dims", 0);
  if (shared < 0 || shared > std::ssize(from.shape)) throw Unsupported("shares dimensions that are not there");
  const Pieces pieces = pieces_of(call, from.shape, static_cast<std::size_t>(shared));
  call.give_constant(moved(call, from, pieces.shape, [&](int64_t i) {
    return pieces.begins[static_cast<std::size_t>(i / pieces.size)] + i % pieces.size;
  }));
}

std::pair<FloatFunction, SizeFunction> reduction_of(const std::string& name) {
  if (name == "add") return {[](double a, double b) { return a + b; }, add_sizes};
  if (name == "mul") return {[](double a, double b) { return a * b; }, multiply_sizes};
  if (name == "max") return {larger_float, larger_size};
  if (name == "min") return {smaller_float, smaller_size};
  throw Unsupported("its reduction is " + name);
}

// Gives the data with an update at each place, one after the other.
void give_scattered(Call& call, const std::vector<int64_t>& places, const Constant& updates) {
  const Constant& from = call.constant(0, "the data");
  require_same_type(from, updates);
  const std::string name = call.word("reduction", "none");
  if (name == "none") {
    call.importer().take_room(from.shape);
    std::vector<int64_t> sources(from.count(), -1);
    for (std::size_t i = 0; i < places.size(); ++i) {
      sources[static_cast<std::size_t>(places[i])] = static_cast<int64_t>(i);
    }
    return call.give_constant(assembled(call, {&from, &updates}, from.shape, [&](int64_t i) {
      const int64_t update = sources[static_cast<std::size_t>(i)];
      return update < 0 ? Origin{0, i} : Origin{1, update};
    }));
  }
  require_numbers(from);
  call.importer().take_room(from.shape);
  const auto [of_floats, of_integers] = reduction_of(name);
  if (!is_floating(from.element)) {
    std::vector<Size> values = from.integers;
    for (std::size_t i = 0; i < places.size(); ++i) {
      Size& value = values[static_cast<std::size_t>(places[i])];
      value = of_integers(from.element, value, updates.integers[i]);
    }
    return call.give_constant(integers_constant(from.element, from.shape, std::move(values)));
  }
  std::vector<double> values = numbers_of(from);
  for (std::size_t i = 0; i < places.size(); ++i) {
    double& value = values[static_cast<std::size_t>(places[i])];
    value = rounded(from.element, of_floats(value, updates.number(i)));
  }
  call.give_constant(rounded_constant(from.element, from.shape, std::move(values)));
}

void scatter_elements(Call& call) {
  const Constant &from = call.constant(0, "the data"), &updates = call.constant(2, "the values");
  const std::vector<int64_t> places = places_along(call, from.shape, "axis");
  if (updates.shape != call.constant(1, "the places").shape) throw Unsupported("its values don't fit its places");
  give_scattered(call, places, updates);
}

void scatter_pieces(Call& call) {
  const Constant &from = call.constant(0, "the data"), &updates = call.constant(2, "the values");
  const Pieces pieces = pieces_of(call, from.shape, 0);
  if (updates.shape != pieces.shape) throw Unsupported("its values don't fit its places");
  std::vector<int64_t> places;
  call.importer().take_room(pieces.shape);
  for (const int64_t begin : pieces.begins) {
    for (int64_t i = 0; i < pieces.size; ++i) places.push_back(begin + i);
  }
  give_scattered(call, places, updates);
}

// Keeps the entries of a dimension, or the elements, for which a condition is true.
void compress(Call& call) {
  Constant from = call.constant(0, "the data");
  const Constant& condition = call.constant(1, "the condition");
  require_truths(condition);
  if (!call.has_attribute("axis")) from.shape = {static_cast<int64_t>(from.count())};
  const std::size_t axis = call.axis("axis", 0, from.shape.size());
  const Lines lines = lines_along(from.shape, axis);
  if (condition.shape.size() != 1) throw Unsupported("its condition is " + gpunn::to_string(condition.shape));
  std::vector<int64_t> kept;
  for (std::size_t i = 0; i < condition.count(); ++i) {
    if (condition.integers[i].factor != 0) kept.push_back(sound_place(static_cast<int64_t>(i), lines.size));
  }
  Shape shape = from.shape;
  const int64_t count = shape[axis] = std::ssize(kept);
  call.give_constant(moved(call, from, shape, [&](int64_t i) {
    const int64_t outer = i / (count * lines.inner), place = i / lines.inner % count;
    return (outer * lines.size + kept[static_cast<std::size_t>(place)]) * lines.inner + i % lines.inner;
  }));
}

// Puts the second of two values at the places along a new dimension, and the first one elsewhere.
void one_hot(Call& call) {
  const Constant &places = call.constant(0, "the places"), &values = call.constant(2, "the values");
  constexpr double kMost = 1e15;
  const double wanted = call.scalar(1, "the depth");
  if (values.shape != Shape{2} || !(wanted >= 1 && wanted <= kMost)) {
    throw Unsupported("has values " + gpunn::to_string(values.shape) + " and a depth of " + text(wanted));
  }
  const auto depth = static_cast<int64_t>(wanted);
  const std::vector<double> given = numbers_of(places);
  const std::size_t axis = call.axis("axis", -1, places.shape.size() + 1);
  Shape shape = places.shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  const Lines lines = lines_along(shape, axis);
  call.give_constant(assembled(call, {&values}, shape, [&](int64_t i) {
    const int64_t outer = i / (depth * lines.inner), at = i / lines.inner % depth;
    const double place = given[static_cast<std::size_t>(outer * lines.inner + i % lines.inner)];
    const double from_front =
        std::trunc(place) < 0 ? std::trunc(place) + static_cast<double>(depth) : std::trunc(place);
    return Origin{0, from_front == static_cast<double>(at) ? 1 : 0};
  }));
}

}  // namespace

std::vector<EvaluatorRow> indexing_evaluators() {
  return {
      {"Compress", 9, compress},
      {"Gather", 1, gather},
      {"GatherElements", 11, gather_elements},
      {"GatherND", 11, gather_pieces},
      {"OneHot", 9, one_hot},
      {"Scatter", 9, scatter_elements},
      {"ScatterElements", 11, scatter_elements},
      {"ScatterND", 11, scatter_pieces},
  };
}

}  // namespace gpunn::interchange::constants
