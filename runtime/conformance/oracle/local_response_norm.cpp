#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// A tensor [N,C,...] as [images][channels][inner].
struct Planes {
  int64_t images, channels, inner;

  std::size_t element(int64_t n, int64_t c, int64_t i) const { return at((n * channels + c) * inner + i); }
};

Planes planes_of(const OracleCall& call) {
  Planes planes{call.in_dim(0, 0), call.in_dim(0, 1), 1};
  for (std::size_t i = 2; i < call.in_type(0).shape.size(); ++i) planes.inner *= call.in_dim(0, i);
  return planes;
}

// s[c] = k + alpha / size * sum of x^2 over the channels from c - size / 2 to c + (size - 1) / 2.
Values denominators(const OracleCall& call, const Values& x) {
  const auto attrs = call.attrs<gpunn_local_response_norm_attrs>();
  const Planes planes = planes_of(call);
  Values s(x.size());
  for (int64_t n = 0; n < planes.images; ++n) {
    for (int64_t c = 0; c < planes.channels; ++c) {
      const int64_t first = std::max<int64_t>(c - attrs.size / 2, 0);
      const int64_t last = std::min<int64_t>(c + (attrs.size - 1) / 2, planes.channels - 1);
      for (int64_t i = 0; i < planes.inner; ++i) {
        double sum = 0;
        for (int64_t j = first; j <= last; ++j) sum += x[planes.element(n, j, i)] * x[planes.element(n, j, i)];
        s[planes.element(n, c, i)] = attrs.k + static_cast<double>(attrs.alpha) / attrs.size * sum;
      }
    }
  }
  return s;
}

void local_response_norm(OracleCall& call) {
  const double beta = call.attrs<gpunn_local_response_norm_attrs>().beta;
  const Values& x = call.in(0);
  const Values s = denominators(call, x);
  for (std::size_t i = 0; i < x.size(); ++i) call.out()[i] = x[i] * std::pow(s[i], -beta);
}

// Every y[c] in whose sum x[j] is, and that are the c from j - (size - 1) / 2 to j + size / 2, sends something to
// dx[j].
void local_response_norm_backward(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_local_response_norm_attrs>();
  const double beta = attrs.beta, alpha = attrs.alpha;
  const Planes planes = planes_of(call);
  const Values &dy = call.in(0), &x = call.in(1);
  const Values s = denominators(call, x);
  for (int64_t n = 0; n < planes.images; ++n) {
    for (int64_t j = 0; j < planes.channels; ++j) {
      const int64_t first = std::max<int64_t>(j - (attrs.size - 1) / 2, 0);
      const int64_t last = std::min<int64_t>(j + attrs.size / 2, planes.channels - 1);
      for (int64_t i = 0; i < planes.inner; ++i) {
        double sum = 0;
        for (int64_t c = first; c <= last; ++c) {
          const std::size_t from = planes.element(n, c, i);
          sum += dy[from] * x[from] * std::pow(s[from], -beta - 1);
        }
        const std::size_t to = planes.element(n, j, i);
        call.out()[to] = dy[to] * std::pow(s[to], -beta) - 2 * beta * alpha / attrs.size * x[to] * sum;
      }
    }
  }
}

}  // namespace

std::vector<OracleEntry> local_response_norm_oracle() {
  return {{GPUNN_OP_LOCAL_RESPONSE_NORM, local_response_norm},
          {GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, local_response_norm_backward}};
}

}  // namespace gpunn::conformance
