#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

void clip_norm(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_clip_norm_attrs>();
  const double norm = call.in(1).at(0);
  double factor = static_cast<double>(attrs.max_norm) / (norm + static_cast<double>(attrs.epsilon));
  if (attrs.rescale == 0) factor = std::min(factor, 1.0);
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    call.out()[i] = std::isfinite(norm) ? factor * call.in(0)[i] : call.in(0)[i];
  }
}

void l1_gradient(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_l1_attrs>();
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    const double w = call.in(1)[i];
    const double sign = w > 0 ? 1 : w < 0 ? -1 : 0;
    const double weight = static_cast<int64_t>(i) < attrs.decayed ? attrs.weight : 0.0;
    call.out()[i] = call.in(0)[i] + weight * sign;
  }
}

}  // namespace

std::vector<OracleEntry> regularization_oracle() {
  return {{GPUNN_OP_CLIP_NORM, clip_norm}, {GPUNN_OP_L1_GRADIENT, l1_gradient}};
}

}  // namespace gpunn::conformance
