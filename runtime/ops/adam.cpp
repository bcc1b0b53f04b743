// ADAM_UPDATE.
#include <cmath>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::adam {

namespace {

// --- ADAM_UPDATE ---

std::vector<ValueId> adam_parts(Composition& c) {
  using traced::Traced;
  const auto a = c.attrs<gpunn_adam_attrs>();
  const ValueId t = c.add(c.to_f32(c.in(3)), c.constant(1));
  const auto correction = [&](float beta) {
    return beta == 0 ? Traced(1) : Traced(c, c.div(c.constant(1), c.one_minus_power(beta, t)));
  };
  auto [w, g, rate, decay] = traced_update(c, a);
  const Traced keep = a.decoupled != 0 ? traced::kept(rate, decay) : Traced(1);
  Traced m(c, c.in(4)), v(c, c.in(5));
  traced::Formula<GPUNN_OP_ADAM_UPDATE>{a}(w, g, m, v, rate, decay, keep, correction(a.beta1), correction(a.beta2));
  return {w.in(c), m.in(c), v.in(c)};
}

void adam_update_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_adam_attrs>();
  const double lr = call.in(2).at(0), t = call.in(3).at(0) + 1;
  const double beta1 = attrs.beta1, beta2 = attrs.beta2;
  for (std::size_t i = 0; i < call.in(0).size(); ++i) {
    double w = call.in(0)[i], g = call.in(1)[i];
    const double decay = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight_decay : 0.0;
    if (attrs.decoupled != 0) {
      w *= 1 - lr * decay;
    } else {
      g += decay * w;
    }
    const double m = beta1 * call.in(4)[i] + (1 - beta1) * g;
    const double v = beta2 * call.in(5)[i] + (1 - beta2) * g * g;
    const double m_corrected = m / (1 - std::pow(beta1, t));
    const double v_corrected = v / (1 - std::pow(beta2, t));
    call.out(0)[i] = w - lr * m_corrected / (std::sqrt(v_corrected) + attrs.epsilon);
    call.out(1)[i] = m;
    call.out(2)[i] = v;
  }
}

std::vector<double> adam_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_adam_attrs>();
  const double t = e.inputs.at(3).values.at(0) + 1;
  const double first = 1 - std::pow(static_cast<double>(a.beta1), t);
  const double second = 1 - std::pow(static_cast<double>(a.beta2), t);
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const UpdatedElement x = updated_element(e, i, a);
    const double g = a.decoupled != 0 ? x.g : x.gradient();
    const double m = a.beta1 * magnitude(e, 4, i) + (1 - a.beta1) * g;
    // g'^2 is off by 2 |g'| times the error of g', which cancellation may leave as large as g.
    const double v = a.beta2 * magnitude(e, 5, i) + (1 - a.beta2) * g * g;
    const double root = std::sqrt(e.reference[2].values[i] / second) + a.epsilon;
    const double shrink =
        a.decoupled != 0 ? x.w * (1 + learning_rate(e) * x.decay) : std::abs(e.reference[0].values[i]);
    const double w = 3 * shrink + kStepError * learning_rate(e) * m / first / root;
    scale[i] = output == 0 ? w : output == 1 ? 4 * m : 6 * v;
  }
  return scale;
}

Attributes adam_attrs(float decay, bool decoupled, int64_t decayed) {
  return Attributes::of(gpunn_adam_attrs{.struct_size = 0,
                                         .beta1 = 0.9F,
                                         .beta2 = 0.999F,
                                         .epsilon = 1e-8F,
                                         .weight_decay = decay,
                                         .decoupled = decoupled,
                                         .decayed = decayed});
}

CaseSpec adam_case(int64_t n, int64_t at_step, bool decoupled, float decay, int64_t decayed) {
  const bool fresh = at_step == 0;  // as training begins: no moments yet
  return {
      .attrs = adam_attrs(decay, decoupled, decayed),
      .inputs = {some_weights(n), f32({n}), scalar(0.05), step(at_step),
                 f32({n}, fresh ? constant(0) : uniform(-0.1, 0.1)), f32({n}, fresh ? constant(0) : uniform(0, 0.01))},
      .note = decay_note(decayed) + ", step " + std::to_string(at_step)};
}

std::vector<CaseSpec> adam_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    cases.push_back(adam_case(n, 0, false, 0, 0));
    cases.push_back(adam_case(n, 1, false, 0.1F, some_decayed(n)));
    cases.push_back(adam_case(n, 2, true, 0.1F, some_decayed(n)));
    cases.push_back(adam_case(n, 100000, true, 0.1F, n));
  }
  return cases;
}

std::vector<InputSpec> with_step(std::vector<InputSpec> inputs, int64_t at_step) {
  inputs.insert(inputs.begin() + 3, step(at_step));
  return inputs;
}

CaseSpec adam_request(Written& r) {
  CaseSpec spec{.inputs = with_step(update_request(r, 2), 10)};
  spec.attrs = adam_attrs(1e-4F, true, r.sizes[0]);
  spec.inputs.back() = f32(r.sizes, uniform(0, 1));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ADAM_UPDATE,
       .decompose = adam_parts,
       .flops = flops_per_input<14>,
       .reference = adam_update_reference,
       .tolerance =
           {{adam_scale,
             "moments of two products, two quotients and a root; the powers of beta must be formed in more than f32"}},
       .cases = adam_cases,
       .typical = {.attrs = adam_attrs(1e-4F, true, kTypicalParameters), .inputs = with_step(typical_update(2), 3)},
       .largest = kLargestSquared,
       .request = adam_request},
  };
}

}  // namespace gpunn::ops::adam
