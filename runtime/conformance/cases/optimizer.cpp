#include <gpunn/ops.h>

#include <cmath>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<int64_t> kParameterCounts = {1, 7, 64, 1031, 70001};

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

Case adagrad(int64_t n, float decay, int64_t first) {
  const gpunn_adagrad_attrs attrs{
      .struct_size = 0, .epsilon = 1e-6F, .weight_decay = decay, .reserved = 0, .decayed = first};
  return make_case({.op = GPUNN_OP_ADAGRAD_UPDATE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {weights(n), f32({n}), rate(0.05), f32({n}, uniform(0, 0.5))},
                    .note = note(first)});
}

// Where neither moment nor gradient is there the weight stays; a NaN shows in the weight at once.
Case lion(int64_t n, float decay, int64_t first, bool with_nan = false) {
  const gpunn_lion_attrs attrs{
      .struct_size = 0, .beta1 = 0.9F, .beta2 = 0.99F, .weight_decay = decay, .decayed = first};
  const Generator g = with_nan ? sometimes(std::nan(""), 5, uniform()) : sometimes(0, 2, uniform());
  return make_case({.op = GPUNN_OP_LION_UPDATE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {weights(n), f32({n}, g), rate(0.05), f32({n}, sometimes(0, 2, uniform(-0.1, 0.1)))},
                    .note = note(first) + (with_nan ? ", NaN" : "")});
}

enum class Lacking { nothing, weights, gradients };

// `offset` as it is in device memory, the last beyond the elements where they are not all to be in a part.
Case lars(int64_t n, float momentum, float decay, int64_t first, std::vector<double> offset, const std::string& what,
          Lacking lacking = Lacking::nothing) {
  const gpunn_lars_attrs attrs{.struct_size = 0,
                               .momentum = momentum,
                               .weight_decay = decay,
                               .trust = 0.02F,
                               .epsilon = 1e-6F,
                               .reserved = 0,
                               .decayed = first};
  const auto parts = static_cast<int64_t>(offset.size());
  return make_case({.op = GPUNN_OP_LARS_UPDATE,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32({n}, lacking == Lacking::weights ? constant(0) : uniform()),
                               f32({n}, lacking == Lacking::gradients ? constant(0) : uniform()), rate(0.3), f32({n}),
                               i64({parts}, listed(std::move(offset)))},
                    .note = note(first) + ", " + what});
}

void add_lars(std::vector<Case>& cases, int64_t n) {
  const auto all = static_cast<double>(n), first = static_cast<double>(decayed(n));
  cases.push_back(lars(n, 0.9F, 0.1F, decayed(n), {0, std::floor(first / 2), first, all}, "three parts"));
  cases.push_back(lars(n, 0, 0, n, {0, all}, "one part"));
  cases.push_back(lars(n, 0.9F, 0.1F, 0, {0, 0, all, all}, "empty parts"));
  cases.push_back(lars(n, 0.9F, 0.1F, n, {-7, std::floor(first / 2), all + 9}, "offsets outside"));
  cases.push_back(lars(n, 0.9F, 0.1F, n, {0, all}, "weights of 0", Lacking::weights));
  cases.push_back(lars(n, 0.9F, 0.1F, n, {0, all}, "gradients of 0", Lacking::gradients));
}

}  // namespace

std::vector<Case> optimizer_cases() {
  std::vector<Case> cases;
  for (const int64_t n : kParameterCounts) {
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
    cases.push_back(adagrad(n, 0, 0));
    cases.push_back(adagrad(n, 0.1F, decayed(n)));
    cases.push_back(lion(n, 0, 0));
    cases.push_back(lion(n, 0.1F, decayed(n)));
    add_lars(cases, n);
  }
  cases.push_back(sgd(0, 0.9F, false, 0.1F, 0));
  cases.push_back(lion(100, 0.1F, 50, true));
  cases.push_back(adagrad(0, 0.1F, 0));
  cases.push_back(lion(0, 0.1F, 0));
  cases.push_back(lars(0, 0.9F, 0.1F, 0, {0, 0}, "no element"));
  cases.push_back(lars(7, 0.9F, 0.1F, 7, {0}, "no part"));
  return cases;
}

}  // namespace gpunn::conformance
