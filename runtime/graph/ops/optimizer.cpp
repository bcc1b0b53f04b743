// SGD_UPDATE, ADAM_UPDATE, RMSPROP_UPDATE, ADAGRAD_UPDATE, LION_UPDATE and LARS_UPDATE.
#include <gpunn/ops.h>

#include <cmath>
#include <sstream>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

double sgd_flops(const OpSignature& s) { return 6.0 * static_cast<double>(s.inputs[0].elements()); }
double adam_flops(const OpSignature& s) { return 14.0 * static_cast<double>(s.inputs[0].elements()); }
double rmsprop_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }
double adagrad_flops(const OpSignature& s) { return 8.0 * static_cast<double>(s.inputs[0].elements()); }
double lion_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }
double lars_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_sgd(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_sgd_attrs>();
  std::ostringstream text;
  text << "momentum " << a.momentum << (a.nesterov != 0 ? " nesterov" : "") << ", weight decay " << a.weight_decay;
  return text.str();
}

std::string describe_adam(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_adam_attrs>();
  std::ostringstream text;
  text << "betas " << a.beta1 << " " << a.beta2 << ", weight decay " << a.weight_decay
       << (a.decoupled != 0 ? " decoupled" : "");
  return text.str();
}

std::string describe_rmsprop(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_rmsprop_attrs>();
  std::ostringstream text;
  text << "alpha " << a.alpha << ", momentum " << a.momentum << ", weight decay " << a.weight_decay;
  return text.str();
}

std::string describe_adagrad(const Attributes& attrs) {
  std::ostringstream text;
  text << "weight decay " << attrs.as<gpunn_adagrad_attrs>().weight_decay;
  return text.str();
}

std::string describe_lion(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_lion_attrs>();
  std::ostringstream text;
  text << "betas " << a.beta1 << " " << a.beta2 << ", weight decay " << a.weight_decay;
  return text.str();
}

std::string describe_lars(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_lars_attrs>();
  std::ostringstream text;
  text << "trust " << a.trust << ", momentum " << a.momentum << ", weight decay " << a.weight_decay;
  return text.str();
}

// g + weight_decay w, for the first `decayed`.
template <class Attrs>
ValueId decayed_gradient(Composition& c, const Attrs& a) {
  if (a.weight_decay == 0) return c.in(1);
  return c.add(c.in(1), c.of_first(c.scaled(c.in(0), a.weight_decay), a.decayed));
}

// w (1 - lr weight_decay), likewise.
template <class Attrs>
ValueId shrunk_weights(Composition& c, const Attrs& a) {
  if (a.weight_decay == 0) return c.in(0);
  return c.sub(c.in(0), c.of_first(c.mul(c.scaled(c.in(0), a.weight_decay), c.in(2)), a.decayed));
}

// share * old + (1 - share) * fresh
ValueId moving_average(Composition& c, ValueId old, ValueId fresh, float share) {
  return c.add(c.scaled(old, share), c.mul(fresh, c.constant(1.0 - share)));
}

ValueId stepped(Composition& c, ValueId w, ValueId step) { return c.sub(w, c.mul(step, c.in(2))); }

// x / (sqrt(square) + epsilon)
ValueId over_root(Composition& c, ValueId x, ValueId square, float epsilon) {
  return c.div(x, c.add(c.sqrt(square), c.constant(epsilon)));
}

std::vector<ValueId> sgd(Composition& c) {
  const auto a = c.attrs<gpunn_sgd_attrs>();
  const ValueId g = decayed_gradient(c, a);
  if (a.momentum == 0) return {stepped(c, c.in(0), g)};
  const ValueId velocity = c.add(c.scaled(c.in(3), a.momentum), g);
  const ValueId step = a.nesterov != 0 ? c.add(g, c.scaled(velocity, a.momentum)) : velocity;
  return {stepped(c, c.in(0), step), velocity};
}

// 1 - beta^t without the loss of digits where that is close to 0: with T = tanh(t log(beta) / 2), 2 T / (T - 1).
ValueId bias_correction(Composition& c, ValueId t, float beta) {
  const ValueId tangent = c.tanh(c.mul(t, c.constant(std::log(double{beta}) / 2)));
  return c.div(c.scaled(tangent, 2), c.sub(tangent, c.constant(1)));
}

std::vector<ValueId> adam(Composition& c) {
  const auto a = c.attrs<gpunn_adam_attrs>();
  const ValueId t = c.add(c.to_f32(c.in(3)), c.constant(1));
  const bool decoupled = a.decoupled != 0;
  const ValueId g = decoupled ? c.in(1) : decayed_gradient(c, a);
  const ValueId w = decoupled ? shrunk_weights(c, a) : c.in(0);
  const ValueId m = moving_average(c, c.in(4), g, a.beta1), v = moving_average(c, c.in(5), c.mul(g, g), a.beta2);
  const ValueId mean = a.beta1 == 0 ? m : c.div(m, bias_correction(c, t, a.beta1));
  const ValueId square = a.beta2 == 0 ? v : c.div(v, bias_correction(c, t, a.beta2));
  return {stepped(c, w, over_root(c, mean, square, a.epsilon)), m, v};
}

std::vector<ValueId> rmsprop(Composition& c) {
  const auto a = c.attrs<gpunn_rmsprop_attrs>();
  const ValueId g = decayed_gradient(c, a), square = moving_average(c, c.in(3), c.mul(g, g), a.alpha);
  const ValueId step = over_root(c, g, square, a.epsilon);
  if (a.momentum == 0) return {stepped(c, c.in(0), step), square};
  const ValueId velocity = c.add(c.scaled(c.in(4), a.momentum), step);
  return {stepped(c, c.in(0), velocity), square, velocity};
}

std::vector<ValueId> adagrad(Composition& c) {
  const auto a = c.attrs<gpunn_adagrad_attrs>();
  const ValueId g = decayed_gradient(c, a), sum = c.add(c.in(3), c.mul(g, g));
  return {stepped(c, c.in(0), over_root(c, g, sum, a.epsilon)), sum};
}

std::vector<ValueId> lion(Composition& c) {
  const auto a = c.attrs<gpunn_lion_attrs>();
  const ValueId average = moving_average(c, c.in(3), c.in(1), a.beta1);
  const ValueId direction = c.select(c.equal(average, average), c.sign(average), average);  // NaN stays NaN
  return {stepped(c, shrunk_weights(c, a), direction), moving_average(c, c.in(3), c.in(1), a.beta2)};
}

}  // namespace

std::vector<OpInfo> optimizer_ops() {
  return {
      {.id = GPUNN_OP_SGD_UPDATE, .decompose = sgd, .flops = sgd_flops, .describe = describe_sgd},
      {.id = GPUNN_OP_ADAM_UPDATE, .decompose = adam, .flops = adam_flops, .describe = describe_adam},
      {.id = GPUNN_OP_RMSPROP_UPDATE, .decompose = rmsprop, .flops = rmsprop_flops, .describe = describe_rmsprop},
      {.id = GPUNN_OP_ADAGRAD_UPDATE, .decompose = adagrad, .flops = adagrad_flops, .describe = describe_adagrad},
      {.id = GPUNN_OP_LION_UPDATE, .decompose = lion, .flops = lion_flops, .describe = describe_lion},
      {.id = GPUNN_OP_LARS_UPDATE, .flops = lars_flops, .describe = describe_lars},
  };
}

}  // namespace gpunn::graph
