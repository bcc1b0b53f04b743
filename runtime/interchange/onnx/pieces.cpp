// Pieces of values, one behind the other, and borders around them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/placement.hpp"
#include "interchange/onnx/ranges.hpp"

namespace gpunn::interchange {

namespace {

// Along dimension 1, which is the only one that layers join. A layer takes so many; the rest goes behind what it gives.
Value joined_channels(Call& call, const std::vector<Value>& parts) {
  constexpr std::size_t kMostParts = 16;
  Value joined = parts.front();
  for (std::size_t begin = 1; begin < parts.size(); begin += kMostParts - 1) {
    const std::size_t end = std::min(begin + kMostParts - 1, parts.size());
    const Value before = joined;
    std::vector<const Value*> some = {&before};
    Shape partial = row_of(before);
    for (std::size_t i = begin; i < end; ++i) {
      some.push_back(&parts[i]);
      if (__builtin_add_overflow(partial[0], parts[i].shape[1].factor, &partial[0])) throw Unsupported("is too large");
    }
    joined = call.layer("concat", some, {}, partial, end < parts.size() ? "part" : "");
  }
  return joined;
}

// Along a dimension of a row, which goes to the front for it.
Value joined_along(Call& call, std::vector<Value> parts, std::size_t dimension) {
  const std::size_t rank = parts.front().shape.size() - 1;
  std::vector<int64_t> order(rank), back(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(dimension),
              order.begin() + static_cast<std::ptrdiff_t>(dimension) + 1);
  for (std::size_t i = 0; i < rank; ++i) back[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  for (Value& part : parts) part = call.transposed(part, order);
  return call.transposed(joined_channels(call, parts), back);
}

}  // namespace

// Copies of copies, since a layer joins so many at most.
Value repeated(Call& call, const Value& x, std::size_t dimension, int64_t times) {
  if (times == 1) return x;
  constexpr int64_t kMostParts = 16;
  if (times <= kMostParts) {
    return joined_along(call, std::vector<Value>(static_cast<std::size_t>(times), x), dimension);
  }
  const Value whole = repeated(call, repeated(call, x, dimension, kMostParts), dimension, times / kMostParts);
  const int64_t rest = times % kMostParts;
  return rest == 0 ? whole : joined_along(call, {whole, repeated(call, x, dimension, rest)}, dimension);
}

namespace {

// How many values each dimension of a row has before and behind its own.
struct Border {
  std::vector<int64_t> before, behind;
};

// An image with zeros around its rows and columns.
Value image_with_zeros(Call& call, const Value& image, const std::vector<int64_t>& border) {
  const Shape row = row_of(image);
  return call.layer("pad", {&image}, {{"padding", texts(border)}},
                    {row[0], row[1] + border[0] + border[1], row[2] + border[2] + border[3]});
}

// Zeros around each dimension of a row. Those of the rows and columns of an image are a layer; another dimension is the
// rows of an image whose columns are all dimensions behind it.
Value with_zeros(Call& call, const Value& x, const Border& border) {
  Shape row = row_of(x);
  const std::size_t rank = row.size();
  if (rank == 3 && border.before[0] + border.behind[0] == 0) {
    return image_with_zeros(call, x, {border.before[1], border.behind[1], border.before[2], border.behind[2]});
  }
  Value y = x;
  for (std::size_t d = 0; d < rank; ++d) {
    const int64_t before = border.before[d], behind = border.behind[d];
    if (before + behind == 0) continue;
    const auto middle = row.begin() + static_cast<std::ptrdiff_t>(d);
    const Shape image = {element_count(Shape(row.begin(), middle)), *middle,
                         element_count(Shape(middle + 1, row.end()))};
    row[d] += before + behind;
    if (!checked_count(row)) throw Unsupported("gives rows of " + gpunn::to_string(row) + ", larger than any memory");
    y = call.reshaped(image_with_zeros(call, call.reshaped(y, image), {before, behind, 0, 0}), row);
  }
  return y;
}

// A constant for each sample, [1, ...] or [...], in front of or behind what a layer gives.
Value joined_with_constant(Call& call, const Value& x, const Constant& constant, std::size_t dimension, bool in_front) {
  const Shape row = row_of(x);
  Shape own = constant.shape;
  if (own.size() == row.size() + 1 && own.front() == 1) own.erase(own.begin());
  Shape like = row;
  if (own.size() == row.size()) like[dimension] = own[dimension];
  if (own != like || !is_floating(constant.element)) {
    throw Unsupported("joins " + to_string(x.shape) + " and a constant of " + gpunn::to_string(constant.shape));
  }
  const bool is_token = in_front && dimension == 0 && row.size() == 2 && own.front() == 1;
  Shape whole = row;
  whole[dimension] += own[dimension];
  if (is_token && constant.trained) {
    Value y = call.layer("class_token", {&x}, {}, whole, "token");
    call.set_tensor(y, "weight", {1, 1, row.back()}, constant);
    return y;
  }
  // Zeros, to which the constant is added.
  std::vector<int64_t> before(row.size(), 0), behind(row.size(), 0);
  (in_front ? before : behind)[dimension] = own[dimension];
  const Value wide = with_zeros(call, x, {before, behind});
  const int64_t inner = element_count(Shape(own.begin() + static_cast<std::ptrdiff_t>(dimension), own.end()));
  const int64_t outer = element_count(own) / inner, all = element_count(whole) / outer;
  call.importer().take_room(whole);
  std::vector<float> terms(static_cast<std::size_t>(element_count(whole)), 0);
  for (int64_t i = 0; i < outer; ++i) {
    std::copy_n(constant.floats->begin() + i * inner, inner, terms.begin() + i * all + (in_front ? 0 : all - inner));
  }
  Value y = call.layer("affine", {&wide}, {{"shape", texts(whole)}, {"weight", {"false"}}, {"trained", {"false"}}},
                       whole, "constant");
  call.set_tensor(y, "bias", whole, floats_constant(whole, std::move(terms)));
  return y;
}

void concat(Call& call) {
  std::size_t first = 0, last = call.count();
  while (first < last && call.input(first).constant) ++first;
  while (first < last && call.input(last - 1).constant) --last;
  if (first == last) throw Unsupported("joins constants alone");
  const Shape row = call.sample(first);
  const std::size_t axis = call.axis("axis", 1, row.size() + 1);
  if (axis == 0) throw Unsupported("joins batches");
  std::vector<Value> parts;
  for (std::size_t i = first; i < last; ++i) {
    Shape part = call.sample(i);
    if (part.size() == row.size()) part[axis - 1] = row[axis - 1];
    if (part != row) throw Unsupported("joins values of unlike shapes");
    parts.push_back(call.data(i));
  }
  Value all = joined_along(call, parts, axis - 1);
  for (std::size_t i = first; i-- > 0;) {
    all = joined_with_constant(call, all, *call.input(i).constant, axis - 1, true);
  }
  for (std::size_t i = last; i < call.count(); ++i) {
    all = joined_with_constant(call, all, *call.input(i).constant, axis - 1, false);
  }
  call.give(std::move(all));
}

// `count` neighbours of a dimension of a row.
Value sliced(Call& call, const Value& x, std::size_t dimension, int64_t start, int64_t count) {
  Shape row = row_of(x);
  if (row[dimension] == count) return x;
  row[dimension] = count;
  return call.layer("slice", {&x},
                    {{"dimension", {std::to_string(dimension)}},
                     {"start", {std::to_string(start)}},
                     {"size", {std::to_string(count)}}},
                    row);
}

constexpr std::size_t kMostPieces = 64;
constexpr int64_t kMostRepeats = 65536;

// Values of a dimension in any order: one behind the other what is together.
Value picked(Call& call, const Value& x, std::size_t dimension, const std::vector<int64_t>& places) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < places.size();) {
    std::size_t end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    if (parts.size() == kMostPieces) throw Unsupported("takes more than 64 pieces of its input");
    parts.push_back(sliced(call, x, dimension, places[i], static_cast<int64_t>(end - i)));
    i = end;
  }
  return joined_along(call, parts, dimension);
}

// Every so many-th of a dimension that is as many steps long.
bool is_whole_step(const SliceRange& range, int64_t size) {
  return range.step > 1 && size % range.step == 0 && range.start < range.step && range.count == size / range.step;
}

// The dimension as steps and what is within a step, of which one is taken.
Value sliced_in_steps(Call& call, const Value& x, const SliceRange& range) {
  Shape row = row_of(x), apart = row;
  row[range.axis - 1] = apart[range.axis - 1] = range.count;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(range.axis), range.step);
  return call.reshaped(sliced(call, call.reshaped(x, apart), range.axis, range.start, 1), row);
}

