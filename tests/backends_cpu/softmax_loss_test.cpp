#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"
#include "simd/softmax.hpp"

using namespace cpu_test;

namespace {

const Runner& softmax() {
  static const Runner made(gpunn::cpu::add_softmax_kernels);
  return made;
}
const Runner& losses() {
  static const Runner made(gpunn::cpu::add_loss_kernels);
  return made;
}

const gpunn::cpu::SoftmaxKernels& softmax_kernels() { return GPUNN_SELECT_ISA(softmax_kernels); }

using Doubles = std::vector<double>;

double at(const Tensor<float>& x, int64_t i) { return static_cast<double>(x[i]); }

Doubles log_softmax_of(const Tensor<float>& x) {
  const int64_t columns = x.shape().back();
  Doubles y;
  for (int64_t row = 0; row < x.size() / columns; ++row) {
    double most = at(x, row * columns);
    for (int64_t c = 0; c < columns; ++c) most = std::max(most, at(x, row * columns + c));
    double sum = 0.0;
    for (int64_t c = 0; c < columns; ++c) sum += std::exp(at(x, row * columns + c) - most);
    for (int64_t c = 0; c < columns; ++c) y.push_back(at(x, row * columns + c) - most - std::log(sum));
  }
  return y;
}

Tensor<int32_t> labels_for(const Tensor<float>& x, unsigned seed) {
  Random random(seed);
  Tensor<int32_t> label({x.shape()[0]});
  for (int32_t& value : label) value = static_cast<int32_t>(random.integer(0, x.shape()[1] - 1));
  return label;
}

// Units in the last place of f32 at that value.
double float_ulp(double value) {
  const auto near = static_cast<float>(value);
  return static_cast<double>(std::nextafter(near, kInf) - near);
}

}  // namespace

TEST_CASE("exp is within 2 ulp on every instruction set") {
  std::vector<float> inputs;
  for (float x = -104.0F; x < 88.72F; x += 0.00037F) inputs.push_back(x);
  Random random(3);
  for (int i = 0; i < 200000; ++i) inputs.push_back(random.number(-1.5F, 1.5F));
  const Tensor<float> x({static_cast<int64_t>(inputs.size())}, inputs);
  Tensor<float> y(x.shape());
  double worst = 0.0;
  on_each_machine(y, [&] {
    softmax_kernels().exp(x.data(), y.data(), x.size());
    for (int64_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(at(x, i));
      worst = std::max(worst, std::abs(at(y, i) - exact) / float_ulp(exact));
    }
  });
  CHECK(worst < 2.0);
  const Tensor<float> special({8}, {0.0F, -0.0F, kInf, -kInf, kNan, 89.0F, -150.0F, -kNan});
  Tensor<float> found({8});
  on_each_machine(found, [&] {
    softmax_kernels().exp(special.data(), found.data(), 8);
    CHECK(found[0] == 1.0F);
    CHECK(found[1] == 1.0F);
    CHECK(found[2] == kInf);
    CHECK(found[3] == 0.0F);
    CHECK(std::isnan(found[4]));
    CHECK(found[5] == kInf);
    CHECK(found[6] == 0.0F);
    CHECK(std::isnan(found[7]));
  });
}

TEST_CASE("softmax, log-softmax and their backwards") {
  const Shape shape = GENERATE(Shape{1, 1}, Shape{128, 10}, Shape{3, 17}, Shape{513, 7}, Shape{5, 2047}, Shape{3, 2048},
                               Shape{7, 5003}, Shape{0, 10}, Shape{2001, 1});
  Random random(31);
  const Tensor<float> x = random.tensor(shape, -12.0F, 12.0F);
  const Tensor<float> dy = random.tensor(shape);
  const int64_t columns = shape.back();
  const Doubles logs = log_softmax_of(x);

  Tensor<float> y(shape);
  on_each_machine(y, [&] {
    softmax().run(GPUNN_OP_LOG_SOFTMAX, nullptr, {x}, {y});
    CHECK(worst_error(y, logs) < 1e-6);
  });
  Doubles expected(logs.size());
  Tensor<float> dx(shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    double sum = 0.0;
    for (int64_t c = i / columns * columns; c < (i / columns + 1) * columns; ++c) sum += at(dy, c);
    expected[static_cast<std::size_t>(i)] = at(dy, i) - std::exp(at(y, i)) * sum;
  }
  on_each_machine(dx, [&] {
    softmax().run(GPUNN_OP_LOG_SOFTMAX_BACKWARD, nullptr, {dy, y}, {dx});
    CHECK(worst_error(dx, expected) < 5e-6);
  });

  for (std::size_t i = 0; i < logs.size(); ++i) expected[i] = std::exp(logs[i]);
  on_each_machine(y, [&] {
    softmax().run(GPUNN_OP_SOFTMAX, nullptr, {x}, {y});
    CHECK(worst_error(y, expected, 1e-30) < 3e-6);
  });
  for (int64_t i = 0; i < x.size(); ++i) {
    double dot = 0.0;
    for (int64_t c = i / columns * columns; c < (i / columns + 1) * columns; ++c) dot += at(dy, c) * at(y, c);
    expected[static_cast<std::size_t>(i)] = at(y, i) * (at(dy, i) - dot);
  }
  on_each_machine(dx, [&] {
    softmax().run(GPUNN_OP_SOFTMAX_BACKWARD, nullptr, {dy, y}, {dx});
    CHECK(worst_error(dx, expected) < 2e-6);
  });
}

