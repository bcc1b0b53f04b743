#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

double bce(double x, double target, double /*delta*/) {
  return std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x)));
}

double bce_slope(double x, double target, double /*delta*/) { return 1 / (1 + std::exp(-x)) - target; }

double huber(double x, double target, double delta) {
  const double d = x - target;
  return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
}

double huber_slope(double x, double target, double delta) { return std::clamp(x - target, -delta, delta); }

using Term = double (*)(double x, double target, double delta);

template <Term term>
void forward(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0);
  const int64_t size = rows == 0 ? 0 : static_cast<int64_t>(call.in(0).size()) / rows;
  const double delta = call.attrs<gpunn_huber_attrs>().delta;
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t i = n * size; i < (n + 1) * size; ++i) sum += term(call.in(0)[at(i)], call.in(1)[at(i)], delta);
    call.out()[at(n)] = sum / static_cast<double>(size);
  }
}

template <Term slope>
void backward(OracleCall& call) {
  const int64_t rows = call.in_dim(1, 0);
  const int64_t size = rows == 0 ? 0 : static_cast<int64_t>(call.in(1).size()) / rows;
  const double delta = call.attrs<gpunn_huber_attrs>().delta;
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = n * size; i < (n + 1) * size; ++i) {
      call.out()[at(i)] =
          call.in(0)[at(n)] * slope(call.in(1)[at(i)], call.in(2)[at(i)], delta) / static_cast<double>(size);
    }
  }
}

}  // namespace

std::vector<OracleEntry> pointwise_loss_oracle() {
  return {{GPUNN_OP_BCE_LOGITS_LOSS, forward<bce>},
          {GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, backward<bce_slope>},
          {GPUNN_OP_HUBER_LOSS, forward<huber>},
          {GPUNN_OP_HUBER_LOSS_BACKWARD, backward<huber_slope>}};
}

}  // namespace gpunn::conformance
