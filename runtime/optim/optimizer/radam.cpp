// Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020, algorithm 2; the epsilon and the bound
// of 5 are PyTorch's.
#include <cmath>

#include "optim/optimizer/adam_update.hpp"
#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

using graph::Expressions;
using graph::ValueId;

constexpr double kTractable = 5;  // the length of the average from which the variance is known well enough

std::vector<ValueId> radam_formula(Expressions& e, const OptimizerConfig& config, const UpdateInputs& in) {
  const RAdam& radam = std::get<RAdam>(config.kind);
  const auto beta1 = static_cast<float>(radam.beta1), beta2 = static_cast<float>(radam.beta2);
  const double longest = 2 / (1.0 - beta2) - 1;
  const auto number = [&](double value) { return e.constant(value); };
  const auto plus = [&](ValueId x, double value) { return e.add(x, number(value)); };

  ValueId g = in.gradient;
  if (in.decay.weight != 0) g = e.add(g, e.of_first(e.scaled(in.weights, in.decay.weight), in.decay.elements));
  const ValueId m = e.moving_average(in.states.at(0), g, beta1);
  const ValueId v = e.moving_average(in.states.at(1), e.mul(g, g), beta2);

  const ValueId t = plus(e.to_f32(in.step), 1);
  const ValueId rest = e.one_minus_power(beta2, t);
  const ValueId mean = e.div(m, e.one_minus_power(beta1, t));
  // longest - 2 t beta2^t / (1 - beta2^t)
  const ValueId length = e.sub(number(longest), e.mul(e.scaled(t, 2), e.div(e.sub(number(1), rest), rest)));
  const ValueId known = e.less(number(kTractable), length);
  const ValueId tractable = e.maximum(length, number(kTractable));  // below it no root is taken
  const ValueId rectifier = e.sqrt(e.scaled(e.div(e.mul(plus(tractable, -4), plus(tractable, -2)), tractable),
                                            longest / ((longest - 4) * (longest - 2))));
  const ValueId adaptive = e.div(e.mul(rectifier, e.sqrt(rest)), plus(e.sqrt(v), radam.epsilon));
  const ValueId step = e.mul(mean, e.select(known, adaptive, number(1)));
  return {e.sub(in.weights, e.mul(step, in.rate)), m, v};
}

}  // namespace

OptimizerRow radam() {
  return {.kind = optimizer_kind<RAdam>("radam", weight_decay_key(), betas_key<RAdam>(), epsilon_key<RAdam>()),
          .formula = radam_formula,
          .states = adam_states};
}

}  // namespace gpunn::training
