// LION_UPDATE.
#include <cmath>
#include <utility>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::lion {

namespace {

// --- LION_UPDATE ---

std::vector<ValueId> lion_parts(Composition& c) {
  const auto a = c.attrs<gpunn_lion_attrs>();
  auto [w, g, rate, decay] = traced_update(c, a);
  traced::Traced m(c, c.in(3));
  traced::Formula<GPUNN_OP_LION_UPDATE>{a}(w, g, m, rate, traced::kept(rate, decay));
  return {w.in(c), m.in(c)};
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }  // of NaN, NaN

void lion_update_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_lion_attrs>();
  const double lr = call.in(2).at(0), beta1 = attrs.beta1, beta2 = attrs.beta2;
  for (std::size_t i = 0; i < call.in(0).size(); ++i) {
    const double w = call.in(0)[i], g = call.in(1)[i], m = call.in(3)[i];
    const double decay = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight_decay : 0.0;
    call.out(0)[i] = w * (1 - lr * decay) - lr * sign(beta1 * m + (1 - beta1) * g);
    call.out(1)[i] = beta2 * m + (1 - beta2) * g;
  }
}

// Where the two terms cancel to less than their roundings, any sign is right: as much as from -1 to 1.
std::vector<double> lion_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_lion_attrs>();
  const double roundoff = unit_roundoff(DType::f32);
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const UpdatedElement x = updated_element(e, i, a);
    if (output == 1) {
      scale[i] = 4 * (a.beta2 * magnitude(e, 3, i) + (1 - a.beta2) * x.g);
      continue;
    }
    const double m = e.inputs.at(3).values[i], g = e.inputs.at(1).values[i];
    const double rounding = 4 * roundoff * (a.beta1 * std::abs(m) + (1 - a.beta1) * x.g);
    const bool undecided = std::abs(a.beta1 * m + (1 - a.beta1) * g) < rounding;
    scale[i] = 3 * x.w * (1 + learning_rate(e) * x.decay) + 2 * learning_rate(e) +
               (undecided ? 2 * learning_rate(e) / roundoff : 0);
  }
  return scale;
}

Attributes lion_attrs(float decay, int64_t decayed) {
  return Attributes::of(
      gpunn_lion_attrs{.struct_size = 0, .beta1 = 0.9F, .beta2 = 0.99F, .weight_decay = decay, .decayed = decayed});
}

// Where neither moment nor gradient is there the weight stays; a NaN shows in the weight at once.
CaseSpec lion_case(int64_t n, float decay, int64_t decayed, bool with_nan = false) {
  const Generator g = with_nan ? sometimes(kNan, 5, uniform()) : sometimes(0, 2, uniform());
  return {.attrs = lion_attrs(decay, decayed),
          .inputs = {some_weights(n), f32({n}, g), scalar(0.05), f32({n}, sometimes(0, 2, uniform(-0.1, 0.1)))},
          .note = decay_note(decayed) + (with_nan ? ", NaN" : "")};
}

std::vector<CaseSpec> lion_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    cases.push_back(lion_case(n, 0, 0));
    cases.push_back(lion_case(n, 0.1F, some_decayed(n)));
  }
  cases.push_back(lion_case(100, 0.1F, 50, true));
  cases.push_back(lion_case(0, 0.1F, 0));
  return cases;
}

CaseSpec lion_request(Written& r) {
  std::vector<InputSpec> inputs = update_request(r, 1);
  return {.attrs = lion_attrs(1e-4F, r.sizes[0]), .inputs = std::move(inputs)};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_LION_UPDATE,
       .decompose = lion_parts,
       .flops = flops_per_input<10>,
       .reference = lion_update_reference,
       .tolerance = {{lion_scale, "a sum of two products, whose sign is open where they cancel"}},
       .cases = lion_cases,
       .typical = {.attrs = lion_attrs(1e-2F, kTypicalParameters), .inputs = typical_update(1)},
       .request = lion_request},
  };
}

}  // namespace gpunn::ops::lion
