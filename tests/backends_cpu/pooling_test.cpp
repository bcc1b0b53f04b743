#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& pooling_runner() {
  static const Runner made(gpunn::cpu::add_pooling_kernels);
  return made;
}

struct PoolingCase {
  Shape x;
  int32_t window[2];
  int32_t stride[2];
  int32_t pad[2];
};

gpunn_pool2d_attrs attrs_of(const PoolingCase& c) {
  return {sizeof(gpunn_pool2d_attrs),
          {c.window[0], c.window[1]},
          {c.stride[0], c.stride[1]},
          {c.pad[0], c.pad[1]},
          0,
          {0, 0}};
}

Shape output_shape(const PoolingCase& c) {
  const auto size = [&](std::size_t i) { return (c.x[2 + i] + 2 * c.pad[i] - c.window[i]) / c.stride[i] + 1; };
  return {c.x[0], c.x[1], size(0), size(1)};
}

// Calls body(output index, input index of the window's winner) by the definition: the first NaN, else the first of the
// largest, in row-major order.
template <class Body>
void for_winners(const PoolingCase& c, const Tensor<float>& x, const Body& body) {
  const Shape y = output_shape(c);
  int64_t output = 0;
  for (int64_t plane = 0; plane < y[0] * y[1]; ++plane) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q) {
        int64_t best = -1;
        for (int64_t r = 0; r < c.window[0]; ++r) {
          for (int64_t s = 0; s < c.window[1]; ++s) {
            const int64_t h = p * c.stride[0] - c.pad[0] + r;
            const int64_t w = q * c.stride[1] - c.pad[1] + s;
            if (h < 0 || h >= c.x[2] || w < 0 || w >= c.x[3]) continue;
            const int64_t at = (plane * c.x[2] + h) * c.x[3] + w;
            if (best < 0 || (!std::isnan(x[best]) && (std::isnan(x[at]) || x[at] > x[best]))) best = at;
          }
        }
        body(output++, best);
      }
    }
  }
}

void check(const PoolingCase& c, const Tensor<float>& x) {
  const auto attrs = attrs_of(c);
  Random random(5);
  const Tensor<float> dy = random.coarse(output_shape(c));
  Tensor<float> y(dy.shape());
  Tensor<float> expected_dx(c.x);
  std::fill(expected_dx.begin(), expected_dx.end(), 0.0F);
  for_winners(c, x, [&](int64_t output, int64_t winner) { expected_dx[winner] += dy[output]; });

  on_each_machine(y, [&] {
    pooling_runner().run(GPUNN_OP_MAX_POOL2D, &attrs, {x}, {y});
    bool right = true;
    for_winners(c, x, [&](int64_t output, int64_t winner) {
      right = right && (y[output] == x[winner] || (std::isnan(y[output]) && std::isnan(x[winner])));
    });
    CHECK(right);
  });
  Tensor<float> dx(c.x);
  on_each_machine(dx, [&] {
    pooling_runner().run(GPUNN_OP_MAX_POOL2D_BACKWARD, &attrs, {dy, x, y}, {dx});
    // dy is of whole numbers, so that sums are exact; -0 and 0 are one.
    CHECK(dx.values() == expected_dx.values());
  });
}

}  // namespace

TEST_CASE("max pooling and its backward, with ties") {
  const PoolingCase c =
      GENERATE(PoolingCase{{128, 6, 24, 24}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{7, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0}},
               PoolingCase{{2, 3, 9, 11}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{2, 2, 5, 66}, {2, 2}, {2, 2}, {0, 0}},
               PoolingCase{{1, 1, 2, 2}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{3, 1, 2, 3}, {2, 2}, {2, 2}, {0, 0}},
               PoolingCase{{1, 2, 4, 35}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{2, 3, 13, 17}, {3, 3}, {2, 2}, {1, 1}},
               PoolingCase{{2, 1, 10, 10}, {3, 2}, {1, 3}, {1, 0}}, PoolingCase{{1, 4, 7, 5}, {7, 5}, {1, 1}, {0, 0}},
               PoolingCase{{2, 2, 6, 6}, {1, 1}, {1, 1}, {0, 0}}, PoolingCase{{2, 2, 6, 6}, {1, 1}, {4, 5}, {0, 0}},
               PoolingCase{{0, 2, 6, 6}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{1, 1, 1, 1}, {2, 2}, {2, 2}, {1, 1}},
               PoolingCase{{2, 3, 8, 8}, {2, 2}, {2, 2}, {1, 1}}, PoolingCase{{40, 8, 20, 20}, {5, 5}, {3, 3}, {2, 2}});
  Random random(21);
  SECTION("few different values") { check(c, random.coarse(c.x)); }
  SECTION("all below any padding") { check(c, random.tensor(c.x, -9.0F, -8.0F)); }
  SECTION("some NaN") {
    Tensor<float> x = random.coarse(c.x);
    for (int64_t i = 0; i < x.size(); i += 5) x[i] = kNan;
    check(c, x);
  }
  SECTION("infinities") {
    Tensor<float> x = random.coarse(c.x);
    for (int64_t i = 0; i < x.size(); ++i) {
      if (x[i] < 0) x[i] = -std::numeric_limits<float>::infinity();
    }
    check(c, x);
  }
}

