#include <gpunn/ops.h>

#include <algorithm>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::ValueId;

// Whether sizes are equal, or 1 in one of the inputs, which is then repeated.
bool broadcast(const Shape& a, const Shape& b) {
  return a.size() == b.size() &&
         std::ranges::equal(a, b, [](int64_t x, int64_t y) { return x == y || x == 1 || y == 1; });
}

ValueId merge(const LayerContext& c, int32_t op) {
  require_broadcast(c);
  return c.graph.add1(op, c.layer.name, {}, {c.inputs[0], c.inputs[1]});
}

ValueId add(const LayerContext& c) { return merge(c, GPUNN_OP_ADD); }
ValueId subtract(const LayerContext& c) { return merge(c, GPUNN_OP_SUB); }
ValueId divide(const LayerContext& c) { return merge(c, GPUNN_OP_DIV); }
ValueId maximum(const LayerContext& c) { return merge(c, GPUNN_OP_MAXIMUM); }
ValueId minimum(const LayerContext& c) { return merge(c, GPUNN_OP_MINIMUM); }

// x[N,C,...] times y of the same shape, or times a number for each channel.
ValueId multiply(const LayerContext& c) {
  const Shape a = c.input_shape(0), b = c.input_shape(1);
  if (broadcast(a, b)) return merge(c, GPUNN_OP_MUL);
  const bool second_is_whole = element_count(b) > element_count(a);
  const Shape &whole = second_is_whole ? b : a, &part = second_is_whole ? a : b;
  Shape by_channel(whole.size(), 1);
  std::copy_n(whole.begin(), 2, by_channel.begin());
  if (part != Shape{whole[0], whole[1]}) {
    fail("expected two inputs of one shape, or one of a number for each channel of the other, found " +
         c.input_text(0) + " and " + c.input_text(1));
  }
  const std::size_t of_whole = second_is_whole ? 1 : 0;
  const ValueId factor = view(c, c.inputs[1 - of_whole], by_channel);
  return c.graph.add1(GPUNN_OP_MUL, c.layer.name, {}, {c.inputs[of_whole], factor});
}

// a[N,...,M,K] times b[N,...,K,L] for each of the dimensions in front.
ValueId matmul(const LayerContext& c) {
  const Shape a = c.input_shape(0), b = c.input_shape(1);
  const Shape a_front(a.begin(), a.end() - 2), b_front(b.begin(), b.end() - 2);
  const std::size_t front = a_front.size();
  if (front < 1 || !broadcast(a_front, b_front) || a[front + 1] != b[front]) {
    fail("expected two inputs [N, ..., M, K] and [N, ..., K, L], found " + c.input_text(0) + " and " + c.input_text(1));
  }
  const int64_t rows = a[front], inner = b[front], columns = b[front + 1];
  Shape product = a_front;
  for (std::size_t i = 0; i < front; ++i) product[i] = std::max(a_front[i], b_front[i]);
  const int64_t matrices = element_count(product);
  graph::Expressions e(c.graph, c.layer.name);
  const auto stacked = [&](ValueId x, int64_t height, int64_t width) {
    Shape whole = product;
    whole.insert(whole.end(), {height, width});
    require_sane_size(whole);
    return view(c, e.shape(x) == whole ? x : e.expand(x, whole), {matrices, height, width});
  };
  const ValueId y =
      e.op(GPUNN_OP_BATCH_MATMUL, {stacked(c.inputs[0], rows, inner), stacked(c.inputs[1], inner, columns)},
           graph::Attributes::of(gpunn_matmul_attrs{}));
  product.insert(product.end(), {rows, columns});
  require_sane_size(product);
  return view(c, y, product);
}

ValueId concat(const LayerContext& c) {
  const auto axis = static_cast<std::size_t>(c.arguments.integer("dimension")) + 1;
  Shape like = c.input_shape(0);
  if (axis >= like.size()) fail("dimension " + std::to_string(axis - 1) + " of " + c.input_text(0) + " does not exist");
  for (std::size_t i = 0; i < c.inputs.size(); ++i) like[0] = std::max(like[0], c.input_shape(i)[0]);
  Shape all = like;
  all[axis] = 0;
  graph::Expressions e(c.graph, c.layer.name);
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    Shape part = c.input_shape(i);
    all[axis] += part.size() == like.size() ? part[axis] : 0;
    part[0] = like[0];
    if (part.size() == like.size()) like[axis] = part[axis];
    if (part != like) {
      fail("expected inputs that differ in dimension " + std::to_string(axis - 1) + " only, found " + c.input_text(0) +
           " and " + c.input_text(i));
    }
    require_sane_size(all);
    parts.push_back(e.expand(c.inputs[i], part));
  }
  const gpunn_concat_attrs attrs{.struct_size = 0, .axis = static_cast<int32_t>(axis)};
  return e.op(GPUNN_OP_CONCAT, parts, graph::Attributes::of(attrs));
}

}  // namespace

LayerFunctions merge_layers() {
  return {
      {"add", add},         {"subtract", subtract}, {"multiply", multiply}, {"divide", divide},
      {"maximum", maximum}, {"minimum", minimum},   {"matmul", matmul},     {"concat", concat},
  };
}

}  // namespace gpunn::nn
