#include <gpunn/ops.h>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// x[N,C,H,W], w[K,C/groups,R,S], y[N,K,P,Q].
struct Geometry {
  int64_t images, channels, height, width;
  int64_t filters, group_channels, filter_height, filter_width;
  int64_t out_height, out_width;
  int64_t groups;
  gpunn_conv2d_attrs attrs;
};

Geometry geometry(const OracleCall& call, const Shape& x, const Shape& w, const Shape& y) {
  call.require(x.size() == 4 && w.size() == 4 && y.size() == 4, "tensors of rank 4");
  const auto attrs = call.attrs<gpunn_conv2d_attrs>();
  const Geometry g{x[0], x[1], x[2], x[3], w[0], w[1], w[2], w[3], y[2], y[3], attrs.groups, attrs};
  call.require(g.groups > 0 && g.channels == g.group_channels * g.groups && g.filters % g.groups == 0,
               "channels and filters that the groups divide");
  call.require(y[0] == g.images && y[1] == g.filters, "y[N,K,P,Q]");
  return g;
}

// Calls visit(index into x, index into w, index into y) for every product of the convolution.
template <class Visit>
void for_each_product(const Geometry& g, Visit visit) {
  const int64_t group_filters = g.filters / g.groups;
  for (int64_t n = 0; n < g.images; ++n) {
    for (int64_t k = 0; k < g.filters; ++k) {
      const int64_t group = k / group_filters;
      for (int64_t p = 0; p < g.out_height; ++p) {
        for (int64_t q = 0; q < g.out_width; ++q) {
          for (int64_t c = 0; c < g.group_channels; ++c) {
            for (int64_t r = 0; r < g.filter_height; ++r) {
              const int64_t h = p * g.attrs.stride[0] - g.attrs.pad[0] + r * g.attrs.dilation[0];
              if (h < 0 || h >= g.height) continue;
              for (int64_t s = 0; s < g.filter_width; ++s) {
                const int64_t column = q * g.attrs.stride[1] - g.attrs.pad[1] + s * g.attrs.dilation[1];
                if (column < 0 || column >= g.width) continue;
                const int64_t channel = group * g.group_channels + c;
                visit(at(((n * g.channels + channel) * g.height + h) * g.width + column),
                      at(((k * g.group_channels + c) * g.filter_height + r) * g.filter_width + s),
                      at(((n * g.filters + k) * g.out_height + p) * g.out_width + q));
              }
            }
          }
        }
      }
    }
  }
}

void conv2d(OracleCall& call) {
  const Geometry g = geometry(call, call.in_type(0).shape, call.in_type(1).shape, call.out_type().shape);
  const Values& x = call.in(0);
  const Values& w = call.in(1);
  Values& y = call.out();
  y.assign(y.size(), 0);
  for_each_product(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) { y[yi] += x[xi] * w[wi]; });
}

void conv2d_backward_data(OracleCall& call) {
  const Geometry g = geometry(call, call.out_type().shape, call.in_type(1).shape, call.in_type(0).shape);
  const Values& dy = call.in(0);
  const Values& w = call.in(1);
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_product(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dx[xi] += dy[yi] * w[wi]; });
}

void conv2d_backward_filter(OracleCall& call) {
  const Geometry g = geometry(call, call.in_type(1).shape, call.out_type().shape, call.in_type(0).shape);
  const Values& dy = call.in(0);
  const Values& x = call.in(1);
  Values& dw = call.out();
  dw.assign(dw.size(), 0);
  for_each_product(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dw[wi] += dy[yi] * x[xi]; });
}

void conv2d_bias_activation(OracleCall& call) {
  conv2d(call);
  const Shape& shape = call.out_type().shape;
  const int64_t inner = shape[2] * shape[3];
  call.require(static_cast<int64_t>(call.in(2).size()) == shape[1], "bias[K]");
  Values& y = call.out();
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const int64_t k = i / inner % shape[1];
    y[at(i)] = activate(call.attrs<gpunn_conv2d_attrs>().activation, y[at(i)] + call.in(2)[at(k)]);
  }
}

}  // namespace

std::vector<OracleEntry> convolution_oracle() {
  return {{GPUNN_OP_CONV2D, conv2d},
          {GPUNN_OP_CONV2D_BACKWARD_DATA, conv2d_backward_data},
          {GPUNN_OP_CONV2D_BACKWARD_FILTER, conv2d_backward_filter},
          {GPUNN_OP_CONV2D_BIAS_ACTIVATION, conv2d_bias_activation}};
}

}  // namespace gpunn::conformance
