#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

InputSpec losses(int64_t rows, int64_t count) {
  // What lies behind the count must not be looked at.
  return f32({rows}, [count](Random& random, int64_t i) {
    return i < count ? random.uniform(0, 3) : std::numeric_limits<double>::quiet_NaN();
  });
}

InputSpec totals() { return f64({4}, listed({1234.5, 17, 29, 1000})); }

Case classified(int64_t rows, int64_t count, int64_t classes, const Generator& x, const std::string& note) {
  return make_case({.op = GPUNN_OP_METRICS_ACCUMULATE,
                    .inputs = {losses(rows, count), i32({}, constant(static_cast<double>(count))), totals(),
                               f32({rows, classes}, x), i32({rows}, integers(0, classes - 1))},
                    .note = "count " + std::to_string(count) + (note.empty() ? "" : ", " + note)});
}

}  // namespace

std::vector<Case> metrics_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const auto& [rows, count] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 0}, {128, 128}, {128, 96}, {1031, 1030}, {7, 0}}) {
    cases.push_back(make_case({.op = GPUNN_OP_METRICS_ACCUMULATE,
                               .inputs = {losses(rows, count), i32({}, constant(static_cast<double>(count))), totals()},
                               .note = "count " + std::to_string(count)}));
    for (const int64_t classes : {1, 2, 10, 1000}) cases.push_back(classified(rows, count, classes, uniform(), ""));
    cases.push_back(classified(rows, count, 10, integers(0, 3), "ties"));
    cases.push_back(classified(rows, count, 10, constant(0), "all equal"));
    cases.push_back(classified(rows, count, 10, sometimes(kNan, 15, uniform()), "NaN"));
    cases.push_back(classified(rows, count, 3, sometimes(kNan, 5, uniform()), "NaN among fewer than 5 classes"));
  }
  return cases;
}

}  // namespace gpunn::conformance
