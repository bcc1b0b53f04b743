// ARGMAX and CONFUSION_ACCUMULATE. Nothing flows back.
#include <cmath>
#include <utility>

#include "ops/class_scores.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::argmax {

namespace {

// --- ARGMAX ---

// The first of the largest; the first NaN if there is one.
int64_t largest_of(const Values& x, const ClassScores& shape, int64_t i) {
  int64_t best = 0;
  for (int64_t c = 0; c < shape.classes; ++c) {
    const double value = x[shape.place(i, c)];
    if (std::isnan(value)) return c;
    if (value > x[shape.place(i, best)]) best = c;
  }
  return best;
}

void argmax_reference(ReferenceCall& call) {
  const ClassScores shape(call.in_type(0).shape);
  for (int64_t i = 0; i < shape.rows * shape.positions; ++i) {
    call.out()[at(i)] = static_cast<double>(largest_of(call.in(0), shape, i));
  }
}

// Scores of each kind that an index may depend on.
std::vector<std::pair<Generator, std::string>> score_kinds() {
  return {{integers(0, 3), "ties"},
          {constant(-2), "all equal"},
          {sometimes(kNan, 15, uniform()), "NaN"},
          {constant(kNan), "nothing but NaN"},
          {sometimes(kInf, 7, uniform()), "infinity"},
          {constant(-kInf), "nothing but minus infinity"},
          {sometimes(-0.0, 2, constant(0)), "zeros of either sign"}};
}

std::vector<CaseSpec> argmax_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : kScoreShapes) cases.push_back({.inputs = {f32(x)}});
  for (const Shape& x : {Shape{2, 21, 17, 19}, Shape{19, 23}, Shape{7, 1500}}) {
    for (const auto& [values, note] : score_kinds()) cases.push_back({.inputs = {f32(x, values)}, .note = note});
  }
  return cases;
}

CaseSpec argmax_request(Written& r) {
  require_scores(r);
  return {.inputs = {f32(r.sizes)}};
}

// --- CONFUSION_ACCUMULATE ---

void confusion_accumulate_reference(ReferenceCall& call) {
  const ClassScores shape(call.in_type(0).shape);
  const auto count = static_cast<int64_t>(call.in(2).at(0));
  call.require(count >= 0 && count <= shape.rows, "a count of at most N");
  call.out() = call.in(3);
  for (int64_t i = 0; i < count * shape.positions; ++i) {
    const int64_t label = label_of(call.in(1), i, shape.classes), found = largest_of(call.in(0), shape, i);
    if (label == kNoLabel || std::isnan(call.in(0)[shape.place(i, found)])) continue;
    call.out()[at(label * shape.classes + found)] += 1;
  }
}

CaseSpec confusion_case(const Shape& x, int64_t counted, const Generator& values, const std::string& note = {}) {
  const Shape matrix{x.at(1), x.at(1)};
  return {.inputs = {f32(x, values), score_labels(x, 255), count(counted), i64(matrix, integers(0, 1000))},
          .note = "count " + std::to_string(counted) + (note.empty() ? "" : ", " + note)};
}

std::vector<CaseSpec> confusion_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : kScoreShapes) {
    if (x[1] > 1031) continue;  // the matrix has the square of that
    cases.push_back(confusion_case(x, x[0], uniform()));
  }
  for (const Shape& x : {Shape{3, 21, 17, 19}, Shape{19, 23}}) {
    for (const int64_t counted : {int64_t{0}, int64_t{1}, x[0] - 1}) {
      cases.push_back(confusion_case(x, counted, uniform()));
    }
    for (const auto& [values, note] : score_kinds()) cases.push_back(confusion_case(x, x[0], values, note));
  }
  cases.push_back(confusion_case({2, 2, 300, 200}, 2, constant(1), "one cell takes almost all"));
  return cases;
}

CaseSpec confusion_request(Written& r) {
  require_scores(r);
  return confusion_case(r.sizes, r.sizes[0], uniform());
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ARGMAX,
       .flops = flops_per_input<1>,
       .reference = argmax_reference,
       .tolerance = {{exact_scale, "an index"}},
       .cases = argmax_cases,
       .typical = {.inputs = {f32(typical_scores())}},
       .request = argmax_request},
      {.id = GPUNN_OP_CONFUSION_ACCUMULATE,
       .flops = flops_per_input<1>,
       .reference = confusion_accumulate_reference,
       .tolerance = {{exact_scale, "counts"}},
       .cases = confusion_cases,
       .typical = confusion_case(typical_scores(), typical_scores()[0], uniform()),
       .request = confusion_request},
  };
}

}  // namespace gpunn::ops::argmax
