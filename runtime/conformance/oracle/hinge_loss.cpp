#include <gpunn/ops.h>

#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// By how much class c of row n comes too near its label's score; below 0 where it does not.
double shortfall(const OracleCall& call, const Values& x, int64_t row, int64_t label, int64_t c) {
  return static_cast<double>(call.attrs<gpunn_hinge_attrs>().margin) - x[at(row + label)] + x[at(row + c)];
}

void hinge_loss(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_hinge_attrs>();
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call, call.in(1), n, classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const double short_by = shortfall(call, call.in(0), n * classes, label, c);
      if (c != label && !(short_by <= 0)) sum += attrs.power == 2 ? short_by * short_by : short_by;
    }
    call.out()[at(n)] = sum / static_cast<double>(classes);
  }
}

void hinge_loss_backward(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_hinge_attrs>();
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call, call.in(2), n, classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (c == label) continue;
      const double short_by = shortfall(call, call.in(1), n * classes, label, c);
      double slope = 0;
      if (!(short_by <= 0)) slope = (attrs.power == 2 ? 2 * short_by : 1) / static_cast<double>(classes);
      call.out()[at(n * classes + c)] = call.in(0)[at(n)] * slope;
      sum += slope;
    }
    call.out()[at(n * classes + label)] = -call.in(0)[at(n)] * sum;
  }
}

}  // namespace

std::vector<OracleEntry> hinge_loss_oracle() {
  return {{GPUNN_OP_HINGE_LOSS, hinge_loss}, {GPUNN_OP_HINGE_LOSS_BACKWARD, hinge_loss_backward}};
}

}  // namespace gpunn::conformance