void slice(Call& call) {
  Value x = call.data(0);
  for (const SliceRange& range : slice_ranges(call, x.shape)) {
    std::vector<int64_t> places;
    if (range.count < 1) throw Unsupported("leaves nothing of dimension " + std::to_string(range.axis));
    if (range.step == 1) {
      x = sliced(call, x, range.axis - 1, range.start, range.count);
      continue;
    }
    if (is_whole_step(range, row_of(x)[range.axis - 1])) {
      x = sliced_in_steps(call, x, range);
      continue;
    }
    if (range.count > static_cast<int64_t>(kMostPieces)) throw Unsupported("takes more than 64 pieces of its input");
    for (int64_t i = 0; i < range.count; ++i) places.push_back(range.start + i * range.step);
    x = picked(call, x, range.axis - 1, places);
  }
  call.give(std::move(x));
}

void split(Call& call) {
  const Shape row = call.sample(0);
  const std::size_t axis = call.axis("axis", 0, row.size() + 1);
  if (axis == 0) throw Unsupported("takes the batch apart");
  int64_t start = 0;
  const std::vector<int64_t> parts = split_sizes(call, row[axis - 1]);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.give(i, sliced(call, call.data(0), axis - 1, start, parts[i]));
    start += parts[i];
  }
}

void gather_from_rows(Call& call) {
  const Shape row = call.sample(0);
  const std::size_t axis = call.axis("axis", 0, row.size() + 1);
  if (axis == 0) throw Unsupported("takes rows of the batch");
  std::vector<int64_t> places = call.integers(1, "the places");
  const Shape& shape = call.constant(1, "the places").shape;
  const int64_t size = row[axis - 1];
  for (int64_t& place : places) {
    if (place < -size || place >= size) throw Unsupported("takes a value from beyond the end");
    if (place < 0) place += size;
  }
  if (places.empty() || shape.size() > 1) throw Unsupported("its places are " + gpunn::to_string(shape));
  const Value taken = picked(call, call.data(0), axis - 1, places);
  if (!shape.empty()) return call.give(taken);
  const Value kept = call.in_place(taken);
  const auto rank = static_cast<int64_t>(kept.shape.size());
  const int64_t given = call.integer("axis", 0);
  call.importer().set_value(call.node().outputs.front(), squeezed(call, kept, {given < 0 ? given + rank : given}));
}

