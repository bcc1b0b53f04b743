// SGD_UPDATE.
#include <cmath>
#include <utility>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::sgd {

namespace {

// --- SGD_UPDATE ---

std::vector<ValueId> sgd_parts(Composition& c) {
  const auto a = c.attrs<gpunn_sgd_attrs>();
  auto [w, g, rate, decay] = traced_update(c, a);
  traced::Traced velocity = a.momentum == 0 ? traced::Traced::none() : traced::Traced(c, c.in(3));
  traced::Formula<GPUNN_OP_SGD_UPDATE>{a}(w, g, velocity, rate, decay);
  if (a.momentum == 0) return {w.in(c)};
  return {w.in(c), velocity.in(c)};
}

void sgd_update_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_sgd_attrs>();
  const double lr = call.in(2).at(0), momentum = attrs.momentum;
  call.require(call.inputs() == (momentum != 0 ? 4U : 3U), "a velocity exactly where the momentum is not 0");
  for (std::size_t i = 0; i < call.in(0).size(); ++i) {
    const double w = call.in(0)[i];
    const double decay = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight_decay : 0.0;
    const double g = call.in(1)[i] + decay * w;
    double step = g;
    if (momentum != 0) {
      const double velocity = momentum * call.in(3)[i] + g;
      call.out(1)[i] = velocity;
      step = attrs.nesterov != 0 ? g + momentum * velocity : velocity;
    }
    call.out(0)[i] = w - lr * step;
  }
}

std::vector<double> sgd_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_sgd_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const UpdatedElement x = updated_element(e, i, a);
    const double velocity = a.momentum != 0 ? a.momentum * magnitude(e, 3, i) + x.gradient() : 0;
    const double step = a.momentum == 0   ? x.gradient()
                        : a.nesterov != 0 ? x.gradient() + a.momentum * velocity
                                          : velocity;
    scale[i] =
        output == 1 ? 4 * velocity : 1.5 * std::abs(e.reference[0].values[i]) + kStepError * learning_rate(e) * step;
  }
  return scale;
}

Attributes sgd_attrs(float momentum, bool nesterov, float decay, int64_t decayed) {
  return Attributes::of(gpunn_sgd_attrs{
      .struct_size = 0, .momentum = momentum, .weight_decay = decay, .nesterov = nesterov, .decayed = decayed});
}

CaseSpec sgd_case(int64_t n, float momentum, bool nesterov, float decay, int64_t decayed) {
  CaseSpec spec{.attrs = sgd_attrs(momentum, nesterov, decay, decayed),
                .inputs = {some_weights(n), f32({n}), scalar(0.3)},
                .note = decay_note(decayed)};
  if (momentum != 0) spec.inputs.push_back(f32({n}));
  return spec;
}

std::vector<CaseSpec> sgd_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    cases.push_back(sgd_case(n, 0, false, 0, 0));
    cases.push_back(sgd_case(n, 0, false, 0.1F, some_decayed(n)));
    cases.push_back(sgd_case(n, 0.9F, false, 0.1F, some_decayed(n)));
    cases.push_back(sgd_case(n, 0.9F, true, 0.1F, n));
  }
  cases.push_back(sgd_case(0, 0.9F, false, 0.1F, 0));
  return cases;
}

CaseSpec sgd_request(Written& r) {
  std::vector<InputSpec> inputs = update_request(r, 1);
  return {.attrs = sgd_attrs(0.9F, true, 1e-4F, r.sizes[0]), .inputs = std::move(inputs)};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_SGD_UPDATE,
       .decompose = sgd_parts,
       .flops = flops_per_input<6>,
       .reference = sgd_update_reference,
       .tolerance = {{sgd_scale, "a sum of at most four products"}},
       .cases = sgd_cases,
       .typical = {.attrs = sgd_attrs(0.9F, true, 1e-4F, kTypicalParameters), .inputs = typical_update(1)},
       .request = sgd_request},
  };
}

}  // namespace gpunn::ops::sgd
