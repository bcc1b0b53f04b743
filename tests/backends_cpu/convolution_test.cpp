#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

struct Conv {
  int64_t n, c, h, w;  // x
  int64_t k, r, s;     // filter
  int stride[2] = {1, 1};
  int pad[2] = {0, 0};
  int dilation[2] = {1, 1};
  int groups = 1;

  int64_t p() const { return (h + 2 * pad[0] - dilation[0] * (r - 1) - 1) / stride[0] + 1; }
  int64_t q() const { return (w + 2 * pad[1] - dilation[1] * (s - 1) - 1) / stride[1] + 1; }
  Shape x_shape() const { return {n, c, h, w}; }
  Shape w_shape() const { return {k, c / groups, r, s}; }
  Shape y_shape() const { return {n, k, p(), q()}; }

  gpunn_conv2d_attrs attrs() const {
    gpunn_conv2d_attrs a{};
    a.struct_size = sizeof(a);
    for (int i = 0; i < 2; ++i) {
      a.stride[i] = stride[i];
      a.pad[i] = pad[i];
      a.dilation[i] = dilation[i];
    }
    a.groups = groups;
    a.input_size[0] = static_cast<int32_t>(h);
    a.input_size[1] = static_cast<int32_t>(w);
    a.filter_size[0] = static_cast<int32_t>(r);
    a.filter_size[1] = static_cast<int32_t>(s);
    return a;
  }
};

// Calls body(y index, x index, w index) for every product of the convolution.
template <class Body>
void each_product(const Conv& v, const Body& body) {
  const int64_t group_inputs = v.c / v.groups;
  const int64_t group_outputs = v.k / v.groups;
  for (int64_t n = 0; n < v.n; ++n) {
    for (int64_t k = 0; k < v.k; ++k) {
      for (int64_t p = 0; p < v.p(); ++p) {
        for (int64_t q = 0; q < v.q(); ++q) {
          for (int64_t c = 0; c < group_inputs; ++c) {
            for (int64_t r = 0; r < v.r; ++r) {
              for (int64_t s = 0; s < v.s; ++s) {
                const int64_t i = p * v.stride[0] - v.pad[0] + r * v.dilation[0];
                const int64_t j = q * v.stride[1] - v.pad[1] + s * v.dilation[1];
                if (i < 0 || i >= v.h || j < 0 || j >= v.w) continue;
                const int64_t channel = k / group_outputs * group_inputs + c;
                body(((n * v.k + k) * v.p() + p) * v.q() + q, ((n * v.c + channel) * v.h + i) * v.w + j,
                     ((k * group_inputs + c) * v.r + r) * v.s + s);
              }
            }
          }
        }
      }
    }
  }
}

struct Exact {
  std::vector<double> value;
  std::vector<double> size;  // the sum of the products' absolute values, which bounds rounding
  explicit Exact(const Shape& shape)
      : value(static_cast<std::size_t>(count_of(shape))), size(static_cast<std::size_t>(count_of(shape))) {}
  void add(int64_t at, float a, float b) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    value[static_cast<std::size_t>(at)] += product;
    size[static_cast<std::size_t>(at)] += std::abs(product);
  }
  double error_of(const Tensor<float>& found) const {
    double worst = 0;
    for (int64_t i = 0; i < found.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double error = std::abs(static_cast<double>(found[i]) - value[at]);
      if (!(error <= 0)) worst = std::max(worst, std::isnan(error) ? 1e9 : error / std::max(size[at], 1e-30));
    }
    return worst;
  }
};

constexpr double kTolerance = 1e-6;

// What conformance allows of a sum of so many products: Winograd's roundings are those of a tile's other sums too.
double tolerance_of(const std::string& kernel, int64_t terms) {
  const double bound = (4 + 2 * std::sqrt(static_cast<double>(terms))) * std::ldexp(1.0, -24);
  return kernel == "conv:winograd" ? bound : kTolerance;
}

