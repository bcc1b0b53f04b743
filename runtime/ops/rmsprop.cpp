// RMSPROP_UPDATE.
#include <cmath>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::rmsprop {

namespace {

// --- RMSPROP_UPDATE ---

std::vector<ValueId> rmsprop_parts(Composition& c) {
  const auto a = c.attrs<gpunn_rmsprop_attrs>();
  auto [w, g, rate, decay] = traced_update(c, a);
  traced::Traced square(c, c.in(3));
  traced::Traced velocity = a.momentum == 0 ? traced::Traced::none() : traced::Traced(c, c.in(4));
  traced::Formula<GPUNN_OP_RMSPROP_UPDATE>{a}(w, g, square, velocity, rate, decay);
  if (a.momentum == 0) return {w.in(c), square.in(c)};
  return {w.in(c), square.in(c), velocity.in(c)};
}

void rmsprop_update_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_rmsprop_attrs>();
  const double lr = call.in(2).at(0), alpha = attrs.alpha, momentum = attrs.momentum;
  call.require(call.inputs() == (momentum != 0 ? 5U : 4U), "a velocity exactly where the momentum is not 0");
  for (std::size_t i = 0; i < call.in(0).size(); ++i) {
    const double w = call.in(0)[i];
    const double decay = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight_decay : 0.0;
    const double g = call.in(1)[i] + decay * w;
    const double square = alpha * call.in(3)[i] + (1 - alpha) * g * g;
    double step = g / (std::sqrt(square) + attrs.epsilon);
    if (momentum != 0) {
      step += momentum * call.in(4)[i];
      call.out(2)[i] = step;
    }
    call.out(1)[i] = square;
    call.out(0)[i] = w - lr * step;
  }
}

std::vector<double> rmsprop_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_rmsprop_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const UpdatedElement x = updated_element(e, i, a);
    const double square = a.alpha * magnitude(e, 3, i) + (1 - a.alpha) * x.gradient() * x.gradient();
    double step = x.gradient() / (std::sqrt(e.reference[1].values[i]) + a.epsilon);
    if (a.momentum != 0) step += a.momentum * magnitude(e, 4, i);
    const double w = 1.5 * std::abs(e.reference[0].values[i]) + kStepError * learning_rate(e) * step;
    scale[i] = output == 0 ? w : output == 1 ? 6 * square : kStepError * step;
  }
  return scale;
}

Attributes rmsprop_attrs(float epsilon, float momentum, float decay, int64_t decayed) {
  return Attributes::of(gpunn_rmsprop_attrs{.struct_size = 0,
                                            .alpha = 0.99F,
                                            .epsilon = epsilon,
                                            .momentum = momentum,
                                            .weight_decay = decay,
                                            .reserved = 0,
                                            .decayed = decayed});
}

CaseSpec rmsprop_case(int64_t n, float momentum, float decay, int64_t decayed) {
  CaseSpec spec{.attrs = rmsprop_attrs(1e-6F, momentum, decay, decayed),
                .inputs = {some_weights(n), f32({n}), scalar(0.05), f32({n}, uniform(0, 0.5))},
                .note = decay_note(decayed)};
  if (momentum != 0) spec.inputs.push_back(f32({n}));
  return spec;
}

std::vector<CaseSpec> rmsprop_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    cases.push_back(rmsprop_case(n, 0, 0, 0));
    cases.push_back(rmsprop_case(n, 0, 0.1F, some_decayed(n)));
    cases.push_back(rmsprop_case(n, 0.8F, 0.1F, some_decayed(n)));
  }
  return cases;
}

CaseSpec rmsprop_request(Written& r) {
  CaseSpec spec{.inputs = update_request(r, 2)};
  spec.attrs = rmsprop_attrs(1e-8F, 0.9F, 1e-4F, r.sizes[0]);
  spec.inputs[3] = f32(r.sizes, uniform(0, 1));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_RMSPROP_UPDATE,
       .decompose = rmsprop_parts,
       .flops = flops_per_input<10>,
       .reference = rmsprop_update_reference,
       .tolerance = {{rmsprop_scale, "a moment of two products, a root and a quotient"}},
       .cases = rmsprop_cases,
       .typical = {.attrs = rmsprop_attrs(1e-8F, 0, 0, 0), .inputs = typical_update(1)},
       .largest = kLargestSquared,
       .request = rmsprop_request},
  };
}

}  // namespace gpunn::ops::rmsprop
