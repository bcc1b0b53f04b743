// Means, sums, maxima and norms over dimensions of a row.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

enum class Norm { mean, sum, max, min, sum_of_squares, l1, l2, log_of_sum, log_of_sum_of_exp };

// Which dimensions of a row, and whether they stay with a size of 1.
struct Axes {
  std::vector<int64_t> dimensions;
  bool keep = true;

  bool has(std::size_t dimension) const {
    return std::ranges::binary_search(dimensions, static_cast<int64_t>(dimension));
  }
  Shape left_of(const Shape& row) const {
    Shape left;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!has(i)) {
        left.push_back(row[i]);
      } else if (keep) {
        left.push_back(1);
      }
    }
    return left;
  }
};

Axes sound(const Call& call, std::vector<int64_t> axes, bool keep) {
  const auto rank = static_cast<int64_t>(call.data(0).shape.size());
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank) throw Unsupported("reduces the batch, or a dimension that is not there");
    --axis;
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Unsupported("names a dimension twice");
  if (!keep && std::ssize(axes) + 1 == rank) throw Unsupported("leaves one number a sample without a dimension");
  return {std::move(axes), keep};
}

Value reduced(Call& call, const Value& x, std::string_view function, const Axes& axes) {
  const Shape row = row_of(x), left = axes.left_of(row);
  if (function == "mean" && row.size() == 3 && axes.dimensions == std::vector<int64_t>{1, 2}) {
    return call.reshaped(call.layer("adaptive_avg_pool", {&x}, {{"size", {"1"}}}, {row[0], 1, 1}), left);
  }
  return call.layer(
      "reduce", {&x},
      {{"function", {std::string(function)}}, {"dimensions", texts(axes.dimensions)}, {"keep", {text(axes.keep)}}},
      left);
}

Value function_of(Call& call, const char* type, const Value& x, const Keys& keys = {}) {
  return call.layer(type, {&x}, keys, row_of(x));
}

Value power_of(Call& call, const Value& x, const char* exponent) {
  return function_of(call, "power", x, {{"exponent", {exponent}}});
}

// Less the largest, which is added again: no exponential is above 1.
Value log_of_exponentials(Call& call, const Value& x, const Axes& axes) {
  const Axes kept = {axes.dimensions, true};
  const Value largest = reduced(call, x, "max", kept);
  const Value below = call.layer("subtract", {&x, &largest}, {}, row_of(x));
  const Value sum = reduced(call, function_of(call, "exp", below), "sum", kept);
  const Value logarithm = function_of(call, "log", sum);
  const Value y = call.layer("add", {&logarithm, &largest}, {}, row_of(sum));
  return call.reshaped(y, axes.left_of(row_of(x)));
}

Value norm_of(Call& call, Norm norm, const Axes& axes) {
  const Value& x = call.data(0);
  switch (norm) {
    case Norm::mean:
      return reduced(call, x, "mean", axes);
    case Norm::sum:
      return reduced(call, x, "sum", axes);
    case Norm::max:
      return reduced(call, x, "max", axes);
    case Norm::min:
      return call.scaled(reduced(call, call.scaled(x, -1), "max", axes), -1);
    case Norm::sum_of_squares:
      return reduced(call, power_of(call, x, "2"), "sum", axes);
    case Norm::l1:
      return reduced(call, function_of(call, "abs", x), "sum", axes);
    case Norm::l2:
      return power_of(call, norm_of(call, Norm::sum_of_squares, axes), "0.5");
    case Norm::log_of_sum:
      return function_of(call, "log", reduced(call, x, "sum", axes));
    case Norm::log_of_sum_of_exp:
      break;
  }
  return log_of_exponentials(call, x, axes);
}

// Where the batch is not in front, the dimensions keep their places until it is back in its own.
void reduce_placed(Call& call, Norm norm, std::vector<int64_t> axes) {
  const std::size_t rank = call.data(0).shape.size();
  std::vector<int64_t> mapped;
  for (const int64_t axis : axes) mapped.push_back(static_cast<int64_t>(call.dimension(axis, rank)));
  const Value kept = call.in_place(norm_of(call, norm, sound(call, mapped, true)));
  if (call.integer("keepdims", 1) != 0) return call.importer().set_value(call.node().outputs.front(), kept);
  for (int64_t& axis : axes) axis += axis < 0 ? std::ssize(kept.shape) : 0;
  std::ranges::sort(axes);
  call.importer().set_value(call.node().outputs.front(), squeezed(call, kept, axes));
}

void reduce_over(Call& call, Norm norm, const std::vector<int64_t>& axes) {
  if (!axes.empty() && call.place() != BatchPlace()) return reduce_placed(call, norm, axes);
  if (!axes.empty()) return call.give(norm_of(call, norm, sound(call, axes, call.integer("keepdims", 1) != 0)));
  const bool is_plain = norm == Norm::mean || norm == Norm::sum || norm == Norm::max || norm == Norm::min;
  if (call.integer("noop_with_empty_axes", 0) == 0 || !is_plain) throw Unsupported("reduces the batch");
  call.give(call.data(0));
}

template <Norm norm>
void reduce_by_attribute(Call& call) {
  reduce_over(call, norm, call.list("axes"));
}
template <Norm norm>
void reduce_by_input(Call& call) {
  reduce_over(call, norm, call.has(1) ? call.integers(1, "the dimensions") : std::vector<int64_t>());
}

// Over all dimensions behind the channels'.
template <Norm norm>
void global_pool(Call& call) {
  const std::size_t rank = call.data(0).shape.size() - call.place().shift();
  if (rank < 3) throw Unsupported("takes " + to_string(call.data(0).shape) + "; expected [N, C, ...]");
  std::vector<int64_t> axes;
  for (std::size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (call.place() != BatchPlace()) return reduce_placed(call, norm, axes);
  call.give(norm_of(call, norm, sound(call, axes, true)));
}

}  // namespace

std::vector<OpRow> reduction_rows() {
  return {
      {"GlobalAveragePool", 1, global_pool<Norm::mean>},
      {"GlobalMaxPool", 1, global_pool<Norm::max>},
      {"ReduceMean", 1, reduce_by_attribute<Norm::mean>},
      {"ReduceMean", 18, reduce_by_input<Norm::mean>},
      {"ReduceSum", 1, reduce_by_attribute<Norm::sum>},
      {"ReduceSum", 13, reduce_by_input<Norm::sum>},
      {"ReduceMax", 1, reduce_by_attribute<Norm::max>},
      {"ReduceMax", 18, reduce_by_input<Norm::max>},
      {"ReduceMin", 1, reduce_by_attribute<Norm::min>},
      {"ReduceMin", 18, reduce_by_input<Norm::min>},
      {"ReduceSumSquare", 1, reduce_by_attribute<Norm::sum_of_squares>},
      {"ReduceSumSquare", 18, reduce_by_input<Norm::sum_of_squares>},
      {"ReduceL1", 1, reduce_by_attribute<Norm::l1>},
      {"ReduceL1", 18, reduce_by_input<Norm::l1>},
      {"ReduceL2", 1, reduce_by_attribute<Norm::l2>},
      {"ReduceL2", 18, reduce_by_input<Norm::l2>},
      {"ReduceLogSum", 1, reduce_by_attribute<Norm::log_of_sum>},
      {"ReduceLogSum", 18, reduce_by_input<Norm::log_of_sum>},
      {"ReduceLogSumExp", 1, reduce_by_attribute<Norm::log_of_sum_of_exp>},
      {"ReduceLogSumExp", 18, reduce_by_input<Norm::log_of_sum_of_exp>},
  };
}

}  // namespace gpunn::interchange
