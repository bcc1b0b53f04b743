#include <cmath>

#include "kernels.hpp"
#include "norms/batch_norm.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& normalization_runner() {
  static const Runner made(gpunn::cpu::add_normalization_kernels);
  return made;
}

constexpr gpunn_batch_norm_attrs kAttrs{sizeof(gpunn_batch_norm_attrs), 1e-3F, 0.25F};

struct Layout {
  int64_t rows, channels, size;

  explicit Layout(const Shape& shape) : rows(shape[0]), channels(shape[1]), size(1) {
    for (std::size_t i = 2; i < shape.size(); ++i) size *= shape[i];
  }
  int64_t channel(int64_t element) const { return element / size % channels; }
  int64_t row(int64_t element) const { return element / size / channels; }
};

struct Statistics {
  std::vector<double> mean, rstd, variance;
};

Statistics statistics_of(const Tensor<float>& x, int64_t count) {
  const Layout at(x.shape());
  const auto channels = static_cast<std::size_t>(at.channels);
  const auto n = static_cast<double>(count * at.size);
  Statistics s{std::vector<double>(channels), std::vector<double>(channels), std::vector<double>(channels)};
  std::vector<double> squares(channels);
  for (int64_t i = 0; i < count * at.channels * at.size; ++i)
    s.mean[static_cast<std::size_t>(at.channel(i))] += x[i] / n;
  for (int64_t i = 0; i < count * at.channels * at.size; ++i) {
    const auto c = static_cast<std::size_t>(at.channel(i));
    squares[c] += (x[i] - s.mean[c]) * (x[i] - s.mean[c]);
  }
  for (std::size_t c = 0; c < channels; ++c) {
    s.rstd[c] = 1 / std::sqrt(squares[c] / n + 1e-3);
    s.variance[c] = squares[c] / std::max(n - 1, 1.0);
  }
  return s;
}

}  // namespace

TEST_CASE("batch norm has the same bits at any number of threads, and the statistics of the rows that count") {
  const Shape shape = GENERATE(Shape{1, 1}, Shape{128, 10}, Shape{1000, 120}, Shape{64, 6, 24, 24}, Shape{3, 5, 7},
                               Shape{2, 3, 70, 70}, Shape{9, 2, 1, 1}, Shape{70000, 3});
  const Layout at(shape);
  Random random(5);
  const Tensor<float> x = random.tensor(shape, 2, 4), gamma = random.tensor({shape[1]}),
                      beta = random.tensor({shape[1]});
  const Tensor<float> dy = random.tensor(shape);
  for (const int64_t count : {at.rows, (at.rows + 2) / 3}) {
    const Tensor<int32_t> counted({}, {static_cast<int32_t>(count)});
    const Statistics expected = statistics_of(x, count);
    Tensor<float> y(shape), mean({shape[1]}), rstd({shape[1]}), running_mean({shape[1]}), running_var({shape[1]});
    on_each_machine(y, [&] {
      std::fill(running_mean.begin(), running_mean.end(), 2.0F);
      std::fill(running_var.begin(), running_var.end(), 4.0F);
      normalization_runner().run(GPUNN_OP_BATCH_NORM, &kAttrs, {x, gamma, beta, running_mean, running_var, counted},
                                 {y, mean, rstd, running_mean, running_var});
      CHECK(worst_error(mean, expected.mean) < 1e-6);
      CHECK(worst_error(rstd, expected.rstd) < 1e-5);
      std::vector<double> moved_mean, moved_var;
      for (std::size_t c = 0; c < expected.mean.size(); ++c) {
        moved_mean.push_back(0.75 * 2 + 0.25 * expected.mean[c]);
        moved_var.push_back(0.75 * 4 + 0.25 * expected.variance[c]);
      }
      CHECK(worst_error(running_mean, moved_mean) < 1e-6);
      CHECK(worst_error(running_var, moved_var) < 1e-6);
    });
    double worst = 0;
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto c = static_cast<std::size_t>(at.channel(i));
      const double h = (x[i] - expected.mean[c]) * expected.rstd[c];
      const double right = h * gamma[at.channel(i)] + beta[at.channel(i)];
      worst = std::max(worst, std::abs(y[i] - right) / (1 + std::abs(right)));
    }
    CHECK(worst < 1e-4);

    Tensor<float> dx(shape), dgamma({shape[1]}), dbeta({shape[1]});
    on_each_machine(dx, [&] {
      normalization_runner().run(GPUNN_OP_BATCH_NORM_BACKWARD, nullptr, {dy, x, gamma, mean, rstd, counted},
                                 {dx, dgamma, dbeta});
    });
    // A shift of x, and a stretch of it about its mean (but for epsilon), leave y as it is: no gradient is along them.
    std::vector<double> along(static_cast<std::size_t>(at.channels));
    bool rest_is_zero = true;
    for (int64_t i = 0; i < dx.size(); ++i) {
      along[static_cast<std::size_t>(at.channel(i))] += dx[i];
      rest_is_zero = rest_is_zero && (at.row(i) < count || dx[i] == 0.0F);
    }
    for (std::size_t c = 0; c < along.size(); ++c) {
      CHECK(std::abs(along[c]) < 1e-4 * std::sqrt(static_cast<double>(count * at.size)) * expected.rstd[c]);
    }
    CHECK(rest_is_zero);
  }
}

