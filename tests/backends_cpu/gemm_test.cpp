#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

struct Matmul {
  int64_t m;
  int64_t n;
  int64_t k;
  bool transpose_a = false;
  bool transpose_b = false;

  Shape a_shape() const { return transpose_a ? Shape{k, m} : Shape{m, k}; }
  Shape b_shape() const { return transpose_b ? Shape{n, k} : Shape{k, n}; }
  double a(const Tensor<float>& t, int64_t i, int64_t p) const {
    return static_cast<double>(t[transpose_a ? p * m + i : i * k + p]);
  }
  double b(const Tensor<float>& t, int64_t p, int64_t j) const {
    return static_cast<double>(t[transpose_b ? j * k + p : p * n + j]);
  }
};

// The largest |y - exact| over the sum of the products' sizes, which bounds what rounding may do.
double error_of(const Matmul& p, const Tensor<float>& a, const Tensor<float>& b, const float* bias, bool relu,
                const Tensor<float>& y) {
  double worst = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = bias == nullptr ? 0.0 : static_cast<double>(bias[j]);
      double size = std::abs(sum);
      for (int64_t q = 0; q < p.k; ++q) {
        const double product = p.a(a, i, q) * p.b(b, q, j);
        sum += product;
        size += std::abs(product);
      }
      if (relu) sum = std::max(sum, 0.0);
      const double error = std::abs(static_cast<double>(y[i * p.n + j]) - sum);
      if (!(error <= 0)) worst = std::max(worst, std::isnan(error) ? 1e9 : error / std::max(size, 1e-30));
    }
  }
  return worst;
}

void check_matmul(const Matmul& p, unsigned seed) {
  INFO("m " << p.m << ", n " << p.n << ", k " << p.k << ", transposes " << p.transpose_a << p.transpose_b);
  Random random(seed);
  const Tensor<float> a = random.tensor(p.a_shape());
  const Tensor<float> b = random.tensor(p.b_shape());
  const gpunn_matmul_attrs attrs{sizeof(attrs), p.transpose_a, p.transpose_b};
  Tensor<float> y({p.m, p.n});
  on_each_machine(y, [&] {
    std::fill(y.begin(), y.end(), NAN);
    const Runner runner(gpunn::cpu::add_matmul_kernels);
    runner.run(GPUNN_OP_MATMUL, &attrs, {a, b}, {y});
    CHECK(error_of(p, a, b, nullptr, false, y) < 1e-6);
  });
}

}  // namespace

TEST_CASE("matmul is right in all transposes and at sizes that fit no tile") {
  const std::vector<Shape> sizes{{1, 1, 1},     {1, 1, 100},   {2, 3, 1},     {1, 128, 784}, {3, 1, 17},   {128, 1, 2},
                                 {128, 10, 84}, {10, 84, 128}, {13, 33, 65},  {14, 32, 16},  {15, 31, 17}, {29, 65, 3},
                                 {5, 7, 321},   {97, 89, 101}, {64, 16, 640}, {200, 5, 130}, {5, 200, 333}};
  for (const Shape& size : sizes) {
    for (const int transposes : {0, 1, 2, 3}) {
      check_matmul({size[0], size[1], size[2], (transposes & 1) != 0, (transposes & 2) != 0}, 7);
    }
  }
}

TEST_CASE("matmul is right where it takes several blocks of rows, columns and depth") {
  check_matmul({2100, 37, 41, false, false}, 1);
  check_matmul({37, 2100, 41, true, true}, 2);
  check_matmul({75, 70, 1300, false, true}, 3);
  check_matmul({300, 300, 350, false, false}, 4);
  check_matmul({129, 1000, 131, true, false}, 5);
}

TEST_CASE("matmul over an empty inner dimension is zero, and over none of the rows nothing") {
  for (const int transposes : {0, 1, 2, 3}) {
    check_matmul({5, 6, 0, (transposes & 1) != 0, (transposes & 2) != 0}, 1);
    check_matmul({0, 6, 3, (transposes & 1) != 0, (transposes & 2) != 0}, 1);
    check_matmul({4, 0, 3, (transposes & 1) != 0, (transposes & 2) != 0}, 1);
  }
}

TEST_CASE("matmul spreads a NaN to its row and column alone") {
  Random random(3);
  Tensor<float> a = random.tensor({20, 40});
  const Tensor<float> b = random.tensor({40, 50});
  a[7 * 40 + 39] = NAN;
  const gpunn_matmul_attrs attrs{sizeof(attrs), 0, 0};
  Tensor<float> y({20, 50});
  on_each_machine(y, [&] {
    Runner(gpunn::cpu::add_matmul_kernels).run(GPUNN_OP_MATMUL, &attrs, {a, b}, {y});
    for (int64_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 50 == 7));
  });
}

