#include <gpunn/ops.h>
#include <gpunn/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// Images x[N,C,H,W] and the numbers that each of them draws.
class Images {
 public:
  explicit Images(const OracleCall& call)
      : call_(call), n_(call.in_dim(0, 0)), c_(call.in_dim(0, 1)), h_(call.in_dim(0, 2)), w_(call.in_dim(0, 3)) {}

  int64_t count() const { return n_; }
  int64_t channels() const { return c_; }
  int64_t rows() const { return h_; }
  int64_t columns() const { return w_; }
  std::size_t place(int64_t n, int64_t c, int64_t h, int64_t w) const { return at(((n * c_ + c) * h_ + h) * w_ + w); }

  // x at a pixel, or what lies outside an image.
  double pixel(int64_t n, int64_t c, int64_t h, int64_t w, const Values& border) const {
    const bool inside = h >= 0 && h < h_ && w >= 0 && w < w_;
    return inside ? call_.in(0)[place(n, c, h, w)] : border[at(c)];
  }

  // u[0..3] of image n.
  template <class Attrs>
  std::array<double, 4> draw(const Attrs& attrs, int64_t n) const {
    const auto counter = static_cast<uint64_t>(static_cast<int64_t>(call_.in(1).at(0)));
    const gpunn_random_words words =
        gpunn_philox(attrs.seed, attrs.stream, counter * static_cast<uint64_t>(n_) + static_cast<uint64_t>(n));
    std::array<double, 4> u{};
    for (std::size_t k = 0; k < u.size(); ++k) u[k] = gpunn_random_unit(words.word[k]);
    return u;
  }

 private:
  const OracleCall& call_;
  int64_t n_, c_, h_, w_;
};

void random_shift(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_shift_attrs>();
  const Images x(call);
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const double range[2] = {2.0 * attrs.reach[0] + 1, 2.0 * attrs.reach[1] + 1};
    const int64_t rows = static_cast<int64_t>(std::floor(u[0] * range[0])) - attrs.reach[0];
    const int64_t columns = static_cast<int64_t>(std::floor(u[1] * range[1])) - attrs.reach[1];
    const bool flipped = u[2] < attrs.flip;
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          const int64_t from = flipped ? x.columns() - 1 - w : w;
          call.out()[x.place(n, c, h, w)] = x.pixel(n, c, h + rows, from + columns, call.in(2));
        }
      }
    }
  }
}

// x between pixels, in proportion to how near the four around are.
double bilinear(const Images& x, int64_t n, int64_t c, double row, double column, const Values& border) {
  if (std::abs(row) > 1e9 || std::abs(column) > 1e9) return border[at(c)];  // and no integer is far out of range
  double sum = 0;
  const double top = std::floor(row), left = std::floor(column);
  for (const double h : {top, top + 1}) {
    for (const double w : {left, left + 1}) {
      const double weight = (1 - std::abs(row - h)) * (1 - std::abs(column - w));
      sum += weight * x.pixel(n, c, static_cast<int64_t>(h), static_cast<int64_t>(w), border);
    }
  }
  return sum;
}

void random_affine(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_affine_attrs>();
  const Images x(call);
  const double middle_row = static_cast<double>(x.rows() - 1) / 2;
  const double middle_column = static_cast<double>(x.columns() - 1) / 2;
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const double angle = (2 * u[0] - 1) * attrs.rotate * std::numbers::pi / 180;
    const double factor = attrs.scale_low + u[1] * (static_cast<double>(attrs.scale_high) - attrs.scale_low);
    const double rows = (2 * u[2] - 1) * attrs.translate[0] * static_cast<double>(x.rows());
    const double columns = (2 * u[3] - 1) * attrs.translate[1] * static_cast<double>(x.columns());
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          // Back: not moved, not grown, then turned clockwise. Rows count downwards.
          const double up = -(static_cast<double>(h) - middle_row - rows) / factor;
          const double right = (static_cast<double>(w) - middle_column - columns) / factor;
          const double from_up = up * std::cos(angle) - right * std::sin(angle);
          const double from_right = up * std::sin(angle) + right * std::cos(angle);
          call.out()[x.place(n, c, h, w)] =
              bilinear(x, n, c, middle_row - from_up, middle_column + from_right, call.in(2));
        }
      }
    }
  }
}