// Each op on each machine against the plain loop nest.
void check_convolution(const Conv& v) {
  INFO("x " << v.n << "x" << v.c << "x" << v.h << "x" << v.w << ", filters " << v.k << "x" << v.r << "x" << v.s
            << ", stride " << v.stride[0] << "," << v.stride[1] << ", pad " << v.pad[0] << "," << v.pad[1]
            << ", dilation " << v.dilation[0] << "," << v.dilation[1] << ", groups " << v.groups);
  Random random(5);
  const Tensor<float> x = random.tensor(v.x_shape());
  const Tensor<float> w = random.tensor(v.w_shape());
  const Tensor<float> dy = random.tensor(v.y_shape());
  const Tensor<float> bias = random.tensor({v.k}, -2, 2);
  Exact y_exact(v.y_shape());
  Exact dx_exact(v.x_shape());
  Exact dw_exact(v.w_shape());
  each_product(v, [&](int64_t yi, int64_t xi, int64_t wi) {
    y_exact.add(yi, x[xi], w[wi]);
    dx_exact.add(xi, dy[yi], w[wi]);
    dw_exact.add(wi, dy[yi], x[xi]);
  });
  Exact relu_exact = y_exact;
  for (std::size_t i = 0; i < relu_exact.value.size(); ++i) {
    const auto channel = static_cast<int64_t>(i) / (v.p() * v.q()) % v.k;
    relu_exact.add(static_cast<int64_t>(i), bias[channel], 1.0F);
    relu_exact.value[i] = std::max(relu_exact.value[i], 0.0);
  }

  gpunn_conv2d_attrs attrs = v.attrs();
  const Tensor<float> last_x = with_channels_last(x);
  const Tensor<float> last_w = with_channels_last(w);
  const Tensor<float> last_dy = with_channels_last(dy);
  const auto check = [&](int32_t op, const Views& inputs, const Views& last_inputs, const Exact& exact,
                         const Shape& shape, int64_t terms) {
    INFO("op " << op);
    Tensor<float> result(shape);
    on_each_machine(result, [&] {
      std::fill(result.begin(), result.end(), NAN);
      Runner(gpunn::cpu::add_convolution_kernels).run(op, &attrs, inputs, {result});
      CHECK(exact.error_of(result) < kTolerance);
    });
    const View last_result = channels_last(result);
    const Runner any(gpunn::cpu::add_convolution_kernels);
    for (const std::string& kernel : any.kernels(op, &attrs, last_inputs, {last_result})) {
      INFO("channels-last, kernel " << kernel);
      on_each_machine(result, [&] {
        std::fill(result.begin(), result.end(), NAN);
        Runner(gpunn::cpu::add_convolution_kernels).run(op, &attrs, last_inputs, {last_result}, kernel);
        CHECK(exact.error_of(with_channels_last(result, true)) < tolerance_of(kernel, terms));
      });
    }
  };
  const View lx = channels_last(last_x);
  const View lw = channels_last(last_w);
  const View ldy = channels_last(last_dy);
  check(GPUNN_OP_CONV2D, {x, w}, {lx, lw}, y_exact, v.y_shape(), v.c / v.groups * v.r * v.s);
  check(GPUNN_OP_CONV2D_BACKWARD_DATA, {dy, w}, {ldy, lw}, dx_exact, v.x_shape(), v.k / v.groups * v.r * v.s);
  check(GPUNN_OP_CONV2D_BACKWARD_FILTER, {dy, x}, {ldy, lx}, dw_exact, v.w_shape(), v.n * v.p() * v.q());
  attrs.activation = GPUNN_ACTIVATION_RELU;
  check(GPUNN_OP_CONV2D_BIAS_ACTIVATION, {x, w, bias}, {lx, lw, bias}, relu_exact, v.y_shape(),
        v.c / v.groups * v.r * v.s);
}

}  // namespace

TEST_CASE("convolution: LeNet-5's layers, also with a batch that fills no vector") {
  for (const int64_t batch : {1, 3, 16, 20, 33}) {
    check_convolution({batch, 1, 28, 28, 6, 5, 5, {1, 1}, {2, 2}});
    check_convolution({batch, 6, 14, 14, 16, 5, 5});
  }
}