// The batch norm, sum and ReLU of a residual block, and their gradients, in the passes of batch norm.
TEST_CASE("batch norm fused with a sum and a ReLU has the bits of the ops, at any number of threads") {
  using namespace gpunn::cpu;
  namespace backends = gpunn::backends;
  const Runner elementwise(add_elementwise_kernels);
  // Rows in strips, rows longer than a strip, and an image whose channels are split.
  const Shape shape =
      GENERATE(Shape{1, 1}, Shape{1000, 120}, Shape{300, 3000}, Shape{40, 6, 24, 24}, Shape{2, 3, 70, 70});
  const Layout at(shape);
  Random random(5);
  const Tensor<float> x = random.tensor(shape, 2, 4), other = random.tensor(shape), dy = random.tensor(shape);
  const Tensor<float> gamma = random.tensor({shape[1]}), beta = random.tensor({shape[1]});
  const bool summed = GENERATE(true, false);
  for (const int64_t count : {at.rows, (at.rows + 2) / 3, int64_t{0}}) {
    const Tensor<int32_t> counted({}, {static_cast<int32_t>(count)});
    Tensor<float> y(shape), mean({shape[1]}), rstd({shape[1]}), running_mean({shape[1]}), running_var({shape[1]});
    const backends::BatchNorm norm{.rows = at.rows,
                                   .channels = at.channels,
                                   .size = at.size,
                                   .epsilon = 1e-3F,
                                   .momentum = 0.25F,
                                   .counted = true};
    const auto plan = [&] { return plan_batch_norm(norm, GPUNN_F32, true, thread_count()); };
    on_each_machine(y, [&] {
      std::fill(running_mean.begin(), running_mean.end(), 2.0F);
      std::fill(running_var.begin(), running_var.end(), 4.0F);
      Tensor<float> plain(shape), sum(shape), expected(shape), same_mean(mean), same_rstd(rstd);
      Tensor<float> moved_mean(running_mean), moved_var(running_var);
      normalization_runner().run(GPUNN_OP_BATCH_NORM, &kAttrs, {x, gamma, beta, moved_mean, moved_var, counted},
                                 {plain, same_mean, same_rstd, moved_mean, moved_var});
      if (summed) elementwise.run(GPUNN_OP_ADD, nullptr, {plain, other}, {sum});
      elementwise.run(GPUNN_OP_RELU, nullptr, {summed ? sum : plain}, {expected});
      std::vector<char> workspace(plan().workspace_bytes);
      run_batch_norm(plan(), BatchNormForward<float>{.x = x.data(),
                                                     .gamma = gamma.data(),
                                                     .beta = beta.data(),
                                                     .count = counted.data(),
                                                     .other = summed ? other.data() : nullptr,
                                                     .relu = true,
                                                     .y = y.data(),
                                                     .mean = mean.data(),
                                                     .rstd = rstd.data(),
                                                     .running_mean = running_mean.data(),
                                                     .running_var = running_var.data(),
                                                     .workspace = workspace.data()});
      CHECK(same_bits(y, expected));
      CHECK(same_bits(mean, same_mean));
      CHECK(same_bits(running_mean, moved_mean));
      CHECK(same_bits(running_var, moved_var));
    });
    Tensor<float> dx(shape), dgamma({shape[1]}), dbeta({shape[1]}), masked(shape);
    on_each_machine(dx, [&] {
      Tensor<float> sum(dy), gradient(shape), expected(shape), same_dgamma(dgamma), same_dbeta(dbeta);
      if (summed) elementwise.run(GPUNN_OP_ADD, nullptr, {dy, other}, {sum});
      elementwise.run(GPUNN_OP_RELU_BACKWARD, nullptr, {sum, y}, {gradient});
      normalization_runner().run(GPUNN_OP_BATCH_NORM_BACKWARD, nullptr, {gradient, x, gamma, mean, rstd, counted},
                                 {expected, same_dgamma, same_dbeta});
      for (const bool kept : {true, false}) {
        std::vector<char> workspace(plan().workspace_bytes);
        run_batch_norm_backward(plan(), BatchNormBackward<float>{.dy = dy.data(),
                                                                 .more_dy = summed ? other.data() : nullptr,
                                                                 .relu_y = y.data(),
                                                                 .masked = kept ? masked.data() : nullptr,
                                                                 .x = x.data(),
                                                                 .gamma = gamma.data(),
                                                                 .mean = mean.data(),
                                                                 .rstd = rstd.data(),
                                                                 .count = counted.data(),
                                                                 .dx = dx.data(),
                                                                 .dgamma = dgamma.data(),
                                                                 .dbeta = dbeta.data(),
                                                                 .workspace = workspace.data()});
        CHECK(same_bits(dx, expected));
        CHECK(same_bits(dgamma, same_dgamma));
        CHECK(same_bits(dbeta, same_dbeta));
        if (kept) CHECK(same_bits(masked, gradient));
      }
    });
  }
}

