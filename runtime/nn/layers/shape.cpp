// Layers that compute nothing: the same numbers in another shape or order.
#include <gpunn/ops.h>

#include <algorithm>
#include <iterator>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

ValueId flatten(const LayerContext& c) {
  const Shape x = c.input_shape();
  return view(c, c.inputs[0], {x[0], element_count(Shape(x.begin() + 1, x.end()))});
}

ValueId reshape(const LayerContext& c) {
  const Shape x = c.input_shape();
  const int64_t elements = element_count(Shape(x.begin() + 1, x.end()));
  Shape y = c.arguments.list("shape");
  if (y.size() + 1 > GPUNN_MAX_RANK) fail("a sample has at most 7 dimensions, shape has " + std::to_string(y.size()));
  int64_t known = 1;
  for (const int64_t size : y) {
    if (size != -1 && (__builtin_mul_overflow(known, size, &known) || known > elements)) known = 0;
  }
  const bool open = std::find(y.begin(), y.end(), -1) != y.end();
  if (known == 0 || (open ? elements % known != 0 : elements != known)) {
    fail("a sample of " + to_string(Shape(x.begin() + 1, x.end())) + " has " + std::to_string(elements) +
         " numbers, which can't be " + to_string(y));
  }
  for (int64_t& size : y) {
    if (size == -1) size = elements / known;
  }
  y.insert(y.begin(), x[0]);
  return view(c, c.inputs[0], y);
}

ValueId transpose(const LayerContext& c) {
  const Shape x = c.input_shape();
  const std::vector<int64_t> permutation = c.arguments.list("permutation");
  if (permutation.size() + 1 != x.size()) {
    fail("the permutation is of " + std::to_string(permutation.size()) + " dimensions, a sample has " +
         std::to_string(x.size() - 1) + ": " + to_string(Shape(x.begin() + 1, x.end())));
  }
  std::vector<int32_t> order{0};
  for (const int64_t from : permutation) order.push_back(static_cast<int32_t>(from) + 1);
  return permuted(c, c.inputs[0], order);
}

ValueId expand(const LayerContext& c) {
  const Shape x = c.input_shape();
  Shape to = c.arguments.list("shape");
  to.insert(to.begin(), x[0]);
  bool fits = to.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = x[i] == to[i] || x[i] == 1;
  if (!fits) {
    fail("a sample of " + to_string(Shape(x.begin() + 1, x.end())) + " can't be repeated to " +
         to_string(Shape(to.begin() + 1, to.end())));
  }
  require_sane_size(to);
  return graph::Expressions(c.graph, c.layer.name).expand(c.inputs[0], to);
}

ValueId pad(const LayerContext& c) {
  const Shape x = c.input_shape();
  const Margins margins = c.arguments.margins("padding", require_space(x));
  if (c.arguments.choice("mode") == "zeros") return padded(c, c.inputs[0], margins);
  require_image(x);
  const int64_t top = margins[0], bottom = margins[1], left = margins[2], right = margins[3];
  if (std::max(top, bottom) >= x[2] || std::max(left, right) >= x[3]) {
    fail("an image is mirrored in less than its own rows and columns: the padding is " + by_margins(margins) +
         ", the input " + to_string(x));
  }
  if (std::max({top, bottom, left, right}) == 0) return c.inputs[0];
  const gpunn_reflect_pad2d_attrs attrs{.struct_size = 0,
                                        .before = {static_cast<int32_t>(top), static_cast<int32_t>(left)},
                                        .after = {static_cast<int32_t>(bottom), static_cast<int32_t>(right)}};
  return c.graph.add1(GPUNN_OP_REFLECT_PAD2D, c.layer.name, Attributes::of(attrs), {c.inputs[0]});
}

ValueId slice(const LayerContext& c) {
  const Shape x = c.input_shape();
  const int64_t dimension = c.arguments.integer("dimension") + 1;
  const int64_t start = c.arguments.integer("start"), size = c.arguments.integer("size");
  const Shape sample(x.begin() + 1, x.end());
  if (dimension >= std::ssize(x)) {
    fail("dimension " + std::to_string(dimension - 1) + " of a sample of " + to_string(sample) + " does not exist");
  }
  if (start + size > x[static_cast<std::size_t>(dimension)]) {
    fail("the values from " + std::to_string(start) + " to " + std::to_string(start + size) + " of dimension " +
         std::to_string(dimension - 1) + " are not all in a sample of " + to_string(sample));
  }
  return graph::Expressions(c.graph, c.layer.name).slice(c.inputs[0], static_cast<std::size_t>(dimension), start, size);
}

// Channel c * f^2 + i * f + j holds row i and column j of each block of f by f pixels of channel c.
ValueId pixel_shuffle(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_image(x);
  const int64_t f = c.arguments.integer("factor");
  require_channels_in_multiple(x, f * f, "factor^2");
  const int64_t channels = x[1] / (f * f);
  const ValueId blocks = view(c, c.inputs[0], {x[0], channels, f, f, x[2], x[3]});
  const ValueId y = permuted(c, blocks, {0, 1, 4, 2, 5, 3});
  return view(c, y, {x[0], channels, x[2] * f, x[3] * f});
}

}  // namespace

LayerFunctions shape_layers() {
  return {
      {"flatten", flatten}, {"reshape", reshape}, {"transpose", transpose},         {"expand", expand},
      {"pad", pad},         {"slice", slice},     {"pixel_shuffle", pixel_shuffle},
  };
}

}  // namespace gpunn::nn