// The channels of one pixel.
double grey_of(const Values& v) {
  if (v.size() == 3) return 0.299 * v[0] + 0.587 * v[1] + 0.114 * v[2];
  double sum = 0;
  for (const double value : v) sum += value;
  return sum / static_cast<double>(v.size());
}

void random_color(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_color_attrs>();
  const double white = attrs.white;
  const Images x(call);
  const Values &scale = call.in(2), &shift = call.in(3);
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    // towards + f * (v - towards), held within 0 and white.
    const auto change = [&](double v, double towards, double share, double reach) {
      const double f = 1 + (2 * share - 1) * reach;
      return reach > 0 ? std::clamp(towards + f * (v - towards), 0.0, white) : v;
    };
    std::vector<Values> pixels;  // [H * W][C]
    double mean = 0;
    for (int64_t i = 0; i < x.rows() * x.columns(); ++i) {
      Values v;
      for (int64_t c = 0; c < x.channels(); ++c) {
        const double raw = (call.in(0)[x.place(n, c, 0, 0) + at(i)] - shift[at(c)]) / scale[at(c)];
        v.push_back(change(raw, 0, u[0], attrs.brightness));
      }
      mean += grey_of(v) / static_cast<double>(x.rows() * x.columns());
      pixels.push_back(v);
    }
    for (int64_t i = 0; i < x.rows() * x.columns(); ++i) {
      Values& v = pixels[at(i)];
      for (double& value : v) value = change(value, mean, u[1], attrs.contrast);
      const double grey = grey_of(v);
      for (int64_t c = 0; c < x.channels(); ++c) {
        const double value = change(v[at(c)], grey, u[2], attrs.saturation);
        call.out()[x.place(n, c, 0, 0) + at(i)] = value * scale[at(c)] + shift[at(c)];
      }
    }
  }
}

void random_erase(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_erase_attrs>();
  const Images x(call);
  for (int64_t n = 0; n < x.count(); ++n) {
    const auto u = x.draw(attrs, n);
    const int64_t top = static_cast<int64_t>(std::floor(u[0] * static_cast<double>(x.rows()))) - attrs.size[0] / 2;
    const int64_t left = static_cast<int64_t>(std::floor(u[1] * static_cast<double>(x.columns()))) - attrs.size[1] / 2;
    for (int64_t c = 0; c < x.channels(); ++c) {
      for (int64_t h = 0; h < x.rows(); ++h) {
        for (int64_t w = 0; w < x.columns(); ++w) {
          const bool erased =
              u[2] < attrs.p && h >= top && h < top + attrs.size[0] && w >= left && w < left + attrs.size[1];
          call.out()[x.place(n, c, h, w)] = erased ? call.in(2)[at(c)] : call.in(0)[x.place(n, c, h, w)];
        }
      }
    }
  }
}

void mix_rows(OracleCall& call) {
  const int64_t rows = call.in_dim(0, 0);
  const auto count = static_cast<int64_t>(call.in(2).at(0));
  call.require(count >= 0 && count <= rows, "a count of rows");
  const int64_t size = rows > 0 ? call.in_type(0).elements() / rows : 0;
  const Values& x = call.in(0);
  const double share = call.in(1).at(0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      call.out()[at(i * size + j)] = i < count
                                         ? share * x[at(i * size + j)] + (1 - share) * x[at((count - 1 - i) * size + j)]
                                         : x[at(i * size + j)];
    }
  }
}

}  // namespace

std::vector<OracleEntry> augmentation_oracle() {
  return {{GPUNN_OP_RANDOM_SHIFT, random_shift},
          {GPUNN_OP_RANDOM_AFFINE, random_affine},
          {GPUNN_OP_RANDOM_COLOR, random_color},
          {GPUNN_OP_RANDOM_ERASE, random_erase},
          {GPUNN_OP_MIX_ROWS, mix_rows}};
}

}  // namespace gpunn::conformance