TEST_CASE("an empty batch leaves the running statistics and gives zeros") {
  const Tensor<float> x({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), ones({2}, {1, 1});
  const Tensor<int32_t> none({}, {0});
  Tensor<float> y({4, 2}), mean({2}), rstd({2}), running_mean({2}, {3, 4}), running_var({2}, {5, 6});
  normalization_runner().run(GPUNN_OP_BATCH_NORM, &kAttrs, {x, ones, ones, running_mean, running_var, none},
                             {y, mean, rstd, running_mean, running_var});
  CHECK(y.values() == std::vector<float>(8, 0.0F));
  CHECK(mean.values() == std::vector<float>{0, 0});
  CHECK(rstd.values() == std::vector<float>{0, 0});
  CHECK(running_mean.values() == std::vector<float>{3, 4});
  CHECK(running_var.values() == std::vector<float>{5, 6});
}

TEST_CASE("batch norm refuses what does not fit") {
  const View x(GPUNN_F32, {4, 3, 2}), c(GPUNN_F32, {3}), two(GPUNN_F32, {2}), count(GPUNN_I64, {});
  const auto refusal = [](const Views& in, const Views& out, const gpunn_batch_norm_attrs& attrs = kAttrs) {
    return normalization_runner().refusal(GPUNN_OP_BATCH_NORM, &attrs, in, out);
  };
  CHECK(refusal({x, c, c, c, c}, {x, c, c, c, c}).empty());
  CHECK_FALSE(refusal({x, c, two, c, c}, {x, c, c, c, c}).empty());
  CHECK_FALSE(refusal({x, c, c, c, c}, {x, c, two, c, c}).empty());
  CHECK_FALSE(refusal({x, c, c, c, c, count}, {x, c, c, c, c}).empty());
  CHECK_FALSE(refusal({c, c, c, c, c}, {c, c, c, c, c}).empty());
  CHECK_FALSE(refusal({x, c, c, c, c}, {x, c, c, c, c}, {sizeof(kAttrs), -1e-5F, 0.1F}).empty());
  CHECK_FALSE(refusal({x, c, c, c, c}, {x, c, c, c, c}, {sizeof(kAttrs), 1e-5F, 1.5F}).empty());
}

TEST_CASE("layer norm has the same bits at any number of threads") {
  const Runner rows(gpunn::cpu::add_layer_norm_kernels);
  constexpr gpunn_layer_norm_attrs attrs{sizeof(gpunn_layer_norm_attrs), 1e-3F};
  const Shape shape = GENERATE(Shape{1, 1}, Shape{1000, 120}, Shape{64, 3000}, Shape{3, 70000}, Shape{7001, 5});
  Random random(5);
  const Tensor<float> x = random.tensor(shape, 2, 4), dy = random.tensor(shape);
  const Tensor<float> gamma = random.tensor({shape[1]}), beta = random.tensor({shape[1]});
  Tensor<float> y(shape), mean({shape[0]}), rstd({shape[0]}), dx(shape), dgamma({shape[1]}), dbeta({shape[1]});
  on_each_machine(y, [&] { rows.run(GPUNN_OP_LAYER_NORM, &attrs, {x, gamma, beta}, {y, mean, rstd}); });
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < shape[1]; ++i) sum += x[i];
  for (int64_t i = 0; i < shape[1]; ++i) squares += std::pow(x[i] - sum / static_cast<double>(shape[1]), 2);
  CHECK(std::abs(mean[0] - sum / static_cast<double>(shape[1])) < 1e-6 * 4);
  CHECK(std::abs(rstd[0] * std::sqrt(squares / static_cast<double>(shape[1]) + 1e-3) - 1) < 1e-5);

  const auto backward = [&] {
    rows.run(GPUNN_OP_LAYER_NORM_BACKWARD, nullptr, {dy, x, gamma, mean, rstd}, {dx, dgamma, dbeta});
  };
  on_each_machine(dx, backward);
  on_each_machine(dgamma, backward);
  std::vector<double> sums(static_cast<std::size_t>(shape[1]));
  for (int64_t i = 0; i < dy.size(); ++i) sums[static_cast<std::size_t>(i % shape[1])] += dy[i];
  on_each_machine(dbeta, backward);
  CHECK(worst_error(dbeta, sums) < 1e-5);
}

