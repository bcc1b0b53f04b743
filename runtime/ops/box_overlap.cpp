// GIOU_LOSS, its backward, and NON_MAXIMUM_SUPPRESSION.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/op.hpp"

namespace gpunn::ops::box_overlap {

namespace {

// --- GIOU_LOSS ---

constexpr double kGiouEpsilon = 1e-7;

void giou_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_GIOU_LOSS_BACKWARD, {}, {c.output_gradient(), c.input(0), c.input(1)}));
}

// A pair of boxes: the sides of the intersection and of the box around both, and the areas.
struct BoxPair {
  BoxPair(const Values& a, const Values& b, int64_t row) {
    for (std::size_t i = 0; i < 4; ++i) {
      first[i] = a[at(4 * row) + i];
      second[i] = b[at(4 * row) + i];
    }
    // As comparisons have it: of a NaN and a number the number where it is second.
    const auto low = [](double x, double y) { return x < y ? x : y; };
    const auto high = [](double x, double y) { return x > y ? x : y; };
    for (std::size_t d = 0; d < 2; ++d) {
      inner[d] = low(first[2 + d], second[2 + d]) - high(first[d], second[d]);
      outer[d] = high(first[2 + d], second[2 + d]) - low(first[d], second[d]);
      own[d] = first[2 + d] - first[d];
    }
    meet = inner[0] > 0 && inner[1] > 0;
    shared = meet ? inner[0] * inner[1] : 0;
    all = own[0] * own[1] + (second[2] - second[0]) * (second[3] - second[1]) - shared;
    around = outer[0] * outer[1];
  }

  double loss() const { return 1 - shared / (all + kGiouEpsilon) + (around - all) / (around + kGiouEpsilon); }

  // By corner i of the first: 0 and 1 are its left and top, 2 and 3 its right and bottom.
  double slope(std::size_t i) const {
    const std::size_t d = i % 2, across = 1 - d;
    const bool upper = i >= 2;
    const double sign = upper ? 1 : -1;
    const double of_area = sign * own[across];
    const bool inside = upper ? first[i] < second[i] : first[i] > second[i];
    const bool outside = upper ? first[i] > second[i] : first[i] < second[i];
    const double of_shared = meet && inside ? sign * inner[across] : 0;
    const double of_around = outside ? sign * outer[across] : 0;
    const double of_all = of_area - of_shared, u = all + kGiouEpsilon, h = around + kGiouEpsilon;
    return -(of_shared * u - shared * of_all) / (u * u) +
           ((of_around - of_all) * h - (around - all) * of_around) / (h * h);
  }

  double first[4], second[4], inner[2], outer[2], own[2];
  bool meet;
  double shared, all, around;
};

void giou_loss_reference(ReferenceCall& call) {
  for (int64_t row = 0; row < call.in_dim(0, 0); ++row) {
    call.out()[at(row)] = BoxPair(call.in(0), call.in(1), row).loss();
  }
}

void giou_loss_backward_reference(ReferenceCall& call) {
  for (int64_t row = 0; row < call.in_dim(0, 0); ++row) {
    const BoxPair pair(call.in(1), call.in(2), row);
    for (std::size_t i = 0; i < 4; ++i) call.out()[at(4 * row) + i] = call.in(0)[at(row)] * pair.slope(i);
  }
}

// Computed in f64, of which nothing is left but what cancels in the end.
std::vector<double> giou_error(const Evaluation& e, std::size_t output) {
  std::vector<double> scale = few_roundings_scale(e, output);
  constexpr double kLeft = 1e-6;  // f64's roundoff, times 100, in units of f32's
  for (double& one : scale) one += kLeft;
  return scale;
}

std::vector<double> giou_backward_error(const Evaluation& e, std::size_t output) {
  std::vector<double> scale = few_roundings_scale(e, output);
  constexpr double kLeft = 1e-6;
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const BoxPair pair(e.inputs[1].values, e.inputs[2].values, static_cast<int64_t>(i / 4));
    const double sides =
        std::abs(pair.own[0]) + std::abs(pair.own[1]) + std::abs(pair.outer[0]) + std::abs(pair.outer[1]);
    const double terms = sides / std::abs(pair.all + kGiouEpsilon) + sides / std::abs(pair.around + kGiouEpsilon);
    const double error = kLeft * std::abs(e.inputs[0].values[i / 4]) * terms * (1 + std::abs(pair.loss()));
    if (std::isfinite(error)) scale[i] += error;
  }
  return scale;
}