// x plus a constant number.
Value shifted(Call& call, const Value& x, double term) {
  Value y = call.layer("affine", {&x}, {{"shape", {"1"}}, {"weight", {"false"}}, {"trained", {"false"}}}, row_of(x));
  call.set_tensor(y, "bias", {1}, floats_constant({1}, {static_cast<float>(term)}));
  return y;
}

Border border_of(const Call& call, const std::vector<int64_t>& pads) {
  const std::size_t rank = call.data(0).shape.size();
  if (pads.size() != 2 * rank || pads[0] != 0 || pads[rank] != 0) {
    throw Unsupported("pads the batch, or other dimensions than there are");
  }
  Border border;
  constexpr int64_t kMost = 4096;
  for (std::size_t d = 1; d < rank; ++d) {
    const int64_t size = call.data(0).shape[d].factor, before = pads[d], behind = pads[rank + d];
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

// Where in a dimension of `size` the value at `place` is from, which may be beyond its ends.
int64_t source_of(const std::string& mode, int64_t place, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(place, 0, size - 1);
  if (mode == "wrap") return ((place % size) + size) % size;
  if (mode != "reflect") throw Unsupported("pads by " + mode);
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), at = ((place % period) + period) % period;
  return at < size ? at : period - at;
}

// Fewer values where a number is negative.
// An image's sides mirrored by less than their lengths, as the layer `pad` does it for every size.
bool mirrors_image(const Call& call, const Border& border, const std::string& mode) {
  const Value& x = call.data(0);
  if (mode != "reflect" || border.before.size() != 3 || border.before[0] != 0 || border.behind[0] != 0) return false;
  for (std::size_t d = 1; d < 3; ++d) {
    const auto [least, most] = std::minmax(border.before[d], border.behind[d]);
    if (least < 0 || most >= x.shape[d + 1].factor) return false;
  }
  return true;
}

void pad_by(Call& call, const std::vector<int64_t>& pads, double value) {
  Border border = border_of(call, pads);
  const std::string mode = call.word("mode", "constant");
  Value x = call.data(0);
  if (mirrors_image(call, border, mode)) {
    const std::vector<int64_t> around = {border.before[1], border.behind[1], border.before[2], border.behind[2]};
    const Shape row = row_of(x);
    return call.give_layer("pad", {{"padding", texts(around)}, {"mode", {"reflect"}}},
                           {row[0], row[1] + around[0] + around[1], row[2] + around[2] + around[3]});
  }
  bool is_wider = false;
  for (std::size_t d = 0; d < border.before.size(); ++d) {
    const int64_t size = x.shape[d + 1].factor;
    if (mode != "constant") {
      std::vector<int64_t> places;
      for (int64_t place = -border.before[d]; place < size + border.behind[d]; ++place) {
        places.push_back(source_of(mode, place, size));
      }
      x = picked(call, x, d, places);
      continue;
    }
    const int64_t start = std::max<int64_t>(0, -border.before[d]);
    x = sliced(call, x, d, start, size - start - std::max<int64_t>(0, -border.behind[d]));
    border.before[d] = std::max<int64_t>(0, border.before[d]);
    border.behind[d] = std::max<int64_t>(0, border.behind[d]);
    is_wider = is_wider || border.before[d] + border.behind[d] > 0;
  }
  if (!is_wider) return call.give(std::move(x));
  if (value == 0) return call.give(with_zeros(call, x, border));
  constexpr double kMost = 64;  // beyond it the samples would lose digits
  if (!(std::abs(value) <= kMost)) throw Unsupported("pads by " + text(value) + ", farther from 0 than 64");
  call.give(shifted(call, with_zeros(call, shifted(call, x, -value), border), value));
}

void pad_2(Call& call) { pad_by(call, call.list("pads"), call.number("value", 0)); }

void pad_11(Call& call) {
  std::vector<int64_t> pads = call.integers(1, "the padding");
  const std::size_t rank = call.data(0).shape.size();
  if (call.has(3)) {
    const std::vector<int64_t> axes = call.integers(3, "the dimensions");
    std::vector<int64_t> all(2 * rank, 0);
    if (pads.size() != 2 * axes.size()) throw Unsupported("does not say how each dimension is padded");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i];
      if (axis < 0 || axis >= static_cast<int64_t>(rank)) throw Unsupported("pads a dimension that is not there");
      all[static_cast<std::size_t>(axis)] = pads[i];
      all[rank + static_cast<std::size_t>(axis)] = pads[axes.size() + i];
    }
    pads = all;
  }
  pad_by(call, pads, call.has(2) ? call.scalar(2, "the border's value") : 0);
}

