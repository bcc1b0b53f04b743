#include <gpunn/ops.h>

#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// How many classes come before the label: a larger x, or an equal one and a smaller index.
int64_t rank_of(const Values& x, int64_t row, int64_t classes, int64_t label) {
  int64_t rank = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double value = x[at(row * classes + c)], own = x[at(row * classes + label)];
    if (std::isnan(value)) return classes;
    if (value > own || (value == own && c < label)) ++rank;
  }
  return rank;
}

void metrics_accumulate(OracleCall& call) {
  const auto count = static_cast<int64_t>(call.in(1).at(0));
  call.require(count >= 0 && count <= call.in_dim(0, 0), "a count of at most N");
  Values& totals = call.out();
  totals = call.in(2);
  for (int64_t n = 0; n < count; ++n) {
    totals[0] += call.in(0)[at(n)];
    if (call.inputs() > 3) {
      const int64_t classes = call.in_dim(3, 1);
      const int64_t rank = rank_of(call.in(3), n, classes, static_cast<int64_t>(call.in(4)[at(n)]));
      totals[1] += rank == 0 ? 1 : 0;
      totals[2] += rank < 5 ? 1 : 0;
    }
  }
  totals[3] += static_cast<double>(count);
}

}  // namespace

std::vector<OracleEntry> metrics_oracle() { return {{GPUNN_OP_METRICS_ACCUMULATE, metrics_accumulate}}; }

}  // namespace gpunn::conformance