// Pairs that overlap, lie apart, or within each other: left and top below 30, the others above.
Generator corners() {
  return [](Random& random, int64_t index) {
    const double low = random.uniform(0, 30);
    return index % 4 < 2 ? low : low + random.uniform(1, 40);
  };
}

std::vector<CaseSpec> giou_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t rows : {1, 2, 33, 257, 5000, 0}) {
    cases.push_back({.inputs = {f32({rows, 4}, corners()), f32({rows, 4}, corners())}});
  }
  cases.push_back({.inputs = {f32({40, 4}, constant(3)), f32({40, 4}, corners())}, .note = "a without area"});
  cases.push_back({.inputs = {f32({40, 4}, constant(3)), f32({40, 4}, constant(0))}, .note = "both without area"});
  cases.push_back({.inputs = {f32({400, 4}, uniform(0, 50)), f32({400, 4}, corners())}, .note = "corners swapped"});
  return cases;
}

std::vector<CaseSpec> giou_backward_cases() {
  std::vector<CaseSpec> cases = giou_cases();
  for (CaseSpec& spec : cases) spec.inputs.insert(spec.inputs.begin(), f32({spec.inputs[0].type.shape[0]}));
  return cases;
}

// Corners far from each other compared with the step of a difference.
std::vector<CaseSpec> differentiable_giou() {
  return {{.inputs = {f32({1, 4}, listed({3, 4, 20, 30})), f32({1, 4}, listed({5, 2, 25, 22}))}, .note = "crossing"},
          {.inputs = {f32({1, 4}, listed({3, 4, 20, 30})), f32({1, 4}, listed({40, 50, 60, 70}))}, .note = "apart"},
          {.inputs = {f32({1, 4}, listed({3, 4, 50, 60})), f32({1, 4}, listed({10, 20, 30, 40}))}, .note = "around"}};
}

CaseSpec giou_request(Written& r) {
  if (r.sizes.size() != 1) bad(r, "R");
  return {.inputs = {f32({r.sizes[0], 4}, corners()), f32({r.sizes[0], 4}, corners())}};
}

CaseSpec giou_backward_request(Written& r) {
  CaseSpec spec = giou_request(r);
  spec.inputs.insert(spec.inputs.begin(), f32({r.sizes[0]}));
  return spec;
}

// --- NON_MAXIMUM_SUPPRESSION ---

double overlap_of_boxes(const double* a, const double* b) {
  const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const double shared = width > 0 && height > 0 ? width * height : 0;
  const double all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared;
  return all > 0 ? shared / all : 0;
}

void suppression_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_suppression_attrs>();
  const int64_t images = call.in_dim(1, 0), boxes = call.in_dim(1, 1), classes = call.in_dim(1, 2);
  for (int64_t n = 0; n < images; ++n) {
    const double* const box = call.in(0).data() + n * boxes * 4;
    const double* const score = call.in(1).data() + n * boxes * classes;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < boxes * classes; ++i) {
      if (score[i] > static_cast<double>(attrs.least_score)) order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return score[a] > score[b]; });
    std::vector<int64_t> kept;
    for (const int64_t i : order) {
      if (std::ssize(kept) == attrs.most) break;
      const bool again = std::ranges::any_of(kept, [&](int64_t k) {
        if (attrs.by_class != 0 && k % classes != i % classes) return false;
        return overlap_of_boxes(box + k / classes * 4, box + i / classes * 4) > static_cast<double>(attrs.overlap);
      });
      if (!again) kept.push_back(i);
    }
    double* y = call.out().data() + n * attrs.most * 6;
    for (int64_t k = 0; k < attrs.most; ++k, y += 6) {
      std::fill_n(y, 5, 0.0);
      y[5] = -1;
      if (k >= std::ssize(kept)) continue;
      const int64_t i = kept[at(k)];
      std::copy_n(box + i / classes * 4, 4, y);
      y[4] = score[i];
      y[5] = static_cast<double>(i % classes);
    }
  }
}