// Sizes of 1 in a row become others.
void expand(Call& call) {
  const Constant& wanted = call.constant(1, "the shape");
  if (is_floating(wanted.element) || wanted.shape.size() != 1) throw Unsupported("its shape is no list of integers");
  Value x = call.data(0);
  const std::size_t rank = x.shape.size();
  if (wanted.integers.size() > rank) throw Unsupported("puts dimensions in front of the batch");
  for (std::size_t i = 0; i < wanted.integers.size(); ++i) {
    const std::size_t d = rank - wanted.integers.size() + i;
    const Size own = x.shape[d], size = wanted.integers[i];
    const bool is_baked = d == 0 && !size.of_batch && size.factor == call.importer().baked_batch();
    if (size == Size{1, false} || size == own || is_baked) continue;
    if (d == 0 || own != Size{1, false} || size.of_batch || size.factor < 1 || size.factor > kMostRepeats) {
      throw Unsupported("makes " + to_string({size}) + " of a dimension of " + to_string({own}));
    }
    x = repeated(call, x, d - 1, size.factor);
  }
  call.give(std::move(x));
}

// Each dimension of a row so many times.
void tile(Call& call) {
  const std::vector<int64_t> repeats = call.integers(1, "the repeats");
  Value x = call.data(0);
  if (repeats.size() != x.shape.size() || repeats[0] != 1) throw Unsupported("repeats the batch, or other dimensions");
  for (std::size_t d = 1; d < repeats.size(); ++d) {
    if (repeats[d] < 1 || repeats[d] > kMostRepeats) {
      throw Unsupported("repeats a dimension " + std::to_string(repeats[d]) + " times");
    }
    x = repeated(call, x, d - 1, repeats[d]);
  }
  call.give(std::move(x));
}

}  // namespace

std::vector<OpRow> piece_rows() {
  return {{"Concat", 4, concat}, {"Slice", 1, slice}, {"Split", 1, split}, {"Gather", 1, gather_from_rows},
          {"Pad", 2, pad_2},     {"Pad", 11, pad_11}, {"Tile", 6, tile},   {"Expand", 8, expand}};
}

}  // namespace gpunn::interchange
