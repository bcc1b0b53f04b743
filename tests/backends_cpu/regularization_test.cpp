#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& regularization_runner() {
  static const Runner made(gpunn::cpu::add_regularization_kernels);
  return made;
}
const Runner& reductions() {
  static const Runner made(gpunn::cpu::add_reduction_kernels);
  return made;
}

float norm_of(const Tensor<float>& x) {
  Tensor<float> y(Shape{});
  reductions().run(GPUNN_OP_NORM, nullptr, {x}, {y});
  return y[0];
}

}  // namespace

TEST_CASE("a norm is that of its elements, the same bits on any number of threads") {
  const int64_t n = GENERATE(0, 1, 15, 16, 17, 16384, 16385, 300007);
  Random random(17);
  const Tensor<float> x = random.tensor({n});
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  Tensor<float> y(Shape{});
  on_each_machine(y, [&] {
    reductions().run(GPUNN_OP_NORM, nullptr, {x}, {y});
    CHECK(std::abs(static_cast<double>(y[0]) - std::sqrt(sum)) <= 1e-7 * std::sqrt(sum));
  });
}

TEST_CASE("a norm of what f32 can't square") {
  CHECK(norm_of(Tensor<float>({2}, {3e30F, 4e30F})) == 5e30F);
  CHECK(std::abs(norm_of(Tensor<float>({2}, {3e-30F, 4e-30F})) / 5e-30F - 1.0F) < 1e-6F);
  CHECK(norm_of(Tensor<float>({2}, {-kInf, 1})) == kInf);
  CHECK(std::isnan(norm_of(Tensor<float>({2}, {kNan, 1}))));
}

TEST_CASE("a vector that is too long is scaled, in place too") {
  Random random(18);
  const Tensor<float> x = random.tensor({40009});
  const Tensor<float> norm(Shape{}, {4.0F});
  Tensor<float> y(x.shape());
  gpunn_clip_norm_attrs attrs{sizeof(attrs), 2.0F, 0.0F, 0};
  bool right = true;
  on_each_machine(y, [&] {
    regularization_runner().run(GPUNN_OP_CLIP_NORM, &attrs, {x, norm}, {y});
    for (int64_t i = 0; i < x.size(); ++i) right = right && y[i] == 0.5F * x[i];
  });
  CHECK(right);
  Tensor<float> same(x);
  regularization_runner().run(GPUNN_OP_CLIP_NORM, &attrs, {same, norm}, {same});
  CHECK(same_bits(same, y));
  for (const float other : {1.0F, 0.0F, kInf, kNan}) {
    regularization_runner().run(GPUNN_OP_CLIP_NORM, &attrs, {x, Tensor<float>(Shape{}, {other})}, {y});
    CHECK(same_bits(y, x));
  }
  attrs.rescale = 1;
  regularization_runner().run(GPUNN_OP_CLIP_NORM, &attrs, {x, Tensor<float>(Shape{}, {0.5F})}, {y});
  CHECK(y[7] == 4.0F * x[7]);
  attrs.max_norm = 0.0F;
  CHECK_THAT(regularization_runner().refusal(GPUNN_OP_CLIP_NORM, &attrs, {x, norm}, {y}),
             Contains("max_norm 0 must be above 0"));
}

TEST_CASE("the gradient of a sum of absolute values goes to what decays") {
  const int64_t n = 40009;
  const int64_t decayed = GENERATE(0, 1, 30000, 40009);
  Random random(19);
  Tensor<float> w = random.tensor({n});
  for (int64_t i = 0; i < n; i += 5) w[i] = 0.0F;
  const Tensor<float> start = random.tensor({n});
  const gpunn_l1_attrs attrs{sizeof(attrs), 0.25F, decayed};
  Tensor<float> g(start);
  bool right = true;
  on_each_machine(g, [&] {
    std::copy(start.data(), start.data() + n, g.data());
    regularization_runner().run(GPUNN_OP_L1_GRADIENT, &attrs, {g, w}, {g});
    for (int64_t i = 0; i < n; ++i) {
      const float sign = i >= decayed || w[i] == 0.0F ? 0.0F : std::copysign(1.0F, w[i]);
      right = right && g[i] == start[i] + 0.25F * sign;
    }
  });
  CHECK(right);
}
