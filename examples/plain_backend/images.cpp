// Convolution, pooling and what moves tensors about. x[N,C,H,W], w[K,C/groups,R,S], y[N,K,P,Q].
#include <algorithm>
#include <cmath>
#include <vector>

#include "plain.hpp"

namespace plain {
namespace {

// Calls body(element of x, of w, of y) for each product of a convolution.
template <class Body>
void for_products(const gpunn_conv2d_attrs& a, const gpunn_tensor& x, const gpunn_tensor& w, const gpunn_tensor& y,
                  const Body& body) {
  const int64_t depth = w.dim[1], per_group = w.dim[0] / a.groups;
  int64_t at_y = 0;
  for (int64_t n = 0; n < y.dim[0]; ++n) {
    for (int64_t k = 0; k < y.dim[1]; ++k) {
      for (int64_t p = 0; p < y.dim[2]; ++p) {
        for (int64_t q = 0; q < y.dim[3]; ++q, ++at_y) {
          int64_t at_w = k * depth * w.dim[2] * w.dim[3];
          for (int64_t d = 0; d < depth; ++d) {
            const int64_t plane = (n * x.dim[1] + k / per_group * depth + d) * x.dim[2];
            for (int64_t r = 0; r < w.dim[2]; ++r) {
              const int64_t row = p * a.stride[0] - a.pad[0] + r * a.dilation[0];
              for (int64_t s = 0; s < w.dim[3]; ++s, ++at_w) {
                const int64_t column = q * a.stride[1] - a.pad[1] + s * a.dilation[1];
                if (row < 0 || row >= x.dim[2] || column < 0 || column >= x.dim[3]) continue;
                body((plane + row) * x.dim[3] + column, at_w, at_y);
              }
            }
          }
        }
      }
    }
  }
}

// What products add up to in f64, then f32.
class Sums {
 public:
  explicit Sums(const gpunn_tensor& y) : sums_(static_cast<std::size_t>(elements(y))) {}
  double& operator[](int64_t i) { return sums_[static_cast<std::size_t>(i)]; }
  void store(float* y) const {
    std::transform(sums_.begin(), sums_.end(), y, [](double sum) { return static_cast<float>(sum); });
  }

