// Means, sums, maxima and norms over dimensions.
#include <limits>
#include <numeric>
#include <string>

#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/operands.hpp"

namespace gpunn::interchange {

namespace {

enum class Norm { mean, sum, max, min, product, sum_of_squares, l1, l2, log_of_sum, log_of_sum_of_exp };

Value function_of(Call& call, const char* type, const Value& x, const Keys& keys = {}) {
  return elementwise(call, type, {x}, keys);
}

Value power_of(Call& call, const Value& x, const char* exponent) {
  return function_of(call, "power", x, {{"exponent", {exponent}}});
}

// Less the largest, which is added again: no exponential is above 1. One that is infinite stays out of the difference,
// which it would make NaN.
Value log_of_exponentials(Call& call, const Value& x, const std::vector<int64_t>& dimensions, bool keep) {
  const Value largest = reduced(call, x, "max", dimensions, true);
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Value is_finite = comparison_of(call, "less_or_equal", function_of(call, "abs", largest), number(kLargest));
  const Value origin = choice_of(call, is_finite, largest, number(0));
  const Value below = difference_of(call, x, origin);
  const Value total = reduced(call, function_of(call, "exp", below), "sum", dimensions, keep);
  const Value added = keep ? origin : reduced(call, origin, "max", dimensions, false);
  return sum_of(call, function_of(call, "log", total), added);
}

Value norm_of(Call& call, const Value& x, Norm norm, const std::vector<int64_t>& dimensions, bool keep) {
  const auto over = [&](const Value& of, const char* function) {
    return reduced(call, of, function, dimensions, keep);
  };
  switch (norm) {
    case Norm::mean:
      return over(x, "mean");
    case Norm::sum:
      return over(x, "sum");
    case Norm::max:
      return over(x, "max");
    case Norm::min:
      return over(x, "min");
    case Norm::product:
      return over(x, "prod");
    case Norm::sum_of_squares:
      return over(power_of(call, x, "2"), "sum");
    case Norm::l1:
      return over(function_of(call, "abs", x), "sum");
    case Norm::l2:
      return power_of(call, over(power_of(call, x, "2"), "sum"), "0.5");
    case Norm::log_of_sum:
      return function_of(call, "log", over(x, "sum"));
    case Norm::log_of_sum_of_exp:
      break;
  }
  return log_of_exponentials(call, x, dimensions, keep);
}

void reduce_over(Call& call, Norm norm, std::vector<int64_t> dimensions) {
  const Value& x = call.data_anywhere(0);
  if (dimensions.empty() && call.integer("noop_with_empty_axes", 0) == 0) {
    dimensions.resize(x.shape.size());
    std::iota(dimensions.begin(), dimensions.end(), 0);
  }
  Value y =
      norm_of(call, x, norm, sound_dimensions(std::move(dimensions), x.shape.size()), call.integer("keepdims", 1) != 0);
  y.element = x.element;
  call.give(std::move(y));
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
  const Value& x = call.data_anywhere(0);
  if (x.shape.size() < 3) throw Unsupported("takes " + to_string(x.shape) + "; expected [N, C, ...]");
  std::vector<int64_t> dimensions(x.shape.size() - 2);
  std::iota(dimensions.begin(), dimensions.end(), 2);
  call.give(norm_of(call, x, norm, dimensions, true));
}

template <Norm norm>
void add_rows(std::vector<OpRow>& rows, std::string_view op, int64_t by_input) {
  rows.push_back({op, 1, reduce_by_attribute<norm>});
  rows.push_back({op, by_input, reduce_by_input<norm>});
}

}  // namespace

std::vector<OpRow> reduction_rows() {
  std::vector<OpRow> rows = {{"GlobalAveragePool", 1, global_pool<Norm::mean>},
                             {"GlobalMaxPool", 1, global_pool<Norm::max>}};
  constexpr int64_t kByInput = 18, kSumByInput = 13;  // opsets
  add_rows<Norm::mean>(rows, "ReduceMean", kByInput);
  add_rows<Norm::sum>(rows, "ReduceSum", kSumByInput);
  add_rows<Norm::max>(rows, "ReduceMax", kByInput);
  add_rows<Norm::min>(rows, "ReduceMin", kByInput);
  add_rows<Norm::product>(rows, "ReduceProd", kByInput);
  add_rows<Norm::sum_of_squares>(rows, "ReduceSumSquare", kByInput);
  add_rows<Norm::l1>(rows, "ReduceL1", kByInput);
  add_rows<Norm::l2>(rows, "ReduceL2", kByInput);
  add_rows<Norm::log_of_sum>(rows, "ReduceLogSum", kByInput);
  add_rows<Norm::log_of_sum_of_exp>(rows, "ReduceLogSumExp", kByInput);
  return rows;
}

}  // namespace gpunn::interchange
