// Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", 1989, with steps of a fixed
// length: torch.optim.LBFGS without a line search and with max_iter=1, so that each step needs one gradient. The bounds
// of curvature and slope are PyTorch's. A gradient that is not finite takes half of the last step back.
#include <cstddef>

#include "training/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

using graph::Expressions;
using graph::ValueId;

constexpr double kLeastCurvature = 1e-10;  // of a pair that is kept
constexpr double kLeastSlope = 1e-9;       // of a direction that is taken
constexpr double kLargest = 3e38;          // of finite sums

// Some of the last steps and the changes of the gradient on them, the oldest first.
struct History {
  std::vector<ValueId> steps, changes;
};

ValueId dot(Expressions& e, ValueId a, ValueId b) {
  const ValueId product = e.mul(a, b);
  return e.sum(product, e.all(product), false);
}

// The kept pairs with another behind them, where it is good.
std::vector<ValueId> advanced(Expressions& e, std::vector<ValueId> kept, ValueId next, ValueId good) {
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i] = e.select(good, i + 1 < kept.size() ? kept[i + 1] : next, kept[i]);
  }
  return kept;
}

// Minus the inverse Hessian times the gradient, by the two-loop recursion. Pairs of zeros count for nothing.
ValueId direction_of(Expressions& e, const History& history, ValueId gradient) {
  const ValueId zero = e.constant(0), one = e.constant(1);
  const std::size_t count = history.steps.size();
  std::vector<ValueId> inverse(count), share(count);
  ValueId curvature = graph::kNoValue, there = graph::kNoValue;
  ValueId q = e.scaled(gradient, -1);
  for (std::size_t i = count; i-- > 0;) {
    const ValueId of_pair = dot(e, history.steps[i], history.changes[i]);
    const ValueId is_pair = e.less(zero, of_pair);
    inverse[i] = e.select(is_pair, e.div(one, e.select(is_pair, of_pair, one)), zero);
    if (i + 1 == count) {
      curvature = of_pair;
      there = is_pair;
    }
    share[i] = e.mul(inverse[i], dot(e, history.steps[i], q));
    q = e.sub(q, e.mul(history.changes[i], share[i]));
  }
  const ValueId last = history.changes.back();
  const ValueId scale = e.select(there, e.div(curvature, e.select(there, dot(e, last, last), one)), one);
  ValueId direction = e.mul(q, scale);
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId back = e.mul(inverse[i], dot(e, history.changes[i], direction));
    direction = e.add(direction, e.mul(history.steps[i], e.sub(share[i], back)));
  }
  return direction;
}

std::vector<ValueId> lbfgs_formula(Expressions& e, const OptimizerConfig& config, const UpdateInputs& in) {
  const auto count = static_cast<std::ptrdiff_t>(std::get<Lbfgs>(config.kind).history);
  const auto first_change = in.states.begin() + 2 + count;
  const ValueId last_gradient = in.states.at(0), last_step = in.states.at(1);
  const ValueId zero = e.constant(0), one = e.constant(1);

  ValueId g = in.gradient;
  if (in.decay.weight != 0) g = e.add(g, e.of_first(e.scaled(in.weights, in.decay.weight), in.decay.elements));
  const ValueId size = e.sum(e.maximum(g, e.scaled(g, -1)), e.all(g), false);
  const ValueId finite = e.less_equal(size, e.constant(kLargest));

  const ValueId change = e.sub(g, last_gradient);
  const ValueId good = e.mul(finite, e.less(e.constant(kLeastCurvature), dot(e, change, last_step)));
  const History history{advanced(e, {in.states.begin() + 2, first_change}, last_step, good),
                        advanced(e, {first_change, in.states.end()}, change, good)};

  const ValueId direction = direction_of(e, history, g);
  const ValueId first = e.equal(e.to_f32(in.step), zero);
  const ValueId rate = e.mul(in.rate, e.select(first, e.minimum(one, e.div(one, size)), one));
  const ValueId falls = e.less_equal(dot(e, g, direction), e.constant(-kLeastSlope));
  const ValueId forward = e.select(falls, e.mul(direction, rate), zero);
  const ValueId half = e.scaled(last_step, 0.5);

  std::vector<ValueId> made = {e.add(in.weights, e.select(finite, forward, e.scaled(half, -1))),
                               e.select(finite, g, last_gradient), e.select(finite, forward, half)};
  made.insert(made.end(), history.steps.begin(), history.steps.end());
  made.insert(made.end(), history.changes.begin(), history.changes.end());
  return made;
}

std::vector<std::string> lbfgs_states(const OptimizerConfig& config) {
  std::vector<std::string> states = {"last_gradient", "last_step"};
  for (const char* what : {"steps.", "changes."}) {
    for (int64_t i = 0; i < std::get<Lbfgs>(config.kind).history; ++i) states.push_back(what + std::to_string(i));
  }
  return states;
}

}  // namespace

OptimizerRow lbfgs() {
  return {.kind = optimizer_kind<Lbfgs>(
              "lbfgs", weight_decay_key(),
              config::integer("history", &Lbfgs::history, config::between(1, 100),
                              "How many of the last steps describe the curvature; each keeps two numbers a weight.")),
          .formula = lbfgs_formula,
          .states = lbfgs_states};
}

}  // namespace gpunn::training