TEST_CASE("softmax of extreme rows") {
  const Tensor<float> x({4, 3}, {1e30F, -1e30F, 1e30F, -kInf, 0.0F, 0.0F, 5.0F, kNan, 1.0F, 88.0F, 88.0F, 88.0F});
  Tensor<float> y(x.shape());
  on_each_machine(y, [&] {
    softmax().run(GPUNN_OP_SOFTMAX, nullptr, {x}, {y});
    CHECK(y[0] == 0.5F);
    CHECK(y[1] == 0.0F);
    CHECK(y[3] == 0.0F);
    CHECK(y[4] == 0.5F);
    for (int i = 6; i < 9; ++i) CHECK(std::isnan(y[i]));
    CHECK(std::abs(y[9] - 1.0F / 3.0F) < 1e-7F);
  });
}

TEST_CASE("the losses equal their definition") {
  const Shape shape =
      GENERATE(Shape{1, 1}, Shape{128, 10}, Shape{301, 3}, Shape{3, 2500}, Shape{0, 5}, Shape{40, 1000});
  Random random(41);
  const Tensor<float> x = random.tensor(shape, -8.0F, 8.0F);
  const Tensor<int32_t> label = labels_for(x, 42);
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  const Tensor<float> dloss = random.tensor({rows});
  const Doubles logs = log_softmax_of(x);
  Doubles expected_loss;
  Doubles expected_dx(logs.size());
  Doubles expected_dlogp(logs.size(), 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    const auto hit = static_cast<std::size_t>(row * columns + label[row]);
    expected_loss.push_back(-logs[hit]);
    expected_dlogp[hit] = -at(dloss, row);
    for (int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(row * columns + c);
      expected_dx[i] = at(dloss, row) * (std::exp(logs[i]) - (i == hit ? 1.0 : 0.0));
    }
  }

  Tensor<float> loss({rows});
  Tensor<float> logp(shape);
  on_each_machine(logp, [&] {
    losses().run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, nullptr, {x, label}, {loss, logp});
    CHECK(worst_error(loss, expected_loss) < 1e-6);
    CHECK(worst_error(logp, logs) < 1e-6);
  });
  Tensor<float> dx(shape);
  on_each_machine(dx, [&] {
    losses().run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, nullptr, {dloss, logp, label}, {dx});
    CHECK(worst_error(dx, expected_dx) < 5e-6);
  });
  Tensor<float> nll({rows});
  losses().run(GPUNN_OP_NLL_LOSS, nullptr, {logp, label}, {nll});
  CHECK(same_bits(nll, loss));
  const gpunn_classes_attrs classes{sizeof(classes), static_cast<int32_t>(columns)};
  on_each_machine(dx, [&] {
    losses().run(GPUNN_OP_NLL_LOSS_BACKWARD, &classes, {dloss, label}, {dx});
    CHECK(worst_error(dx, expected_dlogp) == 0.0);
  });
}

TEST_CASE("cross-entropy with soft targets equals its definition") {
  const Shape shape =
      GENERATE(Shape{1, 1}, Shape{128, 10}, Shape{301, 3}, Shape{3, 9000}, Shape{0, 5}, Shape{40, 1000});
  Random random(71);
  const Tensor<float> x = random.tensor(shape, -8.0F, 8.0F);
  const Tensor<float> target = random.tensor(shape, 0.0F, 1.0F);
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  const Tensor<float> dloss = random.tensor({rows});
  const Doubles logs = log_softmax_of(x);
  Doubles expected_loss;
  Doubles expected_dx;
  for (int64_t row = 0; row < rows; ++row) {
    double loss = 0.0;
    double sum = 0.0;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      loss -= at(target, i) * logs[static_cast<std::size_t>(i)];
      sum += at(target, i);
    }
    expected_loss.push_back(loss);
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      expected_dx.push_back(at(dloss, row) * (std::exp(logs[static_cast<std::size_t>(i)]) * sum - at(target, i)));
    }
  }
  Tensor<float> loss({rows});
  Tensor<float> logp(shape);
  on_each_machine(logp, [&] {
    losses().run(GPUNN_OP_SOFT_CROSS_ENTROPY, nullptr, {x, target}, {loss, logp});
    CHECK(worst_error(loss, expected_loss) < 2e-6);
    CHECK(worst_error(logp, logs) < 1e-6);
  });
  Tensor<float> dx(shape);
  on_each_machine(dx, [&] {
    losses().run(GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, nullptr, {dloss, logp, target}, {dx});
    CHECK(worst_error(dx, expected_dx) < 2e-5);
  });
}

