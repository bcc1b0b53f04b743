#include <gpunn/ops.h>

#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

void layer_norm(OracleCall& call) {
  const double epsilon = call.attrs<gpunn_layer_norm_attrs>().epsilon;
  const int64_t rows = call.in_dim(0, 0), columns = call.in_dim(0, 1);
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0, squares = 0;
    for (int64_t d = 0; d < columns; ++d) sum += x[at(n * columns + d)];
    const double mean = sum / static_cast<double>(columns);
    for (int64_t d = 0; d < columns; ++d) squares += std::pow(x[at(n * columns + d)] - mean, 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (int64_t d = 0; d < columns; ++d) {
      call.out(0)[at(n * columns + d)] = (x[at(n * columns + d)] - mean) * rstd * gamma[at(d)] + beta[at(d)];
    }
    call.out(1)[at(n)] = mean;
    call.out(2)[at(n)] = rstd;
  }
}

// With h = (x - mean) rstd, g = dy gamma and means over a row, dx = rstd (g - mean(g) - h mean(g h)).
void layer_norm_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), columns = call.in_dim(0, 1);
  const Values &dy = call.in(0), &x = call.in(1), &gamma = call.in(2), &mean = call.in(3), &rstd = call.in(4);
  Values &dgamma = call.out(1), &dbeta = call.out(2);
  dgamma.assign(dgamma.size(), 0);
  dbeta.assign(dbeta.size(), 0);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0, product = 0;
    for (int64_t d = 0; d < columns; ++d) {
      const std::size_t i = at(n * columns + d);
      const double h = (x[i] - mean[at(n)]) * rstd[at(n)];
      sum += dy[i] * gamma[at(d)];
      product += dy[i] * gamma[at(d)] * h;
      dgamma[at(d)] += dy[i] * h;
      dbeta[at(d)] += dy[i];
    }
    for (int64_t d = 0; d < columns; ++d) {
      const std::size_t i = at(n * columns + d);
      const double h = (x[i] - mean[at(n)]) * rstd[at(n)];
      call.out(0)[i] = rstd[at(n)] * (dy[i] * gamma[at(d)] - (sum + h * product) / static_cast<double>(columns));
    }
  }
}

}  // namespace

std::vector<OracleEntry> layer_norm_oracle() {
  return {{GPUNN_OP_LAYER_NORM, layer_norm}, {GPUNN_OP_LAYER_NORM_BACKWARD, layer_norm_backward}};
}

}  // namespace gpunn::conformance
