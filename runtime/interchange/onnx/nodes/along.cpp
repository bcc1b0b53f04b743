// Operators along one dimension.
#include <algorithm>
#include <string>

#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

Value least_first(Call& call, const Value& x) { return product_of(call, x, number(-1)); }

// The place of the largest or the least entry.
void arg(Call& call, bool largest) {
  const Value& x = call.data_anywhere(0);
  const std::size_t axis = sound_dimension(call.integer("axis", 0), x.shape.size());
  const Keys keys = {{"last", {text(call.integer("select_last_index", 0) != 0)}}};
  Value y = along(call, "arg_max", largest ? x : least_first(call, x), axis, 1, keys);
  if (call.integer("keepdims", 1) == 0) y = squeezed(call, y, {static_cast<int64_t>(axis)});
  y.element = Element::i64;
  call.give(std::move(y));
}
void arg_max(Call& call) { arg(call, true); }
void arg_min(Call& call) { arg(call, false); }

void cumulative_sum(Call& call) {
  const Value& x = call.data_anywhere(0);
  const std::size_t axis = sound_dimension(static_cast<int64_t>(call.scalar(1, "the dimension")), x.shape.size());
  call.give(along(call, "cumsum", x, axis, x.shape[axis].factor,
                  {{"exclusive", {text(call.integer("exclusive", 0) != 0)}},
                   {"reverse", {text(call.integer("reverse", 0) != 0)}}}));
}

// In their order, which also serves where any is asked for.
void top_k_of(Call& call, int64_t count) {
  const Value& x = call.data_anywhere(0);
  const std::size_t axis = sound_dimension(call.integer("axis", -1), x.shape.size());
  constexpr int64_t kMost = 128;
  if (count < 1 || count > kMost || count > x.shape[axis].factor) {
    throw Unsupported("takes the largest " + std::to_string(count) + " entries of " + to_string(x.shape) +
                      "; layers take 1 to 128");
  }
  const bool largest = call.integer("largest", 1) != 0;
  const Value from = largest ? x : least_first(call, x);
  const auto taken = [&](bool places) {
    return along(call, "top_k", from, axis, count, {{"count", {std::to_string(count)}}, {"places", {text(places)}}});
  };
  const Value values = taken(false);
  call.give(0, largest ? values : least_first(call, values));
  if (call.node().outputs.size() < 2 || !call.importer().is_used(call.node().outputs[1])) return;
  Value places = taken(true);
  places.element = Element::i64;
  call.give(1, std::move(places));
}
void top_k_1(Call& call) { top_k_of(call, call.integer("k", 0)); }
void top_k_10(Call& call) { top_k_of(call, static_cast<int64_t>(call.scalar(1, "the number of entries"))); }

// 1 at the first of the largest, else 0. Up to opset 12 over all dimensions from `axis` on together.
void hardmax_over(Call& call, const Value& x, std::size_t axis) {
  const Value largest = along(call, "arg_max", x, axis, 1);
  std::vector<float> places;
  for (int64_t i = 0; i < x.shape[axis].factor; ++i) places.push_back(static_cast<float>(i));
  Shape shape(x.shape.size() - axis, 1);
  shape.front() = std::ssize(places);
  Value y = comparison_of(call, "equal", largest, constant_value(floats_constant(shape, std::move(places))));
  y.element = x.element;
  call.give(std::move(y));
}

void hardmax(Call& call) {
  const Value& x = call.data_anywhere(0);
  constexpr int64_t kOneDimension = 13;
  const bool is_one = call.opset() >= kOneDimension;
  const std::size_t axis = sound_dimension(call.integer("axis", is_one ? -1 : 1), x.shape.size());
  if (!is_one && axis + 1 != x.shape.size()) throw Unsupported("is over several dimensions; export with opset 13");
  hardmax_over(call, x, axis);
}

void one_hot(Call& call) {
  const Value& given = call.input(0);
  const std::vector<int64_t> depth = {static_cast<int64_t>(call.scalar(1, "the depth"))};
  if (depth.size() != 1 || depth[0] < 1) throw Unsupported("its depth is not one number above 0");
  const auto rank = static_cast<int64_t>(given.shape.size());
  int64_t axis = call.integer("axis", -1);
  if (axis < 0) axis += rank + 1;
  if (axis < 0 || axis > rank) throw Unsupported("its axis is not a dimension of the result");
  const Value wide = call.apply("Unsqueeze", {given, integers({axis})});
  const Value whole = call.apply("Cast", {wide}, {attribute("to", static_cast<int64_t>(Element::i64))});
  const Value from_end = call.apply("Less", {whole, integers({0})});
  const Value places = call.apply("Where", {from_end, call.apply("Add", {whole, integers(depth)}), whole});
  Constant hot = integers_constant({});
  for (int64_t i = 0; i < depth[0]; ++i) hot.integers.push_back({i, false});
  hot.shape.assign(static_cast<std::size_t>(rank - axis + 1), 1);
  hot.shape[0] = depth[0];
  const Value is_hot = call.apply("Equal", {places, constant_value(std::move(hot))});
  const auto value = [&](int64_t i) { return call.apply("Gather", {call.input(2), integers({i})}); };
  call.give(call.apply("Where", {is_hot, value(1), value(0)}));
}

}  // namespace

std::vector<OpRow> along_rows() {
  return {{"ArgMax", 1, arg_max}, {"ArgMin", 1, arg_min},  {"CumSum", 11, cumulative_sum}, {"TopK", 1, top_k_1},
          {"TopK", 10, top_k_10}, {"Hardmax", 1, hardmax}, {"OneHot", 9, one_hot}};
}

}  // namespace gpunn::interchange
