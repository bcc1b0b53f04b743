// METRICS_ACCUMULATE.
#include <cmath>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::metrics {

namespace {

// --- METRICS_ACCUMULATE ---

InputSpec totals() { return f64({4}, listed({1234.5, 17, 29, 1000})); }

// How many classes come before the label: a larger x, or an equal one and a smaller index.
// That of a label that names no class is the last.
int64_t rank_of(const Values& x, int64_t row, int64_t classes, int64_t label) {
  if (label == kNoLabel) return std::max<int64_t>(classes, 5);
  int64_t rank = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double value = x[at(row * classes + c)], own = x[at(row * classes + label)];
    if (std::isnan(value)) return classes;
    if (value > own || (value == own && c < label)) ++rank;
  }
  return rank;
}

void metrics_accumulate_reference(ReferenceCall& call) {
  const auto count = static_cast<int64_t>(call.in(1).at(0));
  call.require(count >= 0 && count <= call.in_dim(0, 0), "a count of at most N");
  Values& totals = call.out();
  totals = call.in(2);
  for (int64_t n = 0; n < count; ++n) {
    totals[0] += call.in(0)[at(n)];
    if (call.inputs() > 3) {
      const int64_t classes = call.in_dim(3, 1);
      const int64_t rank = rank_of(call.in(3), n, classes, label_of(call.in(4), n, classes));
      totals[1] += rank == 0 ? 1 : 0;
      totals[2] += rank < 5 ? 1 : 0;
    }
  }
  totals[3] += static_cast<double>(count);
}

std::vector<double> metrics_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  double sum = std::abs(e.inputs.at(2).values.at(0));
  const auto count = static_cast<std::size_t>(e.inputs.at(1).values.at(0));
  for (std::size_t i = 0; i < count; ++i) sum += std::abs(e.inputs.at(0).values.at(i));
  scale.at(0) = sum * accumulation(static_cast<double>(count));
  return scale;
}

InputSpec losses(int64_t rows, int64_t count) {
  // What lies behind the count must not be looked at.
  return f32({rows}, [count](Random& random, int64_t i) { return i < count ? random.uniform(0, 3) : kNan; });
}

CaseSpec unclassified(int64_t rows, int64_t counted) {
  return {.inputs = {losses(rows, counted), count(counted), totals()}, .note = "count " + std::to_string(counted)};
}

CaseSpec classified(int64_t rows, int64_t counted, int64_t classes, const Generator& x, const std::string& note = {}) {
  CaseSpec spec = unclassified(rows, counted);
  spec.inputs.push_back(f32({rows, classes}, x));
  spec.inputs.push_back(i32({rows}, integers(0, classes - 1)));
  if (!note.empty()) spec.note += ", " + note;
  return spec;
}

std::vector<CaseSpec> metrics_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [rows, counted] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 0}, {128, 128}, {128, 96}, {1031, 1030}, {7, 0}}) {
    cases.push_back(unclassified(rows, counted));
    for (const int64_t classes : {1, 2, 10, 1000}) cases.push_back(classified(rows, counted, classes, uniform()));
    cases.push_back(classified(rows, counted, 10, integers(0, 3), "ties"));
    cases.push_back(classified(rows, counted, 10, constant(0), "all equal"));
    cases.push_back(classified(rows, counted, 10, sometimes(kNan, 15, uniform()), "NaN"));
    cases.push_back(classified(rows, counted, 3, sometimes(kNan, 5, uniform()), "NaN among fewer than 5 classes"));
  }
  return cases;
}

CaseSpec metrics_request(Written& r) {
  if (r.sizes.size() != 2 || r.sizes[1] < 1) bad(r, "N,C");
  const int64_t rows = r.sizes[0];
  return {.inputs = {f32({rows}), count(rows), f64({4}, constant(0)), f32(r.sizes),
                     i32({rows}, integers(0, r.sizes[1] - 1))}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_METRICS_ACCUMULATE,
       .reference = metrics_accumulate_reference,
       .tolerance = {{metrics_scale, "a sum in f64, since the totals are; counts are exact"}},
       .cases = metrics_cases,
       .typical = {.inputs = {typical_losses(), count(kTypicalRows), f64({4}, constant(0)), typical_logits(),
                              typical_labels()}},
       .request = metrics_request},
  };
}

}  // namespace gpunn::ops::metrics
