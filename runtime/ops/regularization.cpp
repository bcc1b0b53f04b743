// CLIP_NORM and L1_GRADIENT: what is done to gradients, or weights, beside the optimizer's update.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::regularization {

namespace {

// --- CLIP_NORM ---

// A norm that is not finite leaves x as it is: its difference from itself is no 0.
std::vector<ValueId> clip_norm_parts(Composition& c) {
  const auto a = c.attrs<gpunn_clip_norm_attrs>();
  const ValueId norm = c.in(1), one = c.constant(1);
  const ValueId share = c.div(c.constant(a.max_norm), c.add(norm, c.constant(a.epsilon)));
  const ValueId factor = a.rescale != 0 ? share : c.minimum(one, share);
  return {c.mul(c.in(0), c.select(c.equal(c.sub(norm, norm), c.constant(0)), factor, one))};
}

void clip_norm_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_clip_norm_attrs>();
  const double norm = call.in(1).at(0);
  double factor = static_cast<double>(attrs.max_norm) / (norm + static_cast<double>(attrs.epsilon));
  if (attrs.rescale == 0) factor = std::min(factor, 1.0);
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    call.out()[i] = std::isfinite(norm) ? factor * call.in(0)[i] : call.in(0)[i];
  }
}

Attributes clip_attrs(float max_norm, bool rescale) {
  return Attributes::of(
      gpunn_clip_norm_attrs{.struct_size = 0, .max_norm = max_norm, .epsilon = 1e-6F, .rescale = rescale ? 1 : 0});
}

const std::vector<int64_t> kElementCounts = {0, 1, 7, 64, 1031, 70001};

std::vector<CaseSpec> clip_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](int64_t n, double norm, bool rescale, const std::string& note) {
    cases.push_back({.attrs = clip_attrs(1.5F, rescale), .inputs = {f32({n}), scalar(norm)}, .note = note});
  };
  for (const int64_t n : kElementCounts) {
    add(n, 7.3, false, "clipped");
    add(n, 0.3, false, "left as it is");
    add(n, 0.3, true, "made longer");
  }
  add(31, 0, false, "norm 0");
  for (const bool rescale : {false, true}) {
    add(31, kInf, rescale, "infinite norm");
    add(31, kNan, rescale, "norm NaN");
  }
  return cases;
}

void require_length(const Written& r) {
  if (r.sizes.size() != 1) bad(r, "the number of parameters");
}

CaseSpec clip_request(Written& r) {
  require_length(r);
  return {.attrs = clip_attrs(1, false), .inputs = {f32(r.sizes), scalar(2)}};
}

// --- L1_GRADIENT ---

std::vector<ValueId> l1_gradient_parts(Composition& c) {
  const auto a = c.attrs<gpunn_l1_attrs>();
  return {c.add(c.in(0), c.of_first(c.scaled(c.sign(c.in(1)), a.weight), a.decayed))};
}

double l1_flops(const OpSignature& s) { return 2.0 * static_cast<double>(s.attrs.as<gpunn_l1_attrs>().decayed); }

void l1_gradient_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_l1_attrs>();
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    const double w = call.in(1)[i];
    const double sign = w > 0 ? 1 : w < 0 ? -1 : 0;
    const double weight = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight : 0.0;
    call.out()[i] = call.in(0)[i] + weight * sign;
  }
}

Attributes l1_attrs(float weight, int64_t decayed) {
  return Attributes::of(gpunn_l1_attrs{.struct_size = 0, .weight = weight, .decayed = decayed});
}

std::vector<CaseSpec> l1_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](int64_t n, int64_t decayed) {
    cases.push_back({.attrs = l1_attrs(0.01F, decayed),
                     .inputs = {f32({n}), f32({n}, sometimes(0, 3, uniform()))},
                     .note = std::to_string(decayed) + " decay"});
  };
  for (const int64_t n : kElementCounts) {
    add(n, n);
    if (n >= 3) add(n, n / 3);
    if (n > 0) add(n, 0);
  }
  return cases;
}

CaseSpec l1_request(Written& r) {
  require_length(r);
  return {.attrs = l1_attrs(1e-6F, r.sizes[0]), .inputs = repeated(2, f32(r.sizes))};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_CLIP_NORM,
       .decompose = clip_norm_parts,
       .reference = clip_norm_reference,
       .tolerance = {{few_roundings_scale, "a sum, a quotient and a product"}},
       .cases = clip_cases,
       .typical = {.attrs = clip_attrs(1, false), .inputs = {typical_parameters(), scalar(2)}},
       .request = clip_request},
      {.id = GPUNN_OP_L1_GRADIENT,
       .decompose = l1_gradient_parts,
       .flops = l1_flops,
       .reference = l1_gradient_reference,
       .tolerance = {{one_rounding_scale, "one addition, rounded once"}},
       .cases = l1_cases,
       .typical = {.attrs = l1_attrs(1e-4F, kTypicalParameters), .inputs = repeated(2, typical_parameters())},
       .request = l1_request},
  };
}

}  // namespace gpunn::ops::regularization