// Whole numbers up to 4 and their sums are exact in half precision, so that the kernels of f32 say what is right.
TEMPLATE_TEST_CASE("max pooling of half precision is that of f32", "", gpunn::BFloat16, gpunn::Half) {
  const PoolingCase c = GENERATE(
      PoolingCase{{128, 6, 24, 24}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{2, 3, 9, 11}, {2, 2}, {2, 2}, {0, 0}},
      PoolingCase{{1, 2, 67, 66}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{2, 3, 13, 17}, {3, 3}, {2, 2}, {1, 1}},
      PoolingCase{{0, 2, 6, 6}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{40, 8, 20, 20}, {5, 5}, {3, 3}, {2, 2}});
  const auto attrs = attrs_of(c);
  Random random(23);
  const Tensor<float> x = random.coarse(c.x), dy = random.coarse(output_shape(c));
  Tensor<float> y(dy.shape()), dx(c.x);
  pooling_runner().run(GPUNN_OP_MAX_POOL2D, &attrs, {x}, {y});
  pooling_runner().run(GPUNN_OP_MAX_POOL2D_BACKWARD, &attrs, {dy, x, y}, {dx});

  const auto narrowed = [](const Tensor<float>& wide) {
    Tensor<TestType> narrow(wide.shape());
    for (int64_t i = 0; i < wide.size(); ++i) narrow[i] = TestType(wide[i]);
    return narrow;
  };
  const auto same = [](const Tensor<TestType>& found, const Tensor<float>& expected) {
    for (int64_t i = 0; i < found.size(); ++i) {
      if (static_cast<float>(found[i]) != expected[i]) return false;
    }
    return true;
  };
  const Tensor<TestType> half_x = narrowed(x), half_dy = narrowed(dy), half_y = narrowed(y);
  Tensor<TestType> found_y(y.shape()), found_dx(c.x);
  for (const int threads : {1, 3}) {
    gpunn::cpu::set_thread_count(threads);
    const Runner runner(gpunn::cpu::add_pooling_kernels);
    runner.run(GPUNN_OP_MAX_POOL2D, &attrs, {half_x}, {found_y});
    CHECK(same(found_y, y));
    runner.run(GPUNN_OP_MAX_POOL2D_BACKWARD, &attrs, {half_dy, half_x, half_y}, {found_dx});
    CHECK(same(found_dx, dx));
  }
  gpunn::cpu::set_thread_count(0);
}