Attributes suppression_attrs(float overlap, float least_score, int32_t most, bool by_class) {
  return Attributes::of(gpunn_suppression_attrs{
      .struct_size = 0, .overlap = overlap, .least_score = least_score, .most = most, .by_class = by_class ? 1 : 0});
}

std::vector<CaseSpec> suppression_cases() {
  std::vector<CaseSpec> cases;
  struct Boxes {
    int64_t images, boxes, classes;
  };
  const auto add = [&cases](const Boxes& b, const Attributes& attrs, const Generator& scores,
                            const std::string& note = {}) {
    cases.push_back({.attrs = attrs,
                     .inputs = {f32({b.images, b.boxes, 4}, corners()), f32({b.images, b.boxes, b.classes}, scores)},
                     .note = note});
  };
  for (const Boxes& b : {Boxes{1, 1, 1}, {2, 33, 3}, {3, 257, 20}, {1, 1500, 2}, {0, 4, 2}, {2, 0, 3}}) {
    add(b, suppression_attrs(0.5003F, 0.3F, 20, true), uniform(0, 1));
    add(b, suppression_attrs(0.3002F, 0, 7, false), uniform(0, 1));
  }
  add({2, 100, 3}, suppression_attrs(0.5003F, 0.9F, 300, true), uniform(0, 1), "fewer than are asked for");
  add({2, 100, 3}, suppression_attrs(0.5003F, 0.05F, 50, true), integers(0, 1), "equal scores");
  add({2, 1500, 2}, suppression_attrs(0.5003F, 0.05F, 50, true), integers(0, 1), "many equal scores");
  add({2, 2500, 1}, suppression_attrs(0.0201F, 0.05F, 300, false), uniform(0, 1), "most are struck out");
  add({1, 100, 2}, suppression_attrs(0.5003F, 2, 5, true), uniform(0, 1), "none is good enough");
  add({1, 100, 2}, suppression_attrs(1, 0, 30, true), uniform(0, 1), "all stay");
  return cases;
}

CaseSpec suppression_request(Written& r) {
  if (r.sizes.size() != 3 || r.sizes[2] < 1) bad(r, "N,P,C with most= if wanted");
  return {.attrs = suppression_attrs(0.5F, 0.05F, take_int(r, "most", 100), true),
          .inputs = {f32({r.sizes[0], r.sizes[1], 4}, corners()), f32(r.sizes, uniform(0, 1))}};
}

// Scores of which few count, as those of a trained detector.
Generator mostly_low() { return sometimes(0.9, 200, uniform(0, 0.049)); }

double suppression_flops(const OpSignature& s) { return 2 * static_cast<double>(s.inputs[1].elements()); }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_GIOU_LOSS,
       .gradient = giou_gradient,
       .flops = flops_per_output<30>,
       .reference = giou_loss_reference,
       .tolerance = {{giou_error, "computed in f64 and rounded once"}},
       .cases = giou_cases,
       .differentiable = differentiable_giou,
       .typical = {.inputs = {f32({16 * 5456, 4}, corners()), f32({16 * 5456, 4}, corners())}},
       .largest = kLargestSquared,
       .request = giou_request},
      {.id = GPUNN_OP_GIOU_LOSS_BACKWARD,
       .flops = flops_per_output<30>,
       .reference = giou_loss_backward_reference,
       .tolerance = {{giou_backward_error, "computed in f64 and rounded once"}},
       .cases = giou_backward_cases,
       .typical = {.inputs = {f32({16 * 5456}), f32({16 * 5456, 4}, corners()), f32({16 * 5456, 4}, corners())}},
       .largest = kLargestSquared,
       .request = giou_backward_request},
      {.id = GPUNN_OP_NON_MAXIMUM_SUPPRESSION,
       .flops = suppression_flops,
       .reference = suppression_reference,
       .tolerance = {{exact_scale, "copies and numbers of classes"}},
       .cases = suppression_cases,
       .typical = {.attrs = suppression_attrs(0.6F, 0.05F, 100, true),
                   .inputs = {f32({16, 5456, 4}, corners()), f32({16, 5456, 20}, mostly_low())}},
       .largest = kLargestSquared,
       .request = suppression_request},
  };
}

}  // namespace gpunn::ops::box_overlap
