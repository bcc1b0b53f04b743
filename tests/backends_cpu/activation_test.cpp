#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& activation_runner() {
  static const Runner made(gpunn::cpu::add_kernels);
  return made;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Every 1009th float between -limit and limit, denormals too.
Tensor<float> floats_within(float limit) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < __builtin_bit_cast(uint32_t, limit); bits += 1009) {
    values.push_back(__builtin_bit_cast(float, bits));
    values.push_back(-values.back());
  }
  const Shape shape{static_cast<int64_t>(values.size())};
  return Tensor<float>(shape, values);
}

// The largest error of the op in units of roundoff(x, exact result), on every instruction set.
double worst(int32_t op, const void* attrs, const Tensor<float>& x, const std::function<double(double)>& exact,
             const std::function<double(double, double)>& unit) {
  double largest = 0;
  Tensor<float> y(x.shape());
  const gpunn::cpu::Isa before = gpunn::cpu::active_isa();
  for (const gpunn::cpu::Isa isa : gpunn::cpu::usable_isas()) {
    gpunn::cpu::set_active_isa(isa);
    activation_runner().run(op, attrs, {x}, {y});
    for (int64_t i = 0; i < x.shape()[0]; ++i) {
      const double wanted = exact(x[i]);
      largest = std::max(largest, std::abs(y[i] - wanted) / unit(x[i], wanted));
    }
  }
  gpunn::cpu::set_active_isa(before);
  return largest;
}

double ulp(double value) { return std::max(std::ldexp(std::abs(value), -23), std::ldexp(1.0, -126)); }

}  // namespace

