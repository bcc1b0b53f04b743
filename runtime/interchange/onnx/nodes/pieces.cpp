// Pieces of values, one behind the other, and borders around them.
#include <algorithm>
#include <cstddef>
#include <string>

#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"
#include "interchange/onnx/ranges.hpp"

namespace gpunn::interchange {

namespace {

void concat(Call& call) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < call.count(); ++i) {
    // A part of no entries, as of a cache that is empty yet, adds nothing.
    const Value& part = call.input(i);
    if (!part.constant || checked_count(part.constant->shape) != 0) parts.push_back(part);
  }
  const Value& first = parts.front();
  Value y = joined(call, parts, sound_dimension(call.integer("axis", 1), first.shape.size()));
  y.element = first.element;
  call.give(std::move(y));
}

// Every so many-th of a dimension that is as many steps long.
bool is_whole_step(const SliceRange& range, int64_t size) {
  return range.step > 1 && size % range.step == 0 && range.start < range.step && range.count == size / range.step;
}

// The dimension as steps and what is within a step, of which one is taken.
Value sliced_in_steps(Call& call, const Value& x, const SliceRange& range) {
  Sizes whole = x.shape, apart = x.shape;
  whole[range.axis] = apart[range.axis] = {range.count, false};
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(range.axis) + 1, Size{range.step, false});
  return *regrouped(call, sliced(call, *regrouped(call, x, apart), range.axis + 1, range.start, 1), whole);
}

void slice(Call& call) {
  Value x = call.data_anywhere(0);
  for (const SliceRange& range : slice_ranges(call, x.shape)) {
    if (range.count < 1) throw Unsupported("leaves nothing of dimension " + std::to_string(range.axis));
    constexpr std::size_t kMostSplit = 7;  // dimensions of a sample
    if (is_whole_step(range, x.shape[range.axis].factor) && !is_placed(x) && x.shape.size() <= kMostSplit) {
      x = sliced_in_steps(call, x, range);
      continue;
    }
    std::vector<int64_t> places;
    for (int64_t i = 0; i < range.count; ++i) places.push_back(range.start + i * range.step);
    x = gathered(call, x, range.axis, places);
  }
  call.give(std::move(x));
}

void split(Call& call) {
  const Value& x = call.data_anywhere(0);
  const std::size_t axis = sound_dimension(call.integer("axis", 0), x.shape.size());
  if (x.shape[axis].of_batch && call.importer().baked_batch() != 1) throw Unsupported("takes the batch apart");
  int64_t start = 0;
  const std::vector<int64_t> parts = split_sizes(call, x.shape[axis].factor);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.give(i, sliced(call, x, axis, start, parts[i]));
    start += parts[i];
  }
}

// Rows of a constant table, by integers of the data.
void gather_from_table(Call& call) {
  const Value& table = call.input(0);
  if (!table.constant) throw Unsupported("takes values of the data at places that the data say");
  const std::size_t rank = table.shape.size(), axis = sound_dimension(call.integer("axis", 0), rank);
  if (axis != 0) throw Unsupported("takes values along dimension " + std::to_string(axis) + " at places of the data");
  const Constant rows = as_floats(*table.constant);
  const int64_t count = rows.shape.front();
  const Shape each(rows.shape.begin() + 1, rows.shape.end());
  const int64_t width = element_count(each);
  if (count < 1 || width < 1) throw Unsupported("takes rows of an empty table");
  Value places = call.data_anywhere(1);
  const BatchPlace place = place_of(places);
  const std::size_t places_rank = places.shape.size();
  const NumberFormat format = format_of(places.element);
  if (format.is_signed) {  // those below 0 count from the end
    const Value from_end = elementwise(call, "add", {places, number(static_cast<float>(count))});
    places = choice_of(call, comparison_of(call, "less", places, number(0)), from_end, places);
  }
  places = batch_first(call, places);
  Shape row = row_of(places);
  row.push_back(width);
  Value y =
      call.layer("embedding", {&places}, {{"count", {std::to_string(count)}}, {"width", {std::to_string(width)}}}, row);
  call.set_tensor(y, "weight", {count, width}, floats_constant({count, width}, *rows.floats));
  y.element = table.element;
  // Places without dimensions but the batch's are rows of 1.
  if (places_rank == (place.is_outside() ? 0U : 1U)) row.erase(row.begin());
  row.pop_back();
  row.insert(row.end(), each.begin(), each.end());
  const bool is_number = row.empty();
  y = call.reshaped(y, is_number ? Shape{1} : row);
  call.give(place == BatchPlace() && !is_number ? y : placed(call, y, place, places_rank + each.size()));
}

