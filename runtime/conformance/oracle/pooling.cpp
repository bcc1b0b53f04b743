#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// Where the maximum of a window lies: the first NaN, or else the first of equal maxima in row-major order.
// `plane` is the index of element (0, 0) of the image plane.
std::size_t window_maximum(const OracleCall& call, const Values& x, int64_t plane, int64_t height, int64_t width,
                           int64_t p, int64_t q) {
  const auto attrs = call.attrs<gpunn_pool2d_attrs>();
  int64_t best = -1;
  for (int64_t r = 0; r < attrs.window[0]; ++r) {
    const int64_t h = p * attrs.stride[0] - attrs.pad[0] + r;
    if (h < 0 || h >= height) continue;
    for (int64_t s = 0; s < attrs.window[1]; ++s) {
      const int64_t column = q * attrs.stride[1] - attrs.pad[1] + s;
      if (column < 0 || column >= width) continue;
      const int64_t here = plane + h * width + column;
      if (best < 0 || x[at(here)] > x[at(best)] || (std::isnan(x[at(here)]) && !std::isnan(x[at(best)]))) best = here;
    }
  }
  call.require(best >= 0, "at least one element in every window");
  return at(best);
}

// Calls visit(index of the maximum in x, index in y) for every window.
template <class Visit>
void for_each_window(const OracleCall& call, const OracleTensor& x, const Shape& y, Visit visit) {
  const Shape& shape = x.type.shape;
  call.require(shape.size() == 4 && y.size() == 4 && y[0] == shape[0] && y[1] == shape[1], "x[N,C,H,W], y[N,C,P,Q]");
  int64_t output = 0;
  for (int64_t image_channel = 0; image_channel < shape[0] * shape[1]; ++image_channel) {
    const int64_t plane = image_channel * shape[2] * shape[3];
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q) {
        visit(window_maximum(call, x.values, plane, shape[2], shape[3], p, q), at(output++));
      }
    }
  }
}

void max_pool2d(OracleCall& call) {
  const OracleTensor x{call.in_type(0), call.in(0)};
  for_each_window(call, x, call.out_type().shape,
                  [&](std::size_t from, std::size_t to) { call.out()[to] = x.values[from]; });
}

void max_pool2d_backward(OracleCall& call) {
  const Values& dy = call.in(0);
  const OracleTensor x{call.in_type(1), call.in(1)};
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_window(call, x, call.in_type(0).shape, [&](std::size_t from, std::size_t to) { dx[from] += dy[to]; });
}

// Calls visit(index in y, elements, divisor) for every window, elements being the indices in x of what it holds and
// divisor what their sum is divided by.
template <class Visit>
void for_each_mean(const OracleCall& call, const Shape& x, const Shape& y, Visit visit) {
  const auto attrs = call.attrs<gpunn_pool2d_attrs>();
  call.require(x.size() == 4 && y.size() == 4 && y[0] == x[0] && y[1] == x[1], "x[N,C,H,W], y[N,C,P,Q]");
  int64_t output = 0;
  for (int64_t image_channel = 0; image_channel < x[0] * x[1]; ++image_channel) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q) {
        const int64_t top = p * attrs.stride[0] - attrs.pad[0], left = q * attrs.stride[1] - attrs.pad[1];
        std::vector<std::size_t> elements;
        for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + attrs.window[0], x[2]); ++h) {
          for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + attrs.window[1], x[3]); ++w) {
            elements.push_back(at((image_channel * x[2] + h) * x[3] + w));
          }
        }
        call.require(!elements.empty(), "at least one element in every window");
        const double whole = static_cast<double>(attrs.window[0]) * attrs.window[1];
        visit(at(output++), elements, attrs.count_padding != 0 ? whole : static_cast<double>(elements.size()));
      }
    }
  }
}

void avg_pool2d(OracleCall& call) {
  const Values& x = call.in(0);
  for_each_mean(call, call.in_type(0).shape, call.out_type().shape,
                [&](std::size_t to, const std::vector<std::size_t>& elements, double divisor) {
                  double sum = 0;
                  for (const std::size_t from : elements) sum += x[from];
                  call.out()[to] = sum / divisor;
                });
}

void avg_pool2d_backward(OracleCall& call) {
  const Values& dy = call.in(0);
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_mean(call, call.out_type().shape, call.in_type(0).shape,
                [&](std::size_t from, const std::vector<std::size_t>& elements, double divisor) {
                  for (const std::size_t to : elements) dx[to] += dy[from] / divisor;
                });
}

}  // namespace

std::vector<OracleEntry> pooling_oracle() {
  return {{GPUNN_OP_MAX_POOL2D, max_pool2d},
          {GPUNN_OP_MAX_POOL2D_BACKWARD, max_pool2d_backward},
          {GPUNN_OP_AVG_POOL2D, avg_pool2d},
          {GPUNN_OP_AVG_POOL2D_BACKWARD, avg_pool2d_backward}};
}

}  // namespace gpunn::conformance
