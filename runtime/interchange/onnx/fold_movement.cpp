// Shapes and constants in another order.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/ranges.hpp"

namespace gpunn::interchange {

namespace {

bool give_attribute(Call& call) {
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
  return true;
}

// What comes of an optional begin or end among `rank` dimensions.
std::size_t within(int64_t place, std::size_t rank) {
  const auto size = static_cast<int64_t>(rank);
  return static_cast<std::size_t>(std::clamp<int64_t>(place < 0 ? place + size : place, 0, size));
}

bool give_shape(Call& call) {
  const Sizes& shape = call.input(0).shape;
  const std::size_t begin = within(call.integer("start", 0), shape.size());
  const std::size_t end = within(call.integer("end", static_cast<int64_t>(shape.size())), shape.size());
  Sizes part;
  for (std::size_t i = begin; i < end; ++i) part.push_back(shape[i]);
  const auto count = static_cast<int64_t>(part.size());
  call.give_constant(sizes_constant({count}, std::move(part)));
  return true;
}

bool give_size(Call& call) {
  Size all{1, false};
  for (const Size& size : call.input(0).shape) {
    if (__builtin_mul_overflow(all.factor, size.factor, &all.factor))
      throw Unsupported("counts more than there can be");
    if (size.of_batch && all.of_batch) throw Unsupported("counts values that have the batch twice");
    all.of_batch = all.of_batch || size.of_batch;
  }
  call.give_constant(sizes_constant({}, {all}));
  return true;
}

bool gather(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  const std::size_t axis = call.axis("axis", 0, from.shape.size());
  const std::vector<int64_t> places = call.integers(1, "the places");
  const int64_t size = from.shape[axis];
  std::vector<int64_t> sound;
  for (const int64_t place : places) {
    if (place < -size || place >= size) throw Unsupported("takes a value from beyond the end");
    sound.push_back(place < 0 ? place + size : place);
  }
  const Shape& of_places = call.constant(1, "the places").shape;
  Shape shape(from.shape.begin(), from.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), of_places.begin(), of_places.end());
  shape.insert(shape.end(), from.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.shape.end());
  const int64_t inner = strides_of(from.shape)[axis], count = std::ssize(sound);
  call.give_constant(taken(call, from, shape, [&](int64_t i) {
    const int64_t outer = i / (count * inner), place = i / inner % count;
    return (outer * size + sound[static_cast<std::size_t>(place)]) * inner + i % inner;
  }));
  return true;
}

bool join(Call& call) {
  if (!all_known(call) || call.count() == 0) return false;
  Constant all = call.constant(0, "a part");
  for (std::size_t part = 1; part < call.count(); ++part) {
    const Constant next = call.constant(part, "a part");
    const std::size_t axis = call.axis("axis", 0, all.shape.size());
    Shape shape = all.shape;
    bool fits = next.shape.size() == shape.size() && is_floating(next.element) == is_floating(all.element);
    for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = i == axis || next.shape[i] == shape[i];
    if (!fits) throw Unsupported("joins constants that don't fit");
    // One behind the other in memory, then each outer part of the one before that of the other.
    Constant both = all;
    if (is_floating(all.element)) {
      std::vector<float> values = *all.floats;
      values.insert(values.end(), next.floats->begin(), next.floats->end());
      both.floats = std::make_shared<const std::vector<float>>(std::move(values));
    } else {
      both.integers.insert(both.integers.end(), next.integers.begin(), next.integers.end());
    }
    const int64_t inner = strides_of(shape)[axis];
    const int64_t first = shape[axis] * inner, second = next.shape[axis] * inner, begin = element_count(shape);
    shape[axis] += next.shape[axis];
    all = taken(call, both, shape, [&](int64_t i) {
      const int64_t outer = i / (first + second), at = i % (first + second);
      return at < first ? outer * first + at : begin + outer * second + at - first;
    });
  }
  call.give_constant(std::move(all));
  return true;
}

bool slice_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  Sizes sizes;
  for (const int64_t size : from.shape) sizes.push_back({size, false});
  Constant result = from;
  for (const SliceRange& range : slice_ranges(call, sizes)) {
    const Constant before = result;
    Shape shape = before.shape;
    const int64_t inner = strides_of(shape)[range.axis], size = shape[range.axis];
    shape[range.axis] = range.count;
    result = taken(call, before, shape, [&](int64_t i) {
      const int64_t outer = i / (range.count * inner), at = i / inner % range.count;
      return (outer * size + range.start + at * range.step) * inner + i % inner;
    });
  }
  call.give_constant(std::move(result));
  return true;
}

