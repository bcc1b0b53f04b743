#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/ranges.hpp"

namespace gpunn::interchange {

namespace {

void pass_on(Call& call) { call.give(call.data(0)); }

void cast(Call& call) {
  if (!is_floating(static_cast<Element>(call.integer("to", 0)))) throw Unsupported("makes integers of the data");
  call.give(call.data(0));
}

void dropout_of(Call& call, double p) {
  if (!(p > 0 && p < 1)) return pass_on(call);
  call.give_layer("dropout", {{"p", {text(p)}}}, call.sample(0));
}
void dropout_7(Call& call) { dropout_of(call, call.number("ratio", 0.5)); }
void dropout_12(Call& call) { dropout_of(call, call.has(1) ? call.scalar(1, "the ratio") : 0.5); }

Shape merged(const Shape& row) {
  int64_t count = 1;
  for (const int64_t size : row) count *= size;
  return {count};
}

void flatten(Call& call) {
  const Shape row = call.sample(0);
  const auto rank = static_cast<int64_t>(row.size()) + 1;
  const int64_t axis = call.integer("axis", 1);
  if (axis != 1 && axis != 1 - rank) throw Unsupported("flattens from another dimension than 1");
  call.give(call.reshaped(call.data(0), merged(row)));
}

void reshape(Call& call) {
  const Constant& wanted = call.constant(1, "the shape");
  const Shape row = call.sample(0);
  if (is_floating(wanted.element) || wanted.shape.size() != 1 || wanted.integers.size() < 2) {
    throw Unsupported("its shape must be a list of two integers or more");
  }
  const bool zeros_copy = call.integer("allowzero", 0) == 0;
  const Size first = wanted.integers.front();
  const int64_t baked = call.importer().baked_batch();
  const bool keeps = first == Size{1, true} || (first.factor == 0 && zeros_copy) ||
                     (!first.of_batch && first.factor > 0 && first.factor == baked);
  const bool rest = !first.of_batch && first.factor == -1;  // the batch, if the others make up a row
  if (!keeps && !rest) throw Unsupported("takes the batch apart, or rows of it together");
  Shape result;
  int64_t known = 1;
  std::size_t open = 0;
  for (std::size_t i = 1; i < wanted.integers.size(); ++i) {
    Size size = wanted.integers[i];
    if (size.of_batch) throw Unsupported("takes the batch apart");
    if (size.factor == 0 && zeros_copy && i <= row.size()) size.factor = row[i - 1];
    if (size.factor == -1) {
      ++open;
    } else if (size.factor < 1 || __builtin_mul_overflow(known, size.factor, &known)) {
      throw Unsupported("a size of its shape is " + std::to_string(size.factor));
    }
    result.push_back(size.factor);
  }
  const int64_t count = merged(row).front();
  if (open > 1 || (open == 1 && (rest || count % known != 0))) throw Unsupported("its shape leaves too much open");
  for (int64_t& size : result) size = size == -1 ? count / known : size;
  if (open == 0 && known != count) {
    throw Unsupported("makes " + gpunn::to_string(result) + " of rows of " + gpunn::to_string(row));
  }
  call.give(call.reshaped(call.data(0), result));
}

// The dimensions of an attribute or, from opset 13 on, of the second input.
std::vector<int64_t> dimensions(const Call& call, std::size_t rank) {
  std::vector<int64_t> axes = call.has(1) ? call.integers(1, "the dimensions") : call.list("axes");
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 1 || axis >= static_cast<int64_t>(rank))
      throw Unsupported("one of its dimensions is the batch's or none");
  }
  std::ranges::sort(axes);
  if (axes.empty() || std::ranges::adjacent_find(axes) != axes.end()) {
    throw Unsupported("does not name its dimensions once each");
  }
  return axes;
}

void squeeze(Call& call) {
  Shape row = call.sample(0);
  std::vector<int64_t> axes = dimensions(call, row.size() + 1);
  std::ranges::reverse(axes);
  for (const int64_t axis : axes) {
    if (row[static_cast<std::size_t>(axis) - 1] != 1) throw Unsupported("drops a dimension that is not 1");
    row.erase(row.begin() + axis - 1);
  }
  call.give(call.reshaped(call.data(0), row));
}

void unsqueeze(Call& call) {
  Shape row = call.sample(0);
  const std::size_t given = call.has(1) ? call.integers(1, "the dimensions").size() : call.list("axes").size();
  for (const int64_t axis : dimensions(call, row.size() + 1 + given)) {
    if (axis - 1 > std::ssize(row)) throw Unsupported("one of its dimensions is not there");
    row.insert(row.begin() + axis - 1, 1);
  }
  call.give(call.reshaped(call.data(0), row));
}

void transpose(Call& call) {
  const std::size_t rank = call.sample(0).size() + 1;
  std::vector<int64_t> permutation = call.list("perm"), sorted = permutation;
  std::ranges::sort(sorted);
  bool sound = permutation.size() == rank && permutation.front() == 0;
  for (std::size_t i = 0; sound && i < rank; ++i) sound = sorted[i] == static_cast<int64_t>(i);
  if (!sound) throw Unsupported("moves the batch, or does not name each dimension once");
  permutation.erase(permutation.begin());
  for (int64_t& one : permutation) --one;
  call.give(call.transposed(call.data(0), permutation));
}

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