TEST_CASE("matmul with bias and activation adds and clips after the last block") {
  const std::vector<Matmul> problems{{128, 120, 400, false, true}, {128, 10, 84, false, true},
                                     {1, 33, 50, false, true},     {60, 3, 700, false, true},
                                     {35, 47, 0, false, false},    {17, 200, 650, true, false}};
  for (const Matmul& p : problems) {
    for (const bool relu : {false, true}) {
      INFO("m " << p.m << ", n " << p.n << ", k " << p.k << ", relu " << relu);
      Random random(11);
      const Tensor<float> a = random.tensor(p.a_shape());
      const Tensor<float> b = random.tensor(p.b_shape());
      const Tensor<float> bias = random.tensor({p.n}, -3, 3);
      const gpunn_matmul_bias_activation_attrs attrs{sizeof(attrs), p.transpose_a, p.transpose_b,
                                                     relu ? GPUNN_ACTIVATION_RELU : GPUNN_ACTIVATION_NONE};
      Tensor<float> y({p.m, p.n});
      on_each_machine(y, [&] {
        std::fill(y.begin(), y.end(), NAN);
        Runner(gpunn::cpu::add_matmul_kernels).run(GPUNN_OP_MATMUL_BIAS_ACTIVATION, &attrs, {a, b, bias}, {y});
        CHECK(error_of(p, a, b, bias.data(), relu, y) < 1e-6);
      });
    }
  }
}

TEST_CASE("ReLU keeps a NaN, also in a product of few rows") {
  for (const int64_t m : {1, 40}) {
    Tensor<float> a({m, 3});
    std::fill(a.begin(), a.end(), 1.0F);
    a[0] = NAN;
    Tensor<float> b({30, 3});
    std::fill(b.begin(), b.end(), -1.0F);
    Tensor<float> bias({30});
    std::fill(bias.begin(), bias.end(), 0.0F);
    const gpunn_matmul_bias_activation_attrs attrs{sizeof(attrs), 0, 1, GPUNN_ACTIVATION_RELU};
    Tensor<float> y({m, 30});
    on_each_machine(y, [&] {
      Runner(gpunn::cpu::add_matmul_kernels).run(GPUNN_OP_MATMUL_BIAS_ACTIVATION, &attrs, {a, b, bias}, {y});
      for (int64_t i = 0; i < y.size(); ++i) CHECK((i < 30 ? std::isnan(y[i]) : y[i] == 0.0F));
    });
  }
}

TEST_CASE("matmul refuses what it does not serve, with the reason") {
  const Runner runner(gpunn::cpu::add_matmul_kernels);
  const gpunn_matmul_attrs attrs{sizeof(attrs), 0, 0};
  const View a(GPUNN_F32, {4, 3});
  const View b(GPUNN_F32, {3, 5});
  const View y(GPUNN_F32, {4, 5});
  const auto refusal = [&](const Views& inputs, const View& output, const void* with) {
    return runner.refusal(GPUNN_OP_MATMUL, with, inputs, {output});
  };
  CHECK(refusal({a, b}, y, &attrs).empty());
  CHECK_THAT(refusal({a, b}, y, nullptr), Contains("attributes"));
  CHECK_THAT(refusal({a, View(GPUNN_F32, {4, 5})}, y, &attrs), Contains("inner dimension"));
  CHECK_THAT(refusal({a, View(GPUNN_F64, {3, 5})}, y, &attrs), Contains("f32"));
  CHECK_THAT(refusal({a.strided({1, 4}), b}, y, &attrs), Contains("packed"));
  CHECK_THAT(refusal({View(GPUNN_F32, {1, 4, 3}), b}, y, &attrs), Contains("a must have 2 dimensions"));
  CHECK_FALSE(refusal({a, b}, View(GPUNN_F32, {5, 4}), &attrs).empty());
  CHECK_FALSE(refusal({a}, y, &attrs).empty());
  const gpunn_matmul_bias_activation_attrs unknown{sizeof(unknown), 0, 0, 77};
  CHECK_THAT(runner.refusal(GPUNN_OP_MATMUL_BIAS_ACTIVATION, &unknown, {a, b, View(GPUNN_F32, {5})}, {y}),
             Contains("activation"));
}