bool split_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  const std::size_t axis = call.axis("axis", 0, from.shape.size());
  const int64_t size = from.shape[axis], inner = strides_of(from.shape)[axis];
  int64_t start = 0;
  const std::vector<int64_t> parts = split_sizes(call, size);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    Shape shape = from.shape;
    shape[axis] = parts[part];
    call.give(part, constant_value(taken(call, from, shape, [&](int64_t i) {
                const int64_t outer = i / (parts[part] * inner), at = i / inner % parts[part];
                return (outer * size + start + at) * inner + i % inner;
              })));
    start += parts[part];
  }
  return true;
}

bool pass_constant(Call& call) {
  if (!call.input(0).constant) return false;
  call.give(call.input(0));
  return true;
}

bool give_shaped(Call& call, Shape shape) {
  Constant result = call.constant(0, "the data");
  if (checked_count(shape) != checked_count(result.shape)) {
    throw Unsupported("makes " + gpunn::to_string(shape) + " of a constant " + gpunn::to_string(result.shape));
  }
  result.shape = std::move(shape);
  call.give_constant(std::move(result));
  return true;
}

bool reshape_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  Shape shape = call.integers(1, "the shape");
  int64_t known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && call.integer("allowzero", 0) == 0 && i < from.shape.size()) shape[i] = from.shape[i];
    if (shape[i] != -1 && __builtin_mul_overflow(known, shape[i], &known)) known = 0;
  }
  if (known > 0) std::ranges::replace(shape, -1, element_count(from.shape) / known);
  return give_shaped(call, std::move(shape));
}

std::vector<int64_t> sound_axes(Call& call, std::size_t rank) {
  std::vector<int64_t> axes = call.has(1) ? call.integers(1, "the dimensions") : call.list("axes");
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) throw Unsupported("names a dimension that is not there");
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Unsupported("names a dimension twice");
  return axes;
}

bool squeeze_constant(Call& call) {
  if (!all_known(call)) return false;
  Shape shape = call.constant(0, "the data").shape;
  std::vector<int64_t> axes = sound_axes(call, shape.size());
  if (!call.has(1) && !call.has_attribute("axes")) {
    std::erase(shape, 1);
    return give_shaped(call, std::move(shape));
  }
  std::ranges::reverse(axes);
  for (const int64_t axis : axes) shape.erase(shape.begin() + axis);
  return give_shaped(call, std::move(shape));
}

bool unsqueeze_constant(Call& call) {
  if (!all_known(call)) return false;
  Shape shape = call.constant(0, "the data").shape;
  const std::size_t more = call.has(1) ? call.integers(1, "the dimensions").size() : call.list("axes").size();
  for (const int64_t axis : sound_axes(call, shape.size() + more)) shape.insert(shape.begin() + axis, 1);
  return give_shaped(call, std::move(shape));
}

bool flatten_constant(Call& call) {
  if (!all_known(call)) return false;
  const Shape& shape = call.constant(0, "the data").shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t given = call.integer("axis", 1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) throw Unsupported("names a dimension that is not there");
  return give_shaped(call, {element_count(Shape(shape.begin(), shape.begin() + axis)),
                            element_count(Shape(shape.begin() + axis, shape.end()))});
}

bool transpose_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  const std::size_t rank = from.shape.size();
  std::vector<int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  order = call.list("perm", order);
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  bool sound = sorted.size() == rank;
  for (std::size_t i = 0; sound && i < rank; ++i) sound = sorted[i] == static_cast<int64_t>(i);
  if (!sound) throw Unsupported("does not name each dimension once");
  call.give_constant(transposed_constant(call, from, order));
  return true;
}

// A shape that a constant is given, of which one dimension may be the batch: as many equal parts as it has rows are
// kept as one.
struct GivenShape {
  Shape sizes;
  std::optional<std::size_t> batch;
};

GivenShape given_shape(const Call& call, std::size_t input) {
  GivenShape given;
  for (const Size& size : call.constant(input, "the shape").integers) {
    if (size.of_batch && (given.batch || size.factor != 1)) {
      throw Unsupported("the shape depends on the size of the batch twice");
    }
    if (size.of_batch) given.batch = given.sizes.size();
    given.sizes.push_back(size.factor);
  }
  return given;
}

