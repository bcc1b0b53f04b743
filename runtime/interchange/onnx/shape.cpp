#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

void pass_on(Call& call) { call.give(call.data(0)); }

void cast(Call& call) {
  if (!is_floating(static_cast<Element>(call.integer("to", 0)))) throw Unsupported("makes integers of the data");
  call.give(call.data(0));
}

void cast_like(Call& call) {
  const Value& like = call.input(1);
  if (like.constant && !is_floating(like.constant->element)) throw Unsupported("makes integers of the data");
  call.give(call.data(0));
}

void dropout_of(Call& call, double p) {
  call.require_first_output_alone("gives its mask, which layers don't");
  if (!(p > 0 && p < 1)) return pass_on(call);
  call.give_layer("dropout", {{"p", {text(p)}}}, call.sample(0));
}
void dropout_7(Call& call) { dropout_of(call, call.number("ratio", 0.5)); }
void dropout_12(Call& call) {
  if (call.has(2) && call.scalar(2, "training_mode") != 0) {
    throw Unsupported("drops values as in training; export the network in evaluation mode");
  }
  dropout_of(call, call.has(1) ? call.scalar(1, "the ratio") : 0.5);
}

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

// The rows of all samples together, [k*N, ...], of which an importer knows layers that give [N, k, ...].
bool joins_rows(Call& call, const Size& first, Shape shape, bool is_open) {
  const int64_t count = merged(call.sample(0)).front(), baked = call.importer().baked_batch();
  int64_t rows = 0, known = 1;
  for (const int64_t size : shape) {
    if (size < 1 || __builtin_mul_overflow(known, size, &known)) return false;
  }
  if (is_open && count % known == 0) rows = count / known;
  if (!is_open && first.of_batch) rows = first.factor;
  if (!is_open && !first.of_batch && baked > 0 && first.factor % baked == 0) rows = first.factor / baked;
  if (rows < 2 || count % known != 0 || count / known != rows) return false;
  shape.insert(shape.begin(), rows);
  Value y = call.reshaped(call.data(0), shape);
  y.shape.erase(y.shape.begin());
  y.shape.front() = {rows, true};
  call.give(std::move(y));
  return true;
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
  const bool keeps = first == Size{1, true} || (first.factor == 0 && zeros_copy && !call.has_rows_apart()) ||
                     (!first.of_batch && first.factor > 0 && first.factor == baked);
  const bool rest = !first.of_batch && first.factor == -1;  // the batch, if the others make up a row
  if (first != Size{1, true}) {
    Shape others;
    for (std::size_t i = 1; i < wanted.integers.size(); ++i) {
      others.push_back(wanted.integers[i].of_batch ? 0 : wanted.integers[i].factor);
    }
    if (joins_rows(call, first, others, rest)) return;
  }
  if (!keeps && !rest) throw Unsupported("takes the batch apart, or rows of it together");
  Shape result;
  int64_t known = 1;
  std::size_t open = 0;
  for (std::size_t i = 1; i < wanted.integers.size(); ++i) {
    Size size = wanted.integers[i];
    if (size.of_batch) throw Unsupported("takes the batch apart");
    if (size.factor == 0 && zeros_copy && call.has_rows_apart()) throw Unsupported("copies sizes of joined rows");
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
  const bool channels_first = call.word("mode", "DCR") == "CRD";  // from opset 28 on
  const Value turned = call.transposed(blocks, channels_first ? Shape{0, 2, 4, 1, 3} : Shape{2, 4, 0, 1, 3});
  call.give(call.reshaped(turned, {row[0] * block * block, rows, columns}));
}

}  // namespace

std::vector<OpRow> shape_rows() {
  return {
      {"Identity", 1, pass_on},
      {"Cast", 6, cast},
      {"CastLike", 15, cast_like},
      {"Dropout", 6, dropout_7},
      {"Dropout", 12, dropout_12},
      {"Flatten", 1, flatten},
      {"Reshape", 5, reshape},
      {"Squeeze", 1, squeeze},
      {"Unsqueeze", 1, unsqueeze},
      {"Transpose", 1, transpose},
      {"DepthToSpace", 1, depth_to_space},
      {"SpaceToDepth", 1, space_to_depth},
  };
}

}  // namespace gpunn::interchange
