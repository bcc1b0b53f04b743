#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

void sgd_update(OracleCall& call) {
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

void adam_update(OracleCall& call) {
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

void rmsprop_update(OracleCall& call) {
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

void adagrad_update(OracleCall& call) {
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

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }  // of NaN, NaN

void lion_update(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_lion_attrs>();
  const double lr = call.in(2).at(0), beta1 = attrs.beta1, beta2 = attrs.beta2;
  for (std::size_t i = 0; i < call.in(0).size(); ++i) {
    const double w = call.in(0)[i], g = call.in(1)[i], m = call.in(3)[i];
    const double decay = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight_decay : 0.0;
    call.out(0)[i] = w * (1 - lr * decay) - lr * sign(beta1 * m + (1 - beta1) * g);
    call.out(1)[i] = beta2 * m + (1 - beta2) * g;
  }
}

double norm(const Values& x, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
  return std::sqrt(sum);
}

void lars_update(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_lars_attrs>();
  const double lr = call.in(2).at(0);
  const Values &w = call.in(0), &g = call.in(1), &velocity = call.in(3), &offset = call.in(4);
  const auto place = [&](std::size_t i) {
    return static_cast<int64_t>(std::clamp(offset[i], 0.0, static_cast<double>(w.size())));
  };
  call.out(0) = w;
  call.out(1) = velocity;
  for (std::size_t part = 0; part + 1 < offset.size(); ++part) {
    const int64_t begin = place(part), end = place(part + 1);
    const double w_norm = norm(w, begin, end), g_norm = norm(g, begin, end);
    double rate = lr;
    if (begin < attrs.decayed && w_norm != 0 && g_norm != 0) {
      rate = lr * attrs.trust * w_norm / (g_norm + attrs.weight_decay * w_norm + attrs.epsilon);
    }
    for (int64_t at = begin; at < end; ++at) {
      const auto i = static_cast<std::size_t>(at);
      const double decay = at < attrs.decayed ? attrs.weight_decay : 0.0;
      const double step = attrs.momentum * velocity[i] + rate * (g[i] + decay * w[i]);
      call.out(1)[i] = step;
      call.out(0)[i] = w[i] - step;
    }
  }
}

}  // namespace

std::vector<OracleEntry> optimizer_oracle() {
  return {{GPUNN_OP_SGD_UPDATE, sgd_update},         {GPUNN_OP_ADAM_UPDATE, adam_update},
          {GPUNN_OP_RMSPROP_UPDATE, rmsprop_update}, {GPUNN_OP_ADAGRAD_UPDATE, adagrad_update},
          {GPUNN_OP_LION_UPDATE, lion_update},       {GPUNN_OP_LARS_UPDATE, lars_update}};
}

}  // namespace gpunn::conformance
