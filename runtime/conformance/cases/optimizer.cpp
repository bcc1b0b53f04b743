#include <gpunn/ops.h>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<int64_t> kSizes = {1, 7, 64, 1031, 70001};

// Of the elements, about two in three decay; some weights are 0, so that the step itself shows.
int64_t decayed(int64_t n) { return (2 * n + 2) / 3; }
InputSpec weights(int64_t n) { return f32({n}, sometimes(0, 3, uniform())); }
InputSpec rate(double lr) { return f32({}, constant(lr)); }

std::string note(int64_t first) { return std::to_string(first) + " decay"; }

Case sgd(int64_t n, float momentum, bool nesterov, float decay, int64_t first) {
  const gpunn_sgd_attrs attrs{
      .struct_size = 0, .momentum = momentum, .weight_decay = decay, .nesterov = nesterov, .decayed = first};
  std::vector<InputSpec> inputs{weights(n), f32({n}), rate(0.3)};
  if (momentum != 0) inputs.push_back(f32({n}));
  return make_case({.op = GPUNN_OP_SGD_UPDATE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = std::move(inputs),
                    .note = note(first)});
}

Case adam(int64_t n, int64_t step, bool decoupled, float decay, int64_t first) {
  const gpunn_adam_attrs attrs{.struct_size = 0,
                               .beta1 = 0.9F,
                               .beta2 = 0.999F,
                               .epsilon = 1e-8F,
                               .weight_decay = decay,
                               .decoupled = decoupled,
                               .decayed = first};
  const bool fresh = step == 0;  // as training begins: no moments yet
  return make_case(
      {.op = GPUNN_OP_ADAM_UPDATE,
       .attrs = graph::Attributes::of(attrs),
       .inputs = {weights(n), f32({n}), rate(0.05), i64({}, constant(static_cast<double>(step))),
                  f32({n}, fresh ? constant(0) : uniform(-0.1, 0.1)), f32({n}, fresh ? constant(0) : uniform(0, 0.01))},
       .note = note(first) + ", step " + std::to_string(step)});
}

Case rmsprop(int64_t n, float momentum, float decay, int64_t first) {
  const gpunn_rmsprop_attrs attrs{.struct_size = 0,
                                  .alpha = 0.99F,
                                  .epsilon = 1e-6F,
                                  .momentum = momentum,
                                  .weight_decay = decay,
                                  .reserved = 0,
                                  .decayed = first};
  std::vector<InputSpec> inputs{weights(n), f32({n}), rate(0.05), f32({n}, uniform(0, 0.5))};
  if (momentum != 0) inputs.push_back(f32({n}));
  return make_case({.op = GPUNN_OP_RMSPROP_UPDATE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = std::move(inputs),
                    .note = note(first)});
}

}  // namespace

std::vector<Case> optimizer_cases() {
  std::vector<Case> cases;
  for (const int64_t n : kSizes) {
    cases.push_back(sgd(n, 0, false, 0, 0));
    cases.push_back(sgd(n, 0, false, 0.1F, decayed(n)));
    cases.push_back(sgd(n, 0.9F, false, 0.1F, decayed(n)));
    cases.push_back(sgd(n, 0.9F, true, 0.1F, n));
    cases.push_back(adam(n, 0, false, 0, 0));
    cases.push_back(adam(n, 1, false, 0.1F, decayed(n)));
    cases.push_back(adam(n, 2, true, 0.1F, decayed(n)));
    cases.push_back(adam(n, 100000, true, 0.1F, n));
    cases.push_back(rmsprop(n, 0, 0, 0));
    cases.push_back(rmsprop(n, 0, 0.1F, decayed(n)));
    cases.push_back(rmsprop(n, 0.8F, 0.1F, decayed(n)));
  }
  cases.push_back(sgd(0, 0.9F, false, 0.1F, 0));
  return cases;
}

}  // namespace gpunn::conformance