TEST_CASE("average pooling and its backward") {
  const PoolingCase c =
      GENERATE(PoolingCase{{7, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{2, 3, 9, 11}, {2, 2}, {2, 2}, {0, 0}},
               PoolingCase{{2, 3, 13, 17}, {3, 3}, {2, 2}, {1, 1}}, PoolingCase{{3, 64, 7, 7}, {7, 7}, {7, 7}, {0, 0}},
               PoolingCase{{2, 2, 9, 6}, {3, 6}, {1, 1}, {0, 0}}, PoolingCase{{2, 2, 6, 6}, {1, 1}, {4, 5}, {0, 0}},
               PoolingCase{{0, 2, 6, 6}, {2, 2}, {2, 2}, {0, 0}}, PoolingCase{{1, 1, 1, 1}, {2, 2}, {2, 2}, {1, 1}},
               PoolingCase{{40, 8, 20, 20}, {5, 5}, {3, 3}, {2, 2}});
  const bool counted = GENERATE(false, true);
  gpunn_pool2d_attrs attrs = attrs_of(c);
  attrs.count_padding = counted ? 1 : 0;
  for (std::size_t i = 0; i < 2; ++i) attrs.input_size[i] = static_cast<int32_t>(c.x[2 + i]);
  Random random(22);
  const Tensor<float> x = random.tensor(c.x, -1.0F, 1.0F), dy = random.tensor(output_shape(c), -1.0F, 1.0F);
  std::vector<double> y_expected, dx_expected(static_cast<std::size_t>(x.size()), 0.0);
  const Shape shape = output_shape(c);
  for (int64_t output = 0; output < dy.size(); ++output) {
    const int64_t plane = output / (shape[2] * shape[3]);
    const int64_t top = output / shape[3] % shape[2] * c.stride[0] - c.pad[0];
    const int64_t left = output % shape[3] * c.stride[1] - c.pad[1];
    std::vector<int64_t> held;
    for (int64_t h = top; h < top + c.window[0]; ++h) {
      for (int64_t w = left; w < left + c.window[1]; ++w) {
        if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3]) held.push_back((plane * c.x[2] + h) * c.x[3] + w);
      }
    }
    const double divisor = counted ? static_cast<double>(c.window[0]) * c.window[1] : static_cast<double>(held.size());
    double sum = 0;
    for (const int64_t at : held) {
      sum += x[at];
      dx_expected[static_cast<std::size_t>(at)] += dy[output] / divisor;
    }
    y_expected.push_back(sum / divisor);
  }
  Tensor<float> y(shape), dx(c.x);
  const auto close = [](const Tensor<float>& found, const std::vector<double>& expected) {
    for (int64_t i = 0; i < found.size(); ++i) {
      if (!(std::abs(found[i] - expected[static_cast<std::size_t>(i)]) < 1e-6)) return false;
    }
    return true;
  };
  on_each_machine(y, [&] {
    pooling_runner().run(GPUNN_OP_AVG_POOL2D, &attrs, {x}, {y});
    CHECK(close(y, y_expected));
  });
  on_each_machine(dx, [&] {
    pooling_runner().run(GPUNN_OP_AVG_POOL2D_BACKWARD, &attrs, {dy}, {dx});
    CHECK(close(dx, dx_expected));
  });
}

TEST_CASE("pooling refuses windows that make no sense") {
  const Tensor<float> x({1, 1, 4, 4});
  Tensor<float> y({1, 1, 2, 2});
  const auto refusal = [&](const PoolingCase& c) {
    const auto attrs = attrs_of(c);
    return pooling_runner().refusal(GPUNN_OP_MAX_POOL2D, &attrs, {x}, {y});
  };
  CHECK(refusal({{}, {2, 2}, {2, 2}, {0, 0}}).empty());
  CHECK_THAT(refusal({{}, {0, 2}, {2, 2}, {0, 0}}), Contains("window 0x2 must be 1 or more"));
  CHECK_THAT(refusal({{}, {2, 2}, {2, 0}, {0, 0}}), Contains("stride"));
  CHECK_THAT(refusal({{}, {2, 2}, {2, 2}, {2, 0}}), Contains("half the window"));
  CHECK_THAT(refusal({{}, {2, 2}, {2, 2}, {0, -1}}), Contains("pad 0x-1 must be 0 or more"));
  CHECK_THAT(refusal({{}, {5, 2}, {2, 2}, {0, 0}}), Contains("larger than the padded input"));
  CHECK(refusal({{}, {INT32_MAX, 2}, {2, 2}, {INT32_MAX / 2, 0}}).empty());  // huge, but it has two places
  CHECK_THAT(refusal({{}, {3, 2}, {2, 2}, {0, 0}}), Contains("y must be f32[1, 1, 1, 2], is f32[1, 1, 2, 2]"));
  CHECK_THAT(pooling_runner().refusal(GPUNN_OP_MAX_POOL2D, nullptr, {x}, {y}), Contains("attributes"));
  const auto attrs = attrs_of({{}, {2, 2}, {2, 2}, {0, 0}});
  Tensor<float> dx({1, 1, 4, 5});
  CHECK_THAT(pooling_runner().refusal(GPUNN_OP_MAX_POOL2D_BACKWARD, &attrs, {y, x, y}, {dx}),
             Contains("dx must be f32[1, 1, 4, 4], is f32[1, 1, 4, 5]"));
  Tensor<float> tall({1, 1, 6, 4});
  gpunn_pool2d_attrs back = attrs;
  back.input_size[0] = back.input_size[1] = 4;
  CHECK_THAT(pooling_runner().refusal(GPUNN_OP_AVG_POOL2D_BACKWARD, &back, {y}, {tall}),
             Contains("dx must be f32[1, 1, 4, 4], is f32[1, 1, 6, 4]"));
  CHECK_THAT(pooling_runner().refusal(GPUNN_OP_AVG_POOL2D_BACKWARD, &back, {y}, {dx}),
             Contains("dx must be f32[1, 1, 4, 4], is f32[1, 1, 4, 5]"));
}
