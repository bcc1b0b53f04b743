#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

void log_softmax_row(const Values& x, Values& y, int64_t row, int64_t classes) {
  double largest = x[at(row * classes)];
  for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, x[at(row * classes + c)]);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[at(row * classes + c)] - largest);
  for (int64_t c = 0; c < classes; ++c) y[at(row * classes + c)] = x[at(row * classes + c)] - largest - std::log(sum);
}

namespace {

void log_softmax(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) log_softmax_row(call.in(0), call.out(), n, classes);
}

void softmax(OracleCall& call) {
  log_softmax(call);
  for (double& y : call.out()) y = std::exp(y);
}

void softmax_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += dy[at(n * classes + c)] * y[at(n * classes + c)];
    for (int64_t c = 0; c < classes; ++c) {
      call.out()[at(n * classes + c)] = y[at(n * classes + c)] * (dy[at(n * classes + c)] - sum);
    }
  }
}

void log_softmax_backward(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += dy[at(n * classes + c)];
    for (int64_t c = 0; c < classes; ++c) {
      call.out()[at(n * classes + c)] = dy[at(n * classes + c)] - std::exp(y[at(n * classes + c)]) * sum;
    }
  }
}

}  // namespace

std::vector<OracleEntry> softmax_oracle() {
  return {{GPUNN_OP_SOFTMAX, softmax},
          {GPUNN_OP_SOFTMAX_BACKWARD, softmax_backward},
          {GPUNN_OP_LOG_SOFTMAX, log_softmax},
          {GPUNN_OP_LOG_SOFTMAX_BACKWARD, log_softmax_backward}};
}

}  // namespace gpunn::conformance
