#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>

#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

void pass_on(Call& call) { call.give(call.data_anywhere(0)); }

void dropout_of(Call& call, double p) {
  call.require_first_output_alone("gives its mask, which layers don't");
  if (!(p > 0 && p < 1)) return pass_on(call);
  call.give(elementwise(call, "dropout", {call.data_anywhere(0)}, {{"p", {text(p)}}}));
}
void dropout_7(Call& call) { dropout_of(call, call.number("ratio", 0.5)); }
void dropout_12(Call& call) {
  if (call.has(2) && call.scalar(2, "training_mode") != 0) {
    throw Unsupported("drops values as in training; export the network in evaluation mode");
  }
  dropout_of(call, call.has(1) ? call.scalar(1, "the ratio") : 0.5);
}

Size product_of(std::span<const Size> sizes) {
  Size product{1, false};
  for (const Size& size : sizes) {
    product.of_batch = product.of_batch || size.of_batch;
    if (__builtin_mul_overflow(product.factor, size.factor, &product.factor)) {
      throw Unsupported("has more values than there can be");
    }
  }
  return product;
}

void give_regrouped(Call& call, const Sizes& to) {
  const Value& x = call.data_anywhere(0);
  std::optional<Value> y = regrouped(call, x, to);
  if (!y) {
    throw Unsupported("makes " + to_string(to) + " of " + to_string(x.shape) +
                      "; layers keep the rows of the batch apart");
  }
  call.give(std::move(*y));
}

void flatten(Call& call) {
  const Sizes& from = call.data_anywhere(0).shape;
  const auto rank = static_cast<int64_t>(from.size());
  const int64_t given = call.integer("axis", 1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) throw Unsupported("flattens from a dimension that is not there");
  const std::span<const Size> all(from);
  const auto middle = static_cast<std::size_t>(axis);
  give_regrouped(call, {product_of(all.first(middle)), product_of(all.subspan(middle))});
}

// The size that a shape leaves open.
Size rest_of(Call& call, const Sizes& from, const Sizes& known) {
  Size all = product_of(from);
  const Size others = product_of(known);
  const int64_t baked = call.importer().baked_batch();
  if (others.of_batch || baked > 0) {
    if (!others.of_batch && __builtin_mul_overflow(all.factor, baked, &all.factor)) {
      throw Unsupported("has more values than there can be");
    }
    all.of_batch = false;
  }
  if (others.factor < 1 || all.factor % others.factor != 0) throw Unsupported("its shape leaves too much open");
  return {all.factor / others.factor, all.of_batch};
}

void reshape(Call& call) {
  const Constant& wanted = call.constant(1, "the shape");
  const Sizes& from = call.data_anywhere(0).shape;
  if (is_floating(wanted.element) || wanted.shape.size() != 1) {
    throw Unsupported("its shape must be a list of integers");
  }
  const bool zeros_copy = call.integer("allowzero", 0) == 0;
  Sizes to = wanted.integers, known;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].factor == 0 && zeros_copy && i < from.size()) to[i] = from[i];
    const bool is_open = to[i] == Size{-1, false};
    if ((is_open && open) || (!is_open && to[i].factor < 1)) {
      throw Unsupported("a size of its shape is " + std::to_string(to[i].factor));
    }
    if (is_open) {
      open = i;
    } else {
      known.push_back(to[i]);
    }
  }
  if (open) to[*open] = rest_of(call, from, known);
  give_regrouped(call, to);
}

// The dimensions of an attribute or, from opset 13 on, of the second input.
std::vector<int64_t> dimensions(const Call& call, std::size_t rank) {
  std::vector<int64_t> axes = call.has(1) ? call.integers(1, "the dimensions") : call.list("axes");
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) throw Unsupported("one of its dimensions is not there");
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Unsupported("names a dimension twice");
  return axes;
}

void squeeze(Call& call) {
  const Value& x = call.data_anywhere(0);
  std::vector<int64_t> axes = dimensions(call, x.shape.size());
  if (!call.has(1) && !call.has_attribute("axes")) {
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
      const bool is_batch = x.shape[i].of_batch;
      if (is_batch && call.importer().baked_batch() == 0) throw Unsupported("drops the batch where it is one row");
      if (x.shape[i].factor == 1 && (!is_batch || call.importer().baked_batch() == 1)) {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
  }
  call.give(squeezed(call, x, axes));
}

void unsqueeze(Call& call) {
  const Value& x = call.data_anywhere(0);
  const std::size_t more = call.has(1) ? call.integers(1, "the dimensions").size() : call.list("axes").size();
  call.give(unsqueezed(call, x, dimensions(call, x.shape.size() + more)));
}

void transpose(Call& call) {
  const Value& x = call.data_anywhere(0);
  const std::size_t rank = x.shape.size();
  std::vector<int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const std::vector<int64_t> permutation = call.list("perm", reversed);
  std::vector<int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  std::ranges::reverse(reversed);
  if (sorted != reversed) throw Unsupported("does not name each dimension once");
  call.give(moved(call, x, permutation));
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
      {"Dropout", 6, dropout_7},
      {"Dropout", 12, dropout_12},
      {"Flatten", 1, flatten},
      {"Reshape", 5, reshape},
      {"Squeeze", 1, squeeze},
      {"Unsqueeze", 1, unsqueeze},
      {"Transpose", 1, transpose},
      {"DepthToSpace", 1, depth_to_space, BatchIn::front},
      {"SpaceToDepth", 1, space_to_depth, BatchIn::front},
  };
}

}  // namespace gpunn::interchange
