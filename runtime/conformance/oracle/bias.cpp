#include <gpunn/ops.h>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// A tensor [N,C,...] as [images][channels][inner].
struct ChannelShape {
  int64_t images, channels, inner;
};

ChannelShape channel_shape(const OracleCall& call) {
  ChannelShape shape{call.in_dim(0, 0), call.in_dim(0, 1), 1};
  for (std::size_t i = 2; i < call.in_type(0).shape.size(); ++i) shape.inner *= call.in_dim(0, i);
  return shape;
}

void bias_add(OracleCall& call) {
  const auto [images, channels, inner] = channel_shape(call);
  call.require(static_cast<int64_t>(call.in(1).size()) == channels, "b[C]");
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inner; ++i) {
        const std::size_t element = at((n * channels + c) * inner + i);
        call.out()[element] = call.in(0)[element] + call.in(1)[at(c)];
      }
    }
  }
}

// db[c] of a gradient [N,C,...].
void sum_by_channel(OracleCall& call, const Values& gradient, Values& db) {
  const auto [images, channels, inner] = channel_shape(call);
  call.require(static_cast<int64_t>(db.size()) == channels, "db[C]");
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t i = 0; i < inner; ++i) sum += gradient[at((n * channels + c) * inner + i)];
    }
    db[at(c)] = sum;
  }
}

void bias_backward(OracleCall& call) { sum_by_channel(call, call.in(0), call.out()); }

void bias_activation_backward(OracleCall& call) {
  const bool relu = call.attrs<gpunn_bias_activation_backward_attrs>().activation == GPUNN_ACTIVATION_RELU;
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  Values& dx = call.out(0);
  call.require(dy.size() == y.size() && dy.size() == dx.size(), "dy, y and dx of one size");
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = !relu || y[i] > 0 ? dy[i] : 0;
  sum_by_channel(call, dx, call.out(1));
}

}  // namespace

std::vector<OracleEntry> bias_oracle() {
  return {{GPUNN_OP_BIAS_ADD, bias_add},
          {GPUNN_OP_BIAS_BACKWARD, bias_backward},
          {GPUNN_OP_BIAS_ACTIVATION_BACKWARD, bias_activation_backward}};
}

}  // namespace gpunn::conformance