void give_of_batch(Call& call, Constant constant, const std::optional<std::size_t>& batch) {
  Value value = constant_value(std::move(constant));
  if (batch) value.shape[*batch] = {1, true};
  call.give(std::move(value));
}

bool expand_constant(Call& call) {
  if (!all_known(call)) return false;
  const Constant& from = call.constant(0, "the data");
  const GivenShape given = given_shape(call, 1);
  const Shape shape = broadcast_shape(from.shape, given.sizes);
  if (given.batch && (shape.size() != given.sizes.size() || shape[*given.batch] != 1)) {
    throw Unsupported("its constant differs along the batch");
  }
  give_of_batch(call, taken(call, from, shape, [&](int64_t i) { return broadcast_place(i, shape, from.shape); }),
                given.batch);
  return true;
}

// Other values at some places, as of a mask that is filled in piece by piece.
bool scatter_pieces(Call& call) {
  if (!all_known(call)) return false;
  if (call.word("reduction", "none") != "none") throw Unsupported("adds to what it replaces");
  const Constant &from = call.constant(0, "the data"), &updates = call.constant(2, "the values");
  const Shape& of_places = call.constant(1, "the places").shape;
  const std::vector<int64_t> places = call.integers(1, "the places");
  const bool is_float = is_floating(from.element);
  const int64_t depth = of_places.empty() ? 0 : of_places.back();
  if (depth < 1 || depth > std::ssize(from.shape) || is_float != is_floating(updates.element)) {
    throw Unsupported("its places don't fit its data");
  }
  const Shape strides = strides_of(from.shape);
  const int64_t piece = strides[static_cast<std::size_t>(depth) - 1], count = std::ssize(places) / depth;
  if (checked_count(updates.shape) != count * piece) throw Unsupported("its values don't fit its places");
  Constant result = taken(call, from, from.shape, [](int64_t i) { return i; });
  std::vector<float> floats = is_float ? *result.floats : std::vector<float>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const auto dimension = static_cast<std::size_t>(d);
      const int64_t size = from.shape[dimension], given = places[static_cast<std::size_t>(i * depth + d)];
      if (given < -size || given >= size) throw Unsupported("replaces values beyond the end");
      begin += (given < 0 ? given + size : given) * strides[dimension];
    }
    for (int64_t j = 0; j < piece; ++j) {
      const auto to = static_cast<std::size_t>(begin + j), at = static_cast<std::size_t>(i * piece + j);
      if (is_float) {
        floats[to] = (*updates.floats)[at];
      } else {
        result.integers[to] = updates.integers[at];
      }
    }
  }
  if (is_float) result.floats = std::make_shared<const std::vector<float>>(std::move(floats));
  call.give_constant(std::move(result));
  return true;
}

bool constant_of_shape(Call& call) {
  if (!all_known(call)) return false;
  const Constant* value = call.tensor("value");
  if (value != nullptr && checked_count(value->shape) != 1) throw Unsupported("its value is not one number");
  const Constant zero = floats_constant({1}, {0});
  const GivenShape given = given_shape(call, 0);
  give_of_batch(call, taken(call, value == nullptr ? zero : *value, given.sizes, [](int64_t) { return 0; }),
                given.batch);
  return true;
}

}  // namespace

Constant transposed_constant(Call& call, const Constant& from, const std::vector<int64_t>& order) {
  Shape shape;
  for (const int64_t one : order) shape.push_back(from.shape[static_cast<std::size_t>(one)]);
  const Shape before = strides_of(from.shape), after = strides_of(shape);
  return taken(call, from, shape, [&](int64_t i) {
    int64_t place = 0;
    for (std::size_t d = 0; d < order.size(); ++d) {
      place += i / after[d] * before[static_cast<std::size_t>(order[d])];
      i %= after[d];
    }
    return place;
  });
}

Foldings movement_foldings() {
  return {
      {"Constant", give_attribute},
      {"Shape", give_shape},
      {"Size", give_size},
      {"Identity", pass_constant},
      {"Dropout", pass_constant},
      {"Gather", gather},
      {"Concat", join},
      {"Slice", slice_constant},
      {"Split", split_constant},
      {"Reshape", reshape_constant},
      {"Squeeze", squeeze_constant},
      {"Unsqueeze", unsqueeze_constant},
      {"Flatten", flatten_constant},
      {"Transpose", transpose_constant},
      {"Expand", expand_constant},
      {"ConstantOfShape", constant_of_shape},
      {"ScatterND", scatter_pieces},
  };
}

}  // namespace gpunn::interchange
