#include <gpunn/ops.h>

#include <set>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

InputSpec number(int64_t value) { return i64({}, constant(static_cast<double>(value))); }

}  // namespace

std::vector<Case> counter_cases() {
  std::vector<Case> cases;
  for (const auto& [start, increment] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {41, 1}, {5000000000, 3}, {10, -4}, {7, 0}}) {
    cases.push_back(make_case(
        {.op = GPUNN_OP_ADVANCE,
         .attrs = graph::Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = increment}),
         .inputs = {number(start)},
         .note = "from " + std::to_string(start)}));
  }
  for (const int64_t size : {1, 7, 10000}) {
    for (const int64_t step : std::set<int64_t>{0, size / 2, size - 1, size, 123457, 5000000001}) {
      const std::string note = "step " + std::to_string(step);
      cases.push_back(make_case({.op = GPUNN_OP_TABLE_LOAD, .inputs = {f32({size}), number(step)}, .note = note}));
      cases.push_back(
          make_case({.op = GPUNN_OP_TABLE_STORE, .inputs = {f32({size}), number(step), f32({})}, .note = note}));
    }
  }
  return cases;
}

}  // namespace gpunn::conformance