TEST_CASE("convolution: strides, padding, dilation, together and unequal by axis") {
  check_convolution({5, 3, 9, 11, 4, 3, 3, {2, 2}, {1, 1}});
  check_convolution({5, 3, 9, 11, 4, 3, 2, {2, 3}, {1, 0}});
  check_convolution({17, 2, 13, 10, 5, 3, 3, {1, 1}, {2, 2}, {2, 2}});
  check_convolution({4, 2, 17, 12, 3, 3, 4, {3, 2}, {4, 3}, {2, 3}});
  check_convolution({2, 2, 12, 12, 3, 3, 3, {2, 2}, {0, 0}, {2, 2}});  // taps of one parity: some of dx gets nothing
  check_convolution({2, 3, 8, 8, 4, 2, 2, {4, 4}});                    // pixels that no filter sees
  check_convolution({3, 2, 6, 7, 3, 1, 1, {2, 2}});
  check_convolution({2, 1, 4, 4, 2, 3, 3, {1, 1}, {5, 6}});  // windows wholly in the padding
  check_convolution({2, 2, 30, 3, 3, 7, 3, {2, 1}, {3, 1}});
}

TEST_CASE("convolution: extreme sizes") {
  check_convolution({1, 1, 1, 1, 1, 1, 1});
  check_convolution({1, 1, 5, 5, 1, 5, 5});
  check_convolution({40, 7, 1, 1, 9, 1, 1});
  check_convolution({1, 2, 1, 37, 3, 1, 5, {1, 1}, {0, 2}});
  check_convolution({1, 2, 37, 1, 3, 5, 1, {1, 1}, {2, 0}});
  check_convolution({1, 3, 50, 41, 2, 3, 3, {1, 1}, {1, 1}});
  check_convolution({2, 19, 7, 5, 23, 3, 3, {1, 1}, {1, 1}});
}

TEST_CASE("convolution: groups, and depthwise with a multiplier") {
  check_convolution({3, 6, 8, 8, 9, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3});
  check_convolution({18, 10, 7, 7, 10, 3, 3, {2, 2}, {1, 1}, {1, 1}, 10});
  check_convolution({2, 4, 9, 9, 12, 3, 3, {1, 1}, {2, 2}, {2, 2}, 4});
  check_convolution({3, 37, 19, 23, 37, 3, 3, {1, 1}, {1, 1}, {1, 1}, 37});
  check_convolution({2, 32, 12, 25, 32, 3, 3, {2, 2}, {1, 1}, {1, 1}, 32});
  check_convolution({2, 16, 11, 14, 16, 5, 5, {2, 1}, {2, 2}, {1, 1}, 16});
  check_convolution({2, 18, 12, 11, 18, 7, 4, {3, 2}, {3, 1}, {1, 2}, 18});
}

TEST_CASE("convolution: enough channels for several tiles, bands and ranges") {
  check_convolution({17, 33, 10, 9, 35, 3, 3, {1, 1}, {1, 1}});
  check_convolution({2, 64, 16, 16, 64, 3, 3, {1, 1}, {1, 1}});
  check_convolution({1, 300, 4, 4, 130, 3, 3, {1, 1}, {1, 1}});
}

TEST_CASE("convolution: few pixels and large filters") {
  check_convolution({1, 64, 16, 16, 64, 3, 3, {1, 1}, {1, 1}});
  check_convolution({1, 128, 4, 4, 18, 3, 3, {2, 2}, {1, 1}, {1, 1}, 2});
  check_convolution({2, 40, 5, 6, 7, 3, 3, {1, 1}, {2, 2}, {2, 2}});
  check_convolution({3, 300, 3, 3, 5, 1, 1});
  check_convolution({5, 11, 9, 9, 6, 5, 5, {2, 1}, {0, 4}});
  check_convolution({1, 512, 2, 2, 33, 3, 3, {1, 1}, {1, 1}});
}

TEST_CASE("convolution: channels-last kernels, whose tiles and panels the shape does not fill") {
  check_convolution({3, 33, 13, 10, 39, 3, 3, {1, 1}, {1, 1}});  // Winograd's tiles reach beyond the image
  check_convolution({3, 32, 14, 15, 70, 3, 3});
  check_convolution({2, 40, 12, 12, 33, 3, 3, {1, 1}, {2, 2}});
  check_convolution({9, 130, 8, 8, 150, 3, 3, {1, 1}, {1, 1}});
  check_convolution({2, 3, 20, 20, 64, 3, 3, {1, 1}, {1, 1}});
  check_convolution({2, 3, 30, 30, 40, 7, 7, {2, 2}, {3, 3}});
  check_convolution({3, 48, 9, 9, 72, 1, 1});
  check_convolution({3, 300, 5, 5, 33, 1, 1});
  check_convolution({3, 304, 5, 5, 20, 1, 1});
  check_convolution({3, 48, 9, 9, 72, 1, 1, {2, 2}});
  check_convolution({2, 48, 9, 9, 36, 3, 3, {2, 2}, {1, 1}, {1, 1}, 3});
  check_convolution({2, 320, 7, 7, 24, 3, 3, {2, 2}, {1, 1}});
}

