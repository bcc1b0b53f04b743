// Layers that work along one dimension of a sample.
#include <gpunn/ops.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::Expressions;
using graph::ValueId;

// The key `dimension`, counted from the batch.
std::size_t dimension_of(const LayerContext& c) {
  const Shape& x = c.input_shape();
  const int64_t dimension = c.arguments.integer("dimension");
  if (dimension + 1 >= std::ssize(x)) {
    fail("dimension " + std::to_string(dimension) + " of a sample of " + to_string(Shape(x.begin() + 1, x.end())) +
         " does not exist");
  }
  return static_cast<std::size_t>(dimension) + 1;
}

// With two dimensions in each other's place.
ValueId swapped(const LayerContext& c, ValueId x, std::size_t a, std::size_t b) {
  if (a == b) return x;
  std::vector<int32_t> order(c.graph.value(x).type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[a], order[b]);
  return permuted(c, x, order);
}

ValueId gather(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  const Shape& places = c.input_shape(1);
  if (places.front() != 1) fail("expected places that are the same for all samples, found " + c.input_text(1));
  const std::size_t dimension = dimension_of(c);
  const ValueId index = e.converted(e.view(c.inputs[1], {element_count(places)}), DType::i32);
  const ValueId rows = swapped(c, c.inputs[0], 0, dimension);
  return swapped(c, e.op(GPUNN_OP_GATHER_ROWS, {rows, index}), 0, dimension);
}

ValueId cumsum(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  return e.op(GPUNN_OP_CUMSUM, {c.inputs[0]},
              Attributes::of(gpunn_cumsum_attrs{.struct_size = 0,
                                                .axis = static_cast<int32_t>(dimension_of(c)),
                                                .exclusive = c.arguments.boolean("exclusive") ? 1 : 0,
                                                .reverse = c.arguments.boolean("reverse") ? 1 : 0}));
}

// The largest entries among those that are not taken yet, and the place of the first of them.
struct Largest {
  ValueId value, place;
};
Largest largest(Expressions& e, ValueId x, ValueId taken, ValueId places, std::size_t dimension) {
  const uint32_t axes = 1U << dimension;
  const ValueId rest =
      taken == graph::kNoValue ? x : e.select(taken, e.constant(-std::numeric_limits<double>::infinity()), x);
  const ValueId value = e.max(rest, axes);
  ValueId is_largest = e.equal(rest, value);
  if (taken != graph::kNoValue) is_largest = e.mul(is_largest, e.sub(e.constant(1), taken));
  const double behind = static_cast<double>(e.shape(x)[dimension]);
  const ValueId place = e.select(is_largest, places, e.constant(behind));
  return {value, e.scaled(e.max(e.scaled(place, -1), axes), -1)};
}

ValueId arg_max(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  const std::size_t dimension = dimension_of(c);
  const ValueId x = e.dtype(c.inputs[0]) == DType::f32 ? c.inputs[0] : e.to_f32(c.inputs[0]);
  const ValueId places = places_along(e, e.rank(x), dimension, e.shape(x)[dimension]);
  if (!c.arguments.boolean("last")) return largest(e, x, graph::kNoValue, places, dimension).place;
  const ValueId is_largest = e.equal(x, e.max(x, 1U << dimension));
  return e.max(e.select(is_largest, places, e.constant(-1)), 1U << dimension);
}

ValueId top_k(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  const std::size_t dimension = dimension_of(c);
  const ValueId x = e.dtype(c.inputs[0]) == DType::f32 ? c.inputs[0] : e.to_f32(c.inputs[0]);
  const int64_t size = e.shape(x)[dimension], count = c.arguments.integer("count");
  if (count > size) {
    fail("expected a count of at most the " + std::to_string(size) + " entries, found " + std::to_string(count));
  }
  const ValueId places = places_along(e, e.rank(x), dimension, size);
  ValueId taken = graph::kNoValue;
  std::vector<ValueId> found;
  for (int64_t i = 0; i < count; ++i) {
    const Largest next = largest(e, x, taken, places, dimension);
    found.push_back(c.arguments.boolean("places") ? next.place : next.value);
    const ValueId own = e.equal(places, next.place);
    taken = taken == graph::kNoValue ? own : e.maximum(taken, own);
  }
  const gpunn_concat_attrs attrs{.struct_size = 0, .axis = static_cast<int32_t>(dimension)};
  constexpr std::ptrdiff_t kMostJoined = 16;  // inputs of CONCAT
  while (found.size() > 1) {
    std::vector<ValueId> joined;
    for (auto at = found.begin(); at != found.end();) {
      const auto end = at + std::min<std::ptrdiff_t>(kMostJoined, found.end() - at);
      joined.push_back(end - at == 1 ? *at
                                     : e.op(GPUNN_OP_CONCAT, std::vector<ValueId>(at, end), Attributes::of(attrs)));
      at = end;
    }
    found = std::move(joined);
  }
  return found.front();
}

}  // namespace

LayerFunctions along_layers() {
  return {{"gather", gather}, {"cumsum", cumsum}, {"arg_max", arg_max}, {"top_k", top_k}};
}

}  // namespace gpunn::nn
