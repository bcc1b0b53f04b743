#include <cmath>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& bias_runner() {
  static const Runner made(gpunn::cpu::add_bias_kernels);
  return made;
}

gpunn_bias_activation_backward_attrs with(int32_t activation) {
  return {sizeof(gpunn_bias_activation_backward_attrs), activation};
}

// The sum by channel of dy where y > 0 (everywhere without y).
std::vector<double> channel_sums(const Tensor<float>& dy, const Tensor<float>* y) {
  const int64_t channels = dy.shape()[1];
  int64_t size = 1;
  for (std::size_t i = 2; i < dy.shape().size(); ++i) size *= dy.shape()[i];
  std::vector<double> sums(static_cast<std::size_t>(channels), 0.0);
  for (int64_t i = 0; i < dy.size(); ++i) {
    if (y == nullptr || (*y)[i] > 0.0F)
      sums[static_cast<std::size_t>(i / size % channels)] += static_cast<double>(dy[i]);
  }
  return sums;
}

}  // namespace

TEST_CASE("bias ops at all kinds of shapes") {
  const Shape shape = GENERATE(Shape{1, 1}, Shape{128, 10}, Shape{97, 31}, Shape{1000, 120}, Shape{128, 6, 24, 24},
                               Shape{3, 5, 7}, Shape{2, 3, 1, 1}, Shape{0, 4}, Shape{70000, 3}, Shape{5, 2, 0});
  Random random(11);
  const Tensor<float> x = random.tensor(shape);
  const Tensor<float> y = random.coarse(shape);
  const Tensor<float> bias = random.tensor({shape[1]});
  int64_t size = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) size *= shape[i];

  Tensor<float> sum(shape);
  bool right = true;
  on_each_machine(sum, [&] {
    bias_runner().run(GPUNN_OP_BIAS_ADD, nullptr, {x, bias}, {sum});
    for (int64_t i = 0; i < x.size(); ++i) right = right && sum[i] == x[i] + bias[i / size % shape[1]];
  });
  CHECK(right);

  Tensor<float> db({shape[1]});
  const double tolerance = 3e-6 * std::sqrt(static_cast<double>(std::max<int64_t>(1, x.size() / shape[1])));
  on_each_machine(db, [&] {
    bias_runner().run(GPUNN_OP_BIAS_BACKWARD, nullptr, {x}, {db});
    CHECK(worst_error(db, channel_sums(x, nullptr)) < tolerance);
  });

  const auto relu = with(GPUNN_ACTIVATION_RELU);
  Tensor<float> dx(shape);
  on_each_machine(db, [&] {
    bias_runner().run(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, &relu, {x, y}, {dx, db});
    CHECK(worst_error(db, channel_sums(x, &y)) < tolerance);
    for (int64_t i = 0; i < x.size(); ++i) right = right && dx[i] == (y[i] > 0.0F ? x[i] : 0.0F);
  });
  CHECK(right);
  CHECK(dx.intact());
  const Tensor<float> db_apart(db);

  Tensor<float> in_place(x);
  bias_runner().run(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, &relu, {in_place, y}, {in_place, db});
  CHECK(same_bits(in_place, dx));
  CHECK(same_bits(db, db_apart));
  Tensor<float> added(x);
  bias_runner().run(GPUNN_OP_BIAS_ADD, nullptr, {added, bias}, {added});
  CHECK(same_bits(added, sum));
}

TEST_CASE("without activation the fused bias backward passes dy on") {
  Random random(12);
  const Tensor<float> dy = random.tensor({64, 5, 9, 9});
  const Tensor<float> y = random.tensor(dy.shape(), -2.0F, -1.0F);
  Tensor<float> dx(dy.shape());
  Tensor<float> db({5});
  const auto none = with(GPUNN_ACTIVATION_NONE);
  bias_runner().run(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, &none, {dy, y}, {dx, db});
  CHECK(same_bits(dx, dy));
  CHECK(worst_error(db, channel_sums(dy, nullptr)) < 1e-4);
  Tensor<float> in_place(dy);
  bias_runner().run(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, &none, {in_place, y}, {in_place, db});
  CHECK(same_bits(in_place, dy));
}

TEST_CASE("bias ops refuse other shapes and activations") {
  const Tensor<float> x({2, 3, 4});
  const Tensor<float> bias({3});
  Tensor<float> y({2, 3, 4});
  Tensor<float> wrong({4});
  CHECK_THAT(bias_runner().refusal(GPUNN_OP_BIAS_ADD, nullptr, {x, wrong}, {y}),
             Contains("b must be f32[C] = [3], is f32[4]"));
  CHECK_THAT(bias_runner().refusal(GPUNN_OP_BIAS_ADD, nullptr, {bias, bias}, {wrong}),
             Contains("x must be f32[N, C, ...]"));
  CHECK_THAT(bias_runner().refusal(GPUNN_OP_BIAS_BACKWARD, nullptr, {bias}, {wrong}),
             Contains("dy must be f32[N, C, ...]"));
  Tensor<float> db({3});
  const auto odd = with(42);
  CHECK_THAT(bias_runner().refusal(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, &odd, {x, x}, {y, db}), Contains("activation"));
  CHECK_THAT(bias_runner().refusal(GPUNN_OP_BIAS_ACTIVATION_BACKWARD, nullptr, {x, x}, {y, db}),
             Contains("attributes"));
}
