#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// An element along one axis of x and its share in an element of y.
struct Share {
  int64_t index;
  double share;
};

// What row or column `output` of y is made of. A share of 0 is left out: it must not make NaN of an infinity.
std::vector<Share> shares_of(int64_t output, int64_t inputs, int32_t factor, int32_t mode) {
  if (mode == GPUNN_UPSAMPLE_NEAREST) return {{output / factor, 1}};
  const double exact = (static_cast<double>(output) + 0.5) / factor - 0.5;
  const double place = std::clamp(exact, 0.0, static_cast<double>(inputs - 1));
  const auto first = static_cast<int64_t>(std::floor(place));
  const double second = place - std::floor(place);
  if (second == 0) return {{first, 1}};
  return {{first, 1 - second}, {first + 1, second}};
}

// Calls visit(index in x, index in y, share) for every element of x that an element of y is made of.
template <class Visit>
void for_each_share(const OracleCall& call, const Shape& x, const Shape& y, Visit visit) {
  const auto attrs = call.attrs<gpunn_upsample2d_attrs>();
  call.require(x.size() == 4 && y == Shape{x[0], x[1], x[2] * attrs.factor[0], x[3] * attrs.factor[1]},
               "x[N,C,H,W], y[N,C,H*f0,W*f1]");
  int64_t output = 0;
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q, ++output) {
        for (const Share& row : shares_of(p, x[2], attrs.factor[0], attrs.mode)) {
          for (const Share& column : shares_of(q, x[3], attrs.factor[1], attrs.mode)) {
            visit(at((plane * x[2] + row.index) * x[3] + column.index), at(output), row.share * column.share);
          }
        }
      }
    }
  }
}

void upsample2d(OracleCall& call) {
  Values& y = call.out();
  y.assign(y.size(), 0);
  for_each_share(call, call.in_type(0).shape, call.out_type().shape,
                 [&](std::size_t from, std::size_t to, double share) { y[to] += share * call.in(0)[from]; });
}

void upsample2d_backward(OracleCall& call) {
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_share(call, call.out_type().shape, call.in_type(0).shape,
                 [&](std::size_t to, std::size_t from, double share) { dx[to] += share * call.in(0)[from]; });
}

}  // namespace

std::vector<OracleEntry> upsampling_oracle() {
  return {{GPUNN_OP_UPSAMPLE2D, upsample2d}, {GPUNN_OP_UPSAMPLE2D_BACKWARD, upsample2d_backward}};
}

}  // namespace gpunn::conformance