TEST_CASE("convolution refuses what it does not serve, with the reason") {
  const Runner runner(gpunn::cpu::add_convolution_kernels);
  const Conv v{2, 4, 8, 8, 6, 3, 3};
  const View x(GPUNN_F32, v.x_shape());
  const View w(GPUNN_F32, v.w_shape());
  const View y(GPUNN_F32, v.y_shape());
  const auto refusal = [&](const gpunn_conv2d_attrs& attrs, const View& with_x, const View& with_w,
                           const View& with_y) {
    return runner.refusal(GPUNN_OP_CONV2D, &attrs, {with_x, with_w}, {with_y});
  };
  const gpunn_conv2d_attrs good = v.attrs();
  CHECK(refusal(good, x, w, y).empty());
  CHECK_THAT(refusal(good, View(GPUNN_F16, v.x_shape()), w, y), Contains("f32"));
  CHECK_THAT(refusal(good, x.strided({256, 1, 32, 4}), w, y), Contains("packed"));
  CHECK_THAT(refusal(good, View(GPUNN_F32, {2, 4, 64}), w, y), Contains("x must be f32[N, C, H, W]"));
  CHECK_THAT(refusal(good, x, View(GPUNN_F32, {6, 3, 3, 3}), y), Contains("reads 3 channels"));
  CHECK_THAT(refusal(good, x, w, View(GPUNN_F32, {2, 6, 6, 7})), Contains("y must be f32[2, 6, 6, 6]"));
  CHECK_THAT(refusal(good, x, View(GPUNN_F32, {6, 4, 9, 3}), y), Contains("larger than"));
  CHECK_THAT(runner.refusal(GPUNN_OP_CONV2D, nullptr, {x, w}, {y}), Contains("attributes"));
  const auto changed = [&](auto change) {
    gpunn_conv2d_attrs attrs = good;
    change(attrs);
    return refusal(attrs, x, w, y);
  };
  CHECK_THAT(changed([](gpunn_conv2d_attrs& a) { a.stride[0] = 0; }), Contains("stride"));
  CHECK_THAT(changed([](gpunn_conv2d_attrs& a) { a.dilation[1] = -1; }), Contains("dilation"));
  CHECK_THAT(changed([](gpunn_conv2d_attrs& a) { a.pad[1] = -1; }), Contains("pad"));
  CHECK_THAT(changed([](gpunn_conv2d_attrs& a) { a.pad[0] = 0x7fffffff; }), Contains("y must be"));
  gpunn_conv2d_attrs far = good;
  far.pad[0] = far.stride[0] = 0x7fffffff;
  CHECK_THAT(refusal(far, x, w, View(GPUNN_F32, {2, 6, 3, 6})), Contains("pad is out of range"));
  CHECK_THAT(changed([](gpunn_conv2d_attrs& a) { a.groups = 3; }), Contains("groups"));
  CHECK_THAT(changed([](gpunn_conv2d_attrs& a) { a.groups = 0; }), Contains("groups"));
  constexpr int64_t kMany = int64_t{1} << 30;
  CHECK_THAT(refusal(good, View(GPUNN_F32, {2, 4, kMany, 8}), w, View(GPUNN_F32, {2, 6, kMany - 2, 6})),
             Contains("rows or columns"));
  CHECK_THAT(runner.refusal(GPUNN_OP_CONV2D_BACKWARD_DATA, &good, {y, w}, {View(GPUNN_F32, {2, 4, 9, 8})}),
             Contains("dx must be f32[2, 4, 8, 8]"));
  gpunn_conv2d_attrs other = good;
  other.filter_size[0] = 2;
  CHECK_THAT(runner.refusal(GPUNN_OP_CONV2D_BACKWARD_FILTER, &other, {y, x}, {w}), Contains("dy must be"));
}