TEST_CASE("instance norm has the same bits at any number of threads, and the statistics of each plane") {
  const Runner planes(gpunn::cpu::add_instance_norm_kernels);
  constexpr gpunn_layer_norm_attrs attrs{sizeof(gpunn_layer_norm_attrs), 1e-3F};
  const Shape shape = GENERATE(Shape{1, 1}, Shape{1000, 120}, Shape{64, 6, 24, 24}, Shape{5, 900, 3},
                               Shape{2, 3, 170, 170}, Shape{2, 3, 0});
  const Layout at(shape);
  const auto size = static_cast<double>(at.size);
  Random random(5);
  const Tensor<float> x = random.tensor(shape, 2, 4), dy = random.tensor(shape);
  const Tensor<float> gamma = random.tensor({shape[1]}), beta = random.tensor({shape[1]});
  Tensor<float> y(shape), mean({shape[0], shape[1]}), rstd({shape[0], shape[1]}), dx(shape), dgamma({shape[1]}),
      dbeta({shape[1]});
  on_each_machine(y, [&] { planes.run(GPUNN_OP_INSTANCE_NORM, &attrs, {x, gamma, beta}, {y, mean, rstd}); });
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < at.size; ++i) sum += x[i] / size;
  for (int64_t i = 0; i < at.size; ++i) squares += std::pow(x[i] - sum, 2) / size;
  CHECK(std::abs(mean[0] - sum) < 1e-6 * 4);
  CHECK(std::abs(rstd[0] * std::sqrt(squares + 1e-3) - 1) < 1e-5);

  const auto backward = [&] {
    planes.run(GPUNN_OP_INSTANCE_NORM_BACKWARD, nullptr, {dy, x, gamma, mean, rstd}, {dx, dgamma, dbeta});
  };
  on_each_machine(dx, backward);
  on_each_machine(dgamma, backward);
  on_each_machine(dbeta, backward);
  std::vector<double> sums(static_cast<std::size_t>(shape[1]));
  for (int64_t i = 0; i < dy.size(); ++i) sums[static_cast<std::size_t>(at.channel(i))] += dy[i];
  CHECK(worst_error(dbeta, sums) < 1e-5);
}

TEST_CASE("local response norm by hand, and alike at any number of threads") {
  const Runner planes(gpunn::cpu::add_local_response_norm_kernels);
  constexpr gpunn_local_response_norm_attrs attrs{sizeof(gpunn_local_response_norm_attrs), 4, 2.0F, 0.5F, 3.0F};
  const Tensor<float> few({1, 5}, {1, 2, 3, 4, 5});
  Tensor<float> y({1, 5});
  planes.run(GPUNN_OP_LOCAL_RESPONSE_NORM, &attrs, {few}, {y});
  // Two channels before, one behind; alpha / size is 0.5.
  CHECK(worst_error(y, {1 / std::sqrt(3 + 0.5 * 5), 2 / std::sqrt(3 + 0.5 * 14), 3 / std::sqrt(3 + 0.5 * 30),
                        4 / std::sqrt(3 + 0.5 * 54), 5 / std::sqrt(3 + 0.5 * 50)}) < 1e-6);

  Random random(6);
  const Shape shape{9, 17, 11, 13};
  const Tensor<float> x = random.tensor(shape), dy = random.tensor(shape);
  Tensor<float> large(shape), dx(shape);
  on_each_machine(large, [&] { planes.run(GPUNN_OP_LOCAL_RESPONSE_NORM, &attrs, {x}, {large}); });
  on_each_machine(dx, [&] { planes.run(GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, &attrs, {dy, x}, {dx}); });
}