 private:
  std::vector<double> sums_;
};

double product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

void convolve(const gpunn_conv2d_attrs& attrs, const OpArgs& args) {
  const auto *x = args.in<float>(0), *w = args.in<float>(1);
  Sums y(args.output(0));
  for_products(attrs, args.input(0), args.input(1), args.output(0),
               [&](int64_t i, int64_t j, int64_t k) { y[k] += product(x[i], w[j]); });
  y.store(args.out<float>(0));
}

void convolve_backward_data(const gpunn_conv2d_attrs& attrs, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *w = args.in<float>(1);
  Sums dx(args.output(0));
  for_products(attrs, args.output(0), args.input(1), args.input(0),
               [&](int64_t i, int64_t j, int64_t k) { dx[i] += product(dy[k], w[j]); });
  dx.store(args.out<float>(0));
}

void convolve_backward_filter(const gpunn_conv2d_attrs& attrs, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *x = args.in<float>(1);
  Sums dw(args.output(0));
  for_products(attrs, args.input(1), args.output(0), args.input(0),
               [&](int64_t i, int64_t j, int64_t k) { dw[j] += product(dy[k], x[i]); });
  dw.store(args.out<float>(0));
}

// Calls body(element of x, element of y) for each element of each window, in row-major order.
template <class Body>
void for_windows(const gpunn_pool2d_attrs& a, const gpunn_tensor& x, const gpunn_tensor& y, const Body& body) {
  for (int64_t i = 0; i < elements(y); ++i) {
    const int64_t q = i % y.dim[3], p = i / y.dim[3] % y.dim[2], plane = i / (y.dim[3] * y.dim[2]);
    const int64_t top = p * a.stride[0] - a.pad[0], left = q * a.stride[1] - a.pad[1];
    for (int64_t row = std::max<int64_t>(0, top); row < std::min(x.dim[2], top + a.window[0]); ++row) {
      for (int64_t column = std::max<int64_t>(0, left); column < std::min(x.dim[3], left + a.window[1]); ++column) {
        body((plane * x.dim[2] + row) * x.dim[3] + column, i);
      }
    }
  }
}

// For each window the element of x that wins it: the first of the largest, or of those that are NaN.
std::vector<int64_t> winners(const gpunn_pool2d_attrs& attrs, const gpunn_tensor& shape, const float* x,
                             const gpunn_tensor& y) {
  std::vector<int64_t> won(static_cast<std::size_t>(elements(y)), -1);
  for_windows(attrs, shape, y, [&](int64_t from, int64_t to) {
    int64_t& best = won[static_cast<std::size_t>(to)];
    if (best < 0 || (!std::isnan(x[best]) && (std::isnan(x[from]) || x[from] > x[best]))) best = from;
  });
  return won;
}

void max_pool(const gpunn_pool2d_attrs& attrs, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const std::vector<int64_t> won = winners(attrs, args.input(0), x, args.output(0));
  for (std::size_t i = 0; i < won.size(); ++i) args.out<float>(0)[i] = x[won[i]];
}

void max_pool_backward(const gpunn_pool2d_attrs& attrs, const OpArgs& args) {
  const std::vector<int64_t> won = winners(attrs, args.input(1), args.in<float>(1), args.input(0));
  Sums dx(args.output(0));
  for (std::size_t i = 0; i < won.size(); ++i) dx[won[i]] += args.in<float>(0)[i];
  dx.store(args.out<float>(0));
}

// How many elements each window's mean is of.
std::vector<double> window_sizes(const gpunn_pool2d_attrs& attrs, const gpunn_tensor& x, const gpunn_tensor& y) {
  const double whole = static_cast<double>(attrs.window[0]) * attrs.window[1];
  std::vector<double> sizes(static_cast<std::size_t>(elements(y)), attrs.count_padding != 0 ? whole : 0.0);
  if (attrs.count_padding != 0) return sizes;
  for_windows(attrs, x, y, [&](int64_t, int64_t to) { ++sizes[static_cast<std::size_t>(to)]; });
  return sizes;
}

void average_pool(const gpunn_pool2d_attrs& attrs, const OpArgs& args) {
  const std::vector<double> sizes = window_sizes(attrs, args.input(0), args.output(0));
  Sums y(args.output(0));
  for_windows(attrs, args.input(0), args.output(0), [&](int64_t from, int64_t to) {
    y[to] += args.in<float>(0)[from] / sizes[static_cast<std::size_t>(to)];
  });
  y.store(args.out<float>(0));
}

void average_pool_backward(const gpunn_pool2d_attrs& attrs, const OpArgs& args) {
  const std::vector<double> sizes = window_sizes(attrs, args.output(0), args.input(0));
  Sums dx(args.output(0));
  for_windows(attrs, args.output(0), args.input(0), [&](int64_t from, int64_t to) {
    dx[from] += args.in<float>(0)[to] / sizes[static_cast<std::size_t>(to)];
  });
  dx.store(args.out<float>(0));
}

// Calls body(element of the box, element of the whole), the box beginning at `start`.
template <class Body>
void for_box(const gpunn_tensor& box, const gpunn_tensor& whole, const int64_t* start, const Body& body) {
  for (int64_t i = 0; i < elements(box); ++i) {
    int64_t rest = i, to = 0, step = 1;
    for (int32_t k = box.rank - 1; k >= 0; --k) {
      to += (start[k] + rest % box.dim[k]) * step;
      rest /= box.dim[k];
      step *= whole.dim[k];
    }
    body(i, to);
  }
}

void pad(const gpunn_pad_attrs& attrs, const OpArgs& args) {
  std::fill_n(args.out<float>(0), elements(args.output(0)), 0.0F);
  for_box(args.input(0), args.output(0), attrs.before,
          [&](int64_t from, int64_t to) { args.out<float>(0)[to] = args.in<float>(0)[from]; });
}

void slice(const gpunn_slice_attrs& attrs, const OpArgs& args) {
  for_box(args.output(0), args.input(0), attrs.start,
          [&](int64_t to, int64_t from) { args.out<float>(0)[to] = args.in<float>(0)[from]; });
}

void transpose(const gpunn_transpose_attrs& attrs, const OpArgs& args) {
  const gpunn_tensor &x = args.input(0), &y = args.output(0);
  for (int64_t i = 0; i < elements(y); ++i) {
    int64_t rest = i, from = 0;
    for (int32_t k = y.rank - 1; k >= 0; --k) {
      from += rest % y.dim[k] * x.stride[attrs.permutation[k]];
      rest /= y.dim[k];
    }
    args.out<float>(0)[i] = args.in<float>(0)[from];
  }
}

void concat(const gpunn_concat_attrs& attrs, const OpArgs& args) {
  int64_t start[GPUNN_MAX_RANK] = {};  // of the input in y
  for (std::size_t part = 0; part < args.inputs(); ++part) {
    const auto* x = args.in<float>(part);
    for_box(args.input(part), args.output(0), start,
            [&](int64_t from, int64_t to) { args.out<float>(0)[to] = x[from]; });
    start[attrs.axis] += args.input(part).dim[attrs.axis];
  }
}

}  // namespace

void add_images(Device& device) {
  serve(device, GPUNN_OP_CONV2D, convolve);
  serve(device, GPUNN_OP_CONV2D_BACKWARD_DATA, convolve_backward_data);
  serve(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, convolve_backward_filter);
  serve(device, GPUNN_OP_MAX_POOL2D, max_pool);
  serve(device, GPUNN_OP_MAX_POOL2D_BACKWARD, max_pool_backward);
  serve(device, GPUNN_OP_AVG_POOL2D, average_pool);
  serve(device, GPUNN_OP_AVG_POOL2D_BACKWARD, average_pool_backward);
  serve(device, GPUNN_OP_PAD, pad);
  serve(device, GPUNN_OP_SLICE, slice);
  serve(device, GPUNN_OP_TRANSPOSE, transpose);
  serve(device, GPUNN_OP_CONCAT, concat);
}

}  // namespace plain
