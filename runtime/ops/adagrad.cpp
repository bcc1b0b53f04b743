// ADAGRAD_UPDATE.
#include <cmath>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::adagrad {

namespace {

// --- ADAGRAD_UPDATE ---

std::vector<ValueId> adagrad_parts(Composition& c) {
  const auto a = c.attrs<gpunn_adagrad_attrs>();
  auto [w, g, rate, decay] = traced_update(c, a);
  traced::Traced sum(c, c.in(3));
  traced::Formula<GPUNN_OP_ADAGRAD_UPDATE>{a}(w, g, sum, rate, decay);
  return {w.in(c), sum.in(c)};
}

void adagrad_update_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_adagrad_attrs>();
  const double lr = call.in(2).at(0);
  for (std::size_t i = 0; i < call.in(0).size(); ++i) {
    const double w = call.in(0)[i];
    const double decay = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight_decay : 0.0;
    const double g = call.in(1)[i] + decay * w;
    const double sum = call.in(3)[i] + g * g;
    call.out(0)[i] = w - lr * g / (std::sqrt(sum) + attrs.epsilon);
    call.out(1)[i] = sum;
  }
}

std::vector<double> adagrad_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_adagrad_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const UpdatedElement x = updated_element(e, i, a);
    const double sum = magnitude(e, 3, i) + x.gradient() * x.gradient();
    const double step = x.gradient() / (std::sqrt(e.reference[1].values[i]) + a.epsilon);
    scale[i] = output == 0 ? 1.5 * std::abs(e.reference[0].values[i]) + kStepError * learning_rate(e) * step : 6 * sum;
  }
  return scale;
}

Attributes adagrad_attrs(float epsilon, float decay, int64_t decayed) {
  return Attributes::of(gpunn_adagrad_attrs{
      .struct_size = 0, .epsilon = epsilon, .weight_decay = decay, .reserved = 0, .decayed = decayed});
}

CaseSpec adagrad_case(int64_t n, float decay, int64_t decayed) {
  return {.attrs = adagrad_attrs(1e-6F, decay, decayed),
          .inputs = {some_weights(n), f32({n}), scalar(0.05), f32({n}, uniform(0, 0.5))},
          .note = decay_note(decayed)};
}

std::vector<CaseSpec> adagrad_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    cases.push_back(adagrad_case(n, 0, 0));
    cases.push_back(adagrad_case(n, 0.1F, some_decayed(n)));
  }
  cases.push_back(adagrad_case(0, 0.1F, 0));
  return cases;
}

CaseSpec adagrad_request(Written& r) {
  CaseSpec spec{.inputs = update_request(r, 1)};
  spec.attrs = adagrad_attrs(1e-8F, 1e-4F, r.sizes[0]);
  spec.inputs[3] = f32(r.sizes, uniform(0, 1));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ADAGRAD_UPDATE,
       .decompose = adagrad_parts,
       .flops = flops_per_input<8>,
       .reference = adagrad_update_reference,
       .tolerance = {{adagrad_scale, "a sum, a root and a quotient"}},
       .cases = adagrad_cases,
       .typical = {.attrs = adagrad_attrs(1e-8F, 0, 0), .inputs = typical_update(1)},
       .largest = kLargestSquared,
       .request = adagrad_request},
  };
}

}  // namespace gpunn::ops::adagrad