void gather(Call& call) {
  if (!call.input(1).constant) return gather_from_table(call);
  const Value& x = call.data_anywhere(0);
  const std::size_t axis = sound_dimension(call.integer("axis", 0), x.shape.size());
  if (x.shape[axis].of_batch && call.importer().baked_batch() != 1) throw Unsupported("takes rows of the batch");
  std::vector<int64_t> places = call.integers(1, "the places");
  const Shape& shape = call.constant(1, "the places").shape;
  const int64_t size = x.shape[axis].factor;
  for (int64_t& place : places) {
    if (place < -size || place >= size) throw Unsupported("takes a value from beyond the end");
    if (place < 0) place += size;
  }
  if (places.empty()) throw Unsupported("takes no values");
  const Value taken = gathered(call, x, axis, places);
  if (shape.size() == 1) return call.give(taken);
  if (shape.empty()) return call.give(squeezed(call, taken, {static_cast<int64_t>(axis)}));
  Sizes to = taken.shape;
  to.erase(to.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(axis + i), Size{shape[i], false});
  }
  std::optional<Value> y = regrouped(call, taken, to);
  if (!y) throw Unsupported("gives " + to_string(to) + "; layers keep the rows of the batch apart");
  call.give(std::move(*y));
}

// How many values each dimension has before and behind its own.
struct Border {
  std::vector<int64_t> before, behind;
};

Border border_of(const Value& x, const std::vector<int64_t>& pads) {
  const std::size_t rank = x.shape.size();
  if (pads.size() != 2 * rank) throw Unsupported("pads other dimensions than there are");
  Border border;
  constexpr int64_t kMost = 1 << 20;
  for (std::size_t d = 0; d < rank; ++d) {
    const int64_t size = x.shape[d].factor, before = pads[d], behind = pads[rank + d];
    const bool fits = before <= kMost && behind <= kMost && before > -size && behind > -size;
    if (!fits || before + size + behind < 1) {
      throw Unsupported("pads dimension " + std::to_string(d) + " of " + std::to_string(size) + " by " +
                        std::to_string(before) + " and " + std::to_string(behind));
    }
    border.before.push_back(before);
    border.behind.push_back(behind);
  }
  return border;
}

// Where a padded value is not its border; the batch's dimension is 1.
Value inside_of(Call& call, const Value& padded, const Border& border) {
  Shape shape;
  for (const Size& size : padded.shape) shape.push_back(size.of_batch ? 1 : size.factor);
  std::vector<float> inside(static_cast<std::size_t>(call.importer().take_room(shape)));
  for (std::size_t i = 0; i < inside.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    bool is_inside = true;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const int64_t at = rest % shape[d];
      rest /= shape[d];
      is_inside = is_inside && at >= border.before[d] && at < shape[d] - border.behind[d];
    }
    inside[i] = is_inside ? 1 : 0;
  }
  return constant_value(floats_constant(shape, std::move(inside)));
}

// An image's sides mirrored by less than their lengths, as the layer `pad` does it for every size.
bool mirrors_image(const Value& x, const Border& border, const std::string& mode) {
  constexpr std::size_t kImages = 4;
  if (mode != "reflect" || is_placed(x) || border.before.size() != kImages) return false;
  for (std::size_t d = 0; d < kImages; ++d) {
    const auto [least, most] = std::minmax(border.before[d], border.behind[d]);
    if (least < 0 || most >= (d < 2 ? 1 : x.shape[d].factor)) return false;
  }
  return true;
}

// Fewer values where a number is negative.
void pad_by(Call& call, const std::vector<int64_t>& pads, double value) {
  Value x = call.data_anywhere(0);
  Border border = border_of(x, pads);
  const std::string mode = pad_mode(call);
  if (mirrors_image(x, border, mode)) {
    const std::vector<int64_t> around = {border.before[2], border.behind[2], border.before[3], border.behind[3]};
    const Shape row = row_of(x);
    return call.give_layer("pad", {{"padding", texts(around)}, {"mode", {"reflect"}}},
                           {row[0], row[1] + around[0] + around[1], row[2] + around[2] + around[3]});
  }
  for (std::size_t d = 0; d < border.before.size(); ++d) {
    int64_t &before = border.before[d], &behind = border.behind[d];
    const int64_t size = x.shape[d].factor;
    if (mode != "constant" && (before != 0 || behind != 0)) {
      x = gathered(call, x, d, padded_places(mode, size, before, behind));
    } else if (before < 0 || behind < 0) {
      const int64_t start = std::max<int64_t>(0, -before), end = std::max<int64_t>(0, -behind);
      x = sliced(call, x, d, start, size - start - end);
    }
    before = std::max<int64_t>(0, before);
    behind = std::max<int64_t>(0, behind);
  }
  const Element element = x.element;
  if (mode == "constant") x = padded(call, x, border.before, border.behind);
  if (mode == "constant" && value != 0) {
    x = choice_of(call, inside_of(call, x, border), x, number(static_cast<float>(value)));
  }
  x.element = element;
  call.give(std::move(x));
}

