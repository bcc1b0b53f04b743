#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

void reduce(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_reduce_attrs>();
  const Shape& shape = call.in_type(0).shape;
  Values& y = call.out();
  std::vector<int64_t> count(y.size(), 0);

  for (int64_t i = 0; i < static_cast<int64_t>(call.in(0).size()); ++i) {
    // The element's index, without its reduced dimensions, is where it goes.
    int64_t rest = i, output = 0, step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const int64_t index = rest % shape[d];
      rest /= shape[d];
      if ((attrs.axes >> d & 1) == 0) {
        output += index * step;
        step *= shape[d];
      }
    }
    const double x = call.in(0)[at(i)];
    double& target = y.at(at(output));
    if (count[at(output)]++ == 0) {
      target = x;
    } else {
      target = attrs.kind == GPUNN_REDUCE_MAX ? std::max(target, x) : target + x;
    }
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (attrs.kind == GPUNN_REDUCE_SUM && count[i] == 0) y[i] = 0;
    if (attrs.kind == GPUNN_REDUCE_MEAN) y[i] /= static_cast<double>(count[i]);
  }
}

void mean_rows(OracleCall& call) {
  const auto count = static_cast<int64_t>(call.in(1).at(0));
  call.require(count >= 0 && count <= call.in_dim(0, 0), "a count of at most N");
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += call.in(0)[at(i)];
  call.out()[0] = count == 0 ? 0 : sum / static_cast<double>(count);
}

void mean_rows_backward(OracleCall& call) {
  const auto count = static_cast<int64_t>(call.in(1).at(0));
  for (int64_t i = 0; i < call.out_dim(0, 0); ++i) {
    call.out()[at(i)] = i < count ? call.in(0).at(0) / static_cast<double>(count) : 0;
  }
}

void norm(OracleCall& call) {
  double sum = 0;
  for (const double x : call.in(0)) sum += x * x;
  call.out().at(0) = std::sqrt(sum);
}

}  // namespace

std::vector<OracleEntry> reduction_oracle() {
  return {{GPUNN_OP_REDUCE, reduce},
          {GPUNN_OP_MEAN_ROWS, mean_rows},
          {GPUNN_OP_MEAN_ROWS_BACKWARD, mean_rows_backward},
          {GPUNN_OP_NORM, norm}};
}

}  // namespace gpunn::conformance