TEST_CASE("a class that is impossible and not aimed at costs nothing") {
  const Tensor<float> x({1, 3}, {0.0F, -kInf, 0.0F});
  const Tensor<float> target({1, 3}, {0.5F, 0.0F, 0.5F});
  const Tensor<float> dloss({1}, {1});
  Tensor<float> loss({1});
  Tensor<float> logp({1, 3});
  Tensor<float> dx({1, 3});
  losses().run(GPUNN_OP_SOFT_CROSS_ENTROPY, nullptr, {x, target}, {loss, logp});
  CHECK(std::abs(loss[0] - std::log(2.0F)) < 1e-6F);
  losses().run(GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, nullptr, {dloss, logp, target}, {dx});
  for (int i = 0; i < 3; ++i) CHECK(std::abs(dx[i]) < 1e-6F);
}

TEST_CASE("a label that names no class gives a NaN loss and no gradient") {
  Random random(51);
  const Tensor<float> x = random.tensor({4, 3});
  const Tensor<int32_t> label({4}, {0, -1, 3, INT32_MIN});
  const Tensor<float> dloss({4}, {1, 1, 1, 1});
  Tensor<float> loss({4});
  Tensor<float> logp({4, 3});
  losses().run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, nullptr, {x, label}, {loss, logp});
  CHECK(std::isfinite(loss[0]));
  for (int row = 1; row < 4; ++row) CHECK(std::isnan(loss[row]));
  losses().run(GPUNN_OP_NLL_LOSS, nullptr, {logp, label}, {loss});
  for (int row = 1; row < 4; ++row) CHECK(std::isnan(loss[row]));
  Tensor<float> dx({4, 3});
  losses().run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, nullptr, {dloss, logp, label}, {dx});
  for (int i = 3; i < 12; ++i) CHECK(dx[i] == 0.0F);
  const gpunn_classes_attrs classes{sizeof(classes), 3};
  losses().run(GPUNN_OP_NLL_LOSS_BACKWARD, &classes, {dloss, label}, {dx});
  CHECK(dx.values() == std::vector<float>{-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("mean squared error by row") {
  const Shape shape = GENERATE(Shape{1}, Shape{7, 3}, Shape{2, 3, 4, 5}, Shape{3, 20011}, Shape{0, 2}, Shape{5000, 13});
  Random random(61);
  const Tensor<float> x = random.tensor(shape);
  const Tensor<float> target = random.tensor(shape);
  const int64_t rows = shape[0];
  const int64_t columns = rows == 0 ? 2 : x.size() / rows;
  const Tensor<float> dloss = random.tensor({rows});
  Doubles expected(static_cast<std::size_t>(rows), 0.0);
  Doubles expected_dx;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double difference = at(x, i) - at(target, i);
    expected[static_cast<std::size_t>(i / columns)] += difference * difference / static_cast<double>(columns);
    expected_dx.push_back(at(dloss, i / columns) * 2.0 * difference / static_cast<double>(columns));
  }
  Tensor<float> loss({rows});
  on_each_machine(loss, [&] {
    losses().run(GPUNN_OP_MSE_LOSS, nullptr, {x, target}, {loss});
    CHECK(worst_error(loss, expected) < 2e-6);
  });
  Tensor<float> dx(shape);
  on_each_machine(dx, [&] {
    losses().run(GPUNN_OP_MSE_LOSS_BACKWARD, nullptr, {dloss, x, target}, {dx});
    CHECK(worst_error(dx, expected_dx) < 1e-6);
  });
}

TEST_CASE("softmax and losses refuse other shapes and types") {
  const Tensor<float> x({4, 3});
  const Tensor<float> scalar({});
  const Tensor<int32_t> label({4});
  const Tensor<int64_t> wide({4});
  Tensor<float> loss({4});
  Tensor<float> y({4, 3});
  Tensor<float> single({});
  CHECK_THAT(softmax().refusal(GPUNN_OP_SOFTMAX, nullptr, {scalar}, {single}), Contains("x must be f32[N, C]"));
  CHECK_THAT(softmax().refusal(GPUNN_OP_SOFTMAX, nullptr, {View(GPUNN_F32, {4, 0})}, {View(GPUNN_F32, {4, 0})}),
             Contains("C must not be 0"));
  CHECK_THAT(losses().refusal(GPUNN_OP_NLL_LOSS, nullptr, {x, wide}, {loss}),
             Contains("label must be i32[N] = [4], is i64[4]"));
  CHECK_THAT(losses().refusal(GPUNN_OP_NLL_LOSS, nullptr, {x, label}, {y}),
             Contains("loss must be f32[4], is f32[4, 3]"));
  CHECK_THAT(losses().refusal(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, nullptr, {x, label}, {loss}), Contains("2 outputs"));
  const gpunn_classes_attrs classes{sizeof(classes), -3};
  CHECK_THAT(losses().refusal(GPUNN_OP_NLL_LOSS_BACKWARD, &classes, {loss, label}, {y}),
             Contains("classes -3 must be 1 or more"));
  CHECK_THAT(losses().refusal(GPUNN_OP_MSE_LOSS, nullptr, {View(GPUNN_F32, {4, 0}), View(GPUNN_F32, {4, 0})}, {loss}),
             Contains("row must not be empty"));
}