void pad_2(Call& call) { pad_by(call, call.list("pads"), call.number("value", 0)); }

void pad_11(Call& call) {
  std::vector<int64_t> pads = call.integers(1, "the padding");
  const std::size_t rank = call.data_anywhere(0).shape.size();
  if (call.has(3)) {
    const std::vector<int64_t> axes = call.integers(3, "the dimensions");
    std::vector<int64_t> all(2 * rank, 0);
    if (pads.size() != 2 * axes.size()) throw Unsupported("does not say how each dimension is padded");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = sound_dimension(axes[i], rank);
      all[axis] = pads[i];
      all[rank + axis] = pads[axes.size() + i];
    }
    pads = all;
  }
  pad_by(call, pads, call.has(2) ? call.scalar(2, "the border's value") : 0);
}

constexpr int64_t kMostRepeats = 65536;

// Sizes of 1 become others.
void expand(Call& call) {
  const Constant& wanted = call.constant(1, "the shape");
  if (is_floating(wanted.element) || wanted.shape.size() != 1) throw Unsupported("its shape is no list of integers");
  Value x = call.data_anywhere(0);
  const std::size_t rank = std::max(x.shape.size(), wanted.integers.size());
  std::vector<int64_t> front;
  for (std::size_t i = x.shape.size(); i < rank; ++i) front.push_back(static_cast<int64_t>(front.size()));
  if (!front.empty()) x = unsqueezed(call, x, front);
  Sizes to = x.shape;
  for (std::size_t i = 0; i < wanted.integers.size(); ++i) {
    const std::size_t d = rank - wanted.integers.size() + i;
    const Size own = x.shape[d], size = wanted.integers[i];
    const bool is_baked = own.of_batch && !size.of_batch && size.factor == own.factor * call.importer().baked_batch();
    if (size == Size{1, false} || size == own || is_baked) continue;
    if (own != Size{1, false} || size.of_batch || size.factor < 1) {
      throw Unsupported("makes " + to_string({size}) + " of a dimension of " + to_string({own}));
    }
    to[d] = size;
  }
  call.give(expanded(call, x, to));
}

// A dimension so many times: as the inner one of two.
Value repeated(Call& call, const Value& x, std::size_t dimension, int64_t times) {
  if (times == 1) return x;
  const Value apart = unsqueezed(call, x, {static_cast<int64_t>(dimension)});
  Sizes to = apart.shape;
  to[dimension].factor = times;
  Sizes whole = x.shape;
  if (__builtin_mul_overflow(whole[dimension].factor, times, &whole[dimension].factor))
    throw Unsupported("is too large");
  const std::optional<Value> y = regrouped(call, expanded(call, apart, to), whole);
  if (whole[dimension].of_batch || !y) throw Unsupported("repeats the batch");
  return *y;
}

void tile(Call& call) {
  const std::vector<int64_t> repeats = call.integers(1, "the repeats");
  Value x = call.data_anywhere(0);
  if (repeats.size() != x.shape.size()) throw Unsupported("repeats other dimensions than there are");
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 1 || repeats[d] > kMostRepeats) {
      throw Unsupported("repeats a dimension " + std::to_string(repeats[d]) + " times");
    }
    x = repeated(call, x, d, repeats[d]);
  }
  call.give(std::move(x));
}

}  // namespace

std::vector<OpRow> piece_rows() {
  return {{"Concat", 4, concat}, {"Slice", 1, slice}, {"Split", 1, split}, {"Gather", 1, gather},
          {"Pad", 2, pad_2},     {"Pad", 11, pad_11}, {"Tile", 6, tile},   {"Expand", 8, expand}};
}

}  // namespace gpunn::interchange