void concat(Call& call) {
  const Shape row = call.sample(0);
  const std::size_t axis = call.axis("axis", 1, row.size() + 1);
  if (axis == 0) throw Unsupported("joins batches");
  std::vector<Value> parts;
  for (std::size_t i = 0; i < call.count(); ++i) {
    Shape part = call.sample(i);
    if (part.size() == row.size()) part[axis - 1] = row[axis - 1];
    if (part != row) throw Unsupported("joins values of unlike shapes");
    parts.push_back(call.data(i));
  }
  call.give(joined_along(call, parts, axis - 1));
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

void slice(Call& call) {
  Value x = call.data(0);
  for (const SliceRange& range : slice_ranges(call, x.shape)) {
    std::vector<int64_t> places;
    if (range.step == 1) {
      x = sliced(call, x, range.axis - 1, range.start, range.count);
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
  Shape left = row;
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(axis) - 1);
  if (left.empty()) throw Unsupported("leaves one number a sample without a dimension");
  call.give(call.reshaped(taken, left));
}

// Zeros around images; fewer rows or columns where a number is negative.
void pad_by(Call& call, const std::vector<int64_t>& pads, double value) {
  if (call.word("mode", "constant") != "constant")
    throw Unsupported("pads by " + call.word("mode", "") + ", layers by zeros");
  if (value != 0) throw Unsupported("pads by " + text(value) + ", layers by zeros");
  const std::size_t rank = call.data(0).shape.size();
  if (pads.size() != 2 * rank || pads[0] != 0 || pads[rank] != 0)
    throw Unsupported("pads the batch, or other dimensions");
  Value x = call.data(0);
  constexpr int64_t kMost = 4096;
  std::vector<int64_t> more(rank * 2, 0);
  for (std::size_t d = 1; d < rank; ++d) {
    const int64_t size = x.shape[d].factor, before = pads[d], after = pads[rank + d];
    if (before > kMost || after > kMost || before < -size || after < -size)
      throw Unsupported("pads by " + std::to_string(before));
    const int64_t start = std::max<int64_t>(0, -before), left = size - start - std::max<int64_t>(0, -after);
    if (left < 1) throw Unsupported("leaves nothing of dimension " + std::to_string(d));
    x = sliced(call, x, d - 1, start, left);
    more[d] = std::max<int64_t>(0, before);
    more[rank + d] = std::max<int64_t>(0, after);
  }
  if (std::ranges::all_of(more, [](int64_t one) { return one == 0; })) return call.give(std::move(x));
  // The last two dimensions of what stands for an image.
  const bool is_line = rank == 3;
  if (rank < 3 || rank > 4 || more[1] != 0 || more[rank + 1] != 0)
    throw Unsupported("pads other dimensions than an image's rows and columns");
  const Shape row = row_of(x);
  const Value image = is_line ? call.reshaped(x, {row[0], 1, row[1]}) : x;
  const int64_t top = is_line ? 0 : more[2], bottom = is_line ? 0 : more[rank + 2];
  const int64_t left = more[rank - 1], right = more[2 * rank - 1];
  const Shape padded = {row[0], (is_line ? 1 : row[1]) + top + bottom, row.back() + left + right};
  const Value y = call.layer("pad", {&image}, {{"padding", texts({top, bottom, left, right})}}, padded);
  call.give(is_line ? call.reshaped(y, {padded[0], padded[2]}) : y);
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

// [C * b * b, H, W] to [C, H * b, W * b].
void depth_to_space(Call& call) {
  const Shape row = call.sample(0);
  const int64_t block = call.integer("blocksize", 0);
  constexpr int64_t kMostBlock = 64;
  if (row.size() != 3 || block < 1 || block > kMostBlock || row[0] % (block * block) != 0) {
    throw Unsupported("its blocks don't fit its input " + to_string(call.data(0).shape));
  }
  const int64_t channels = row[0] / (block * block);
  const Shape whole = {channels, row[1] * block, row[2] * block};
  if (call.word("mode", "DCR") == "CRD") {
    return call.give_layer("pixel_shuffle", {{"factor", {std::to_string(block)}}}, whole);
  }
  const Value blocks = call.reshaped(call.data(0), {block, block, channels, row[1], row[2]});
  call.give(call.reshaped(call.transposed(blocks, {2, 3, 0, 4, 1}), whole));
}

void space_to_depth(Call& call) {
  const Shape row = call.sample(0);
  const int64_t block = call.integer("blocksize", 0);
  if (row.size() != 3 || block < 1 || row[1] % block != 0 || row[2] % block != 0) {
    throw Unsupported("its blocks don't fit its input " + to_string(call.data(0).shape));
  }
  const int64_t rows = row[1] / block, columns = row[2] / block;
  const Value blocks = call.reshaped(call.data(0), {row[0], rows, block, columns, block});
  call.give(call.reshaped(call.transposed(blocks, {2, 4, 0, 1, 3}), {row[0] * block * block, rows, columns}));
}

}  // namespace

std::vector<OpRow> shape_rows() {
  return {
      {"Identity", 1, pass_on},
      {"Cast", 6, cast},
      {"Dropout", 6, dropout_7},
      {"Dropout", 12, dropout_12},
      {"Flatten", 1, flatten},
      {"Reshape", 5, reshape},
      {"Squeeze", 1, squeeze},
      {"Unsqueeze", 1, unsqueeze},
      {"Transpose", 1, transpose},
      {"Concat", 4, concat},
      {"Slice", 1, slice},
      {"Split", 1, split},
      {"Gather", 1, gather_from_rows},
      {"Pad", 2, pad_2},
      {"Pad", 11, pad_11},
      {"DepthToSpace", 1, depth_to_space},
      {"SpaceToDepth", 1, space_to_depth},
  };
}

}  // namespace gpunn::interchange