TEST_CASE("ReLU and its leaky kin are exact at any size, instruction set and number of threads") {
  const int64_t n = GENERATE(0, 1, 17, 97, 50021);
  Random random(7);
  const Tensor<float> a = random.coarse({n});
  const Tensor<float> b = random.tensor({n});
  Tensor<float> y({n});
  const gpunn_leaky_relu_attrs leaky{sizeof(leaky), 0.1F};
  bool right = true;
  on_each_machine(y, [&] {
    activation_runner().run(GPUNN_OP_RELU, nullptr, {b}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == std::max(b[i], 0.0F);
  });
  on_each_machine(y, [&] {
    activation_runner().run(GPUNN_OP_RELU_BACKWARD, nullptr, {b, a}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == (a[i] > 0.0F ? b[i] : 0.0F);
  });
  on_each_machine(y, [&] {
    activation_runner().run(GPUNN_OP_LEAKY_RELU, &leaky, {b}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == (b[i] > 0.0F ? b[i] : 0.1F * b[i]);
  });
  on_each_machine(y, [&] {
    activation_runner().run(GPUNN_OP_LEAKY_RELU_BACKWARD, &leaky, {b, a}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == (a[i] > 0.0F ? b[i] : 0.1F * b[i]);
  });
  CHECK(right);
}

TEST_CASE("activations work in place") {
  Random random(8);
  const Tensor<float> a = random.tensor({40009});
  const Tensor<float> b = random.tensor({40009});
  for (const int32_t op : {GPUNN_OP_RELU, GPUNN_OP_SIGMOID, GPUNN_OP_TANH, GPUNN_OP_SILU}) {
    Tensor<float> apart(a.shape()), here(a);
    activation_runner().run(op, nullptr, {a}, {apart});
    activation_runner().run(op, nullptr, {here}, {here});
    CHECK(same_bits(here, apart));
    Tensor<float> gradient(a);
    activation_runner().run(op + 1, nullptr, {a, b}, {apart});
    activation_runner().run(op + 1, nullptr, {gradient, b}, {gradient});
    CHECK(same_bits(gradient, apart));
  }
}

TEST_CASE("ReLU keeps NaN, and its backward passes nothing where y is 0 or NaN") {
  const Tensor<float> x({6}, {-1.0F, 0.0F, 2.0F, kNan, kInf, -kInf});
  Tensor<float> y(x.shape());
  activation_runner().run(GPUNN_OP_RELU, nullptr, {x}, {y});
  CHECK(y[0] == 0.0F);
  CHECK(y[2] == 2.0F);
  CHECK(std::isnan(y[3]));
  CHECK(y[4] == kInf);
  CHECK(y[5] == 0.0F);

  const Tensor<float> dy({6}, {1, 2, 3, 4, 5, 6});
  Tensor<float> dx(x.shape());
  activation_runner().run(GPUNN_OP_RELU_BACKWARD, nullptr, {dy, y}, {dx});
  CHECK(dx.values() == std::vector<float>{0, 0, 3, 0, 5, 0});
}

TEST_CASE("smooth activations are right to a few units of the last place, at every magnitude") {
  const Tensor<float> x = floats_within(200.0F);
  const auto of_result = [](double, double y) { return ulp(y); };
  const auto of_input = [](double v, double) { return ulp(v); };
  CHECK(worst(GPUNN_OP_SIGMOID, nullptr, x, sigmoid, of_result) < 4);
  CHECK(worst(
            GPUNN_OP_TANH, nullptr, x, [](double v) { return std::tanh(v); }, of_result) < 4);
  CHECK(worst(
            GPUNN_OP_SILU, nullptr, x, [](double v) { return v * sigmoid(v); },
            [](double v, double y) { return ulp(y) + std::abs(v) * std::ldexp(1.0, -126); }) < 4);
  gpunn_gelu_attrs gelu{sizeof(gelu), 0};
  CHECK(worst(
            GPUNN_OP_GELU, &gelu, x, [](double v) { return v / 2 * (1 + std::erf(v / std::numbers::sqrt2)); },
            of_input) < 4);
  gelu.tanh = 1;
  const auto by_tanh = [](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  };
  CHECK(worst(GPUNN_OP_GELU, &gelu, x, by_tanh, of_input) < 4);
}

TEST_CASE("activations keep NaN and reach their limits") {
  const Tensor<float> x({3}, {kNan, kInf, -kInf});
  Tensor<float> y(x.shape());
  activation_runner().run(GPUNN_OP_SIGMOID, nullptr, {x}, {y});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 1.0F);
  CHECK(y[2] == 0.0F);
  activation_runner().run(GPUNN_OP_TANH, nullptr, {x}, {y});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 1.0F);
  CHECK(y[2] == -1.0F);
  const gpunn_gelu_attrs by_erf{sizeof(by_erf), 0}, by_tanh{sizeof(by_tanh), 1};
  for (const gpunn_gelu_attrs* attrs : {&by_erf, &by_tanh}) {
    activation_runner().run(GPUNN_OP_GELU, attrs, {x}, {y});
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == kInf);
    CHECK(std::isnan(y[2]));
  }
}

TEST_CASE("activations refuse what they do not serve, and say why") {
  const Tensor<float> x({2, 3});
  const Tensor<int32_t> whole({2, 3});
  Tensor<float> y({2, 3});
  CHECK_THAT(activation_runner().refusal(GPUNN_OP_TANH, nullptr, {whole}, {y}),
             Contains("must be f32 or bf16 or f16[...], is i32"));
  CHECK_THAT(activation_runner().refusal(GPUNN_OP_SILU, nullptr, {View(x).strided({1, 2})}, {y}), Contains("packed"));
  CHECK_THAT(activation_runner().refusal(GPUNN_OP_GELU, nullptr, {x}, {y}), Contains("attributes"));
  CHECK_THAT(activation_runner().refusal(GPUNN_OP_LEAKY_RELU_BACKWARD, nullptr, {x, x}, {y}), Contains("attributes"));
  CHECK_THAT(activation_runner().refusal(GPUNN_OP_SIGMOID_BACKWARD, nullptr, {x}, {y}),
             Contains("takes 2 inputs, not 1"));
}
