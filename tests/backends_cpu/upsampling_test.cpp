#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& upsampling_runner() {
  static const Runner made(gpunn::cpu::add_upsampling_kernels);
  return made;
}

struct UpsamplingCase {
  Shape x;
  int32_t factor[2];
  int32_t mode;
};

// The share of element i of an axis in output o, by the half-pixel convention.
double share(int64_t i, int64_t o, int64_t inputs, int64_t factor, int32_t mode) {
  if (mode == GPUNN_UPSAMPLE_NEAREST) return o / factor == i ? 1 : 0;
  const double place = (static_cast<double>(o) + 0.5) / static_cast<double>(factor) - 0.5;
  const double held = std::clamp(place, 0.0, static_cast<double>(inputs - 1));
  return std::max(0.0, 1 - std::abs(held - static_cast<double>(i)));
}

}  // namespace

TEST_CASE("up-sampling and its backward, at any number of threads") {
  const int32_t mode = GENERATE(0, 1);
  const UpsamplingCase c = GENERATE(UpsamplingCase{{1, 1, 1, 1}, {5, 3}, 0}, UpsamplingCase{{2, 3, 5, 7}, {2, 2}, 0},
                                    UpsamplingCase{{1, 2, 4, 6}, {3, 1}, 0}, UpsamplingCase{{0, 2, 3, 3}, {2, 2}, 0},
                                    UpsamplingCase{{9, 16, 7, 6}, {4, 5}, 0});
  const Shape large{c.x[0], c.x[1], c.x[2] * c.factor[0], c.x[3] * c.factor[1]};
  const gpunn_upsample2d_attrs attrs{sizeof(attrs), {c.factor[0], c.factor[1]}, mode};
  Random random(31);
  const Tensor<float> x = random.tensor(c.x), dy = random.tensor(large);
  Tensor<float> y(large), dx(c.x);
  std::vector<double> y_expected(static_cast<std::size_t>(y.size())), dx_expected(static_cast<std::size_t>(dx.size()));
  for (int64_t plane = 0; plane < c.x[0] * c.x[1]; ++plane) {
    for (int64_t o = 0; o < large[2] * large[3]; ++o) {
      for (int64_t i = 0; i < c.x[2] * c.x[3]; ++i) {
        const double part = share(i / c.x[3], o / large[3], c.x[2], c.factor[0], mode) *
                            share(i % c.x[3], o % large[3], c.x[3], c.factor[1], mode);
        const int64_t to = plane * large[2] * large[3] + o, from = plane * c.x[2] * c.x[3] + i;
        y_expected[static_cast<std::size_t>(to)] += part * x[from];
        dx_expected[static_cast<std::size_t>(from)] += part * dy[to];
      }
    }
  }
  on_each_machine(y, [&] {
    upsampling_runner().run(GPUNN_OP_UPSAMPLE2D, &attrs, {x}, {y});
    CHECK(worst_error(y, y_expected) < 1e-6);
  });
  on_each_machine(dx, [&] {
    upsampling_runner().run(GPUNN_OP_UPSAMPLE2D_BACKWARD, &attrs, {dy}, {dx});
    CHECK(worst_error(dx, dx_expected) < 1e-5);
  });
  const Tensor<float> last_x = with_channels_last(x), last_dy = with_channels_last(dy);
  const View y_view = channels_last(y), dx_view = channels_last(dx);
  on_each_machine(y, [&] {
    upsampling_runner().run(GPUNN_OP_UPSAMPLE2D, &attrs, {channels_last(last_x)}, {y_view});
    CHECK(worst_error(with_channels_last(y, true), y_expected) < 1e-6);
  });
  on_each_machine(dx, [&] {
    upsampling_runner().run(GPUNN_OP_UPSAMPLE2D_BACKWARD, &attrs, {channels_last(last_dy)}, {dx_view});
    CHECK(worst_error(with_channels_last(dx, true), dx_expected) < 1e-5);
  });
}

TEST_CASE("up-sampling refuses what is not a multiple") {
  const Tensor<float> x({1, 1, 2, 3});
  Tensor<float> y({1, 1, 4, 6});
  const auto refusal = [&](int32_t rows, int32_t columns, int32_t mode) {
    const gpunn_upsample2d_attrs attrs{sizeof(attrs), {rows, columns}, mode};
    return upsampling_runner().refusal(GPUNN_OP_UPSAMPLE2D, &attrs, {x}, {y});
  };
  CHECK(refusal(2, 2, 0).empty());
  CHECK_THAT(refusal(2, 3, 0), Contains("y must be"));
  CHECK_THAT(refusal(0, 2, 0), Contains("must be 1 or more"));
  CHECK_THAT(refusal(2, 2, 7), Contains("mode"));
}
