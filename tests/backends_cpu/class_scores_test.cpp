// Ops on scores x[N,C,...]: their bits do not depend on the number of threads, and labels may be anything.
#include <array>
#include <cmath>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

// Kernels ask for memory by thread, so the number of threads must be known when they are added.
Runner entropy_runner() { return Runner(gpunn::cpu::add_dense_cross_entropy_kernels); }
Runner argmax_runner() { return Runner(gpunn::cpu::add_argmax_kernels); }

gpunn_cross_entropy_attrs entropy(float smoothing) { return {sizeof(gpunn_cross_entropy_attrs), 255, smoothing}; }

Shape positions_of(Shape x) {
  x.erase(x.begin() + 1);
  return x;
}

Tensor<int32_t> some_labels(const Shape& x, unsigned seed) {
  Random random(seed);
  Tensor<int32_t> label(positions_of(x));
  for (int32_t& one : label) one = static_cast<int32_t>(random.integer(0, x[1]));
  for (int64_t i = 0; i < label.size(); i += 7) label[i] = 255;
  return label;
}

}  // namespace

TEST_CASE("cross-entropy by position is the same bits on any number of threads") {
  const Shape shape = GENERATE(Shape{3, 21, 70, 50}, Shape{2001, 23}, Shape{9, 5003}, Shape{3, 300, 7});
  const auto attrs = entropy(GENERATE(0.0F, 0.1F));
  Random random(5);
  const Tensor<float> x = random.tensor(shape, -4, 4), weight = random.tensor({shape[1]}, 0.5F, 2);
  const Tensor<int32_t> label = some_labels(shape, 6);
  const Shape positions = positions_of(shape);
  const Tensor<float> dloss = random.tensor(positions);
  Tensor<float> loss(positions), share(positions), lse(positions), dx(shape);
  on_each_machine(loss, [&] {
    entropy_runner().run(GPUNN_OP_CROSS_ENTROPY, &attrs, {x, label, weight}, {loss, share, lse});
  });
  on_each_machine(dx, [&] {
    entropy_runner().run(GPUNN_OP_CROSS_ENTROPY_BACKWARD, &attrs, {dloss, x, label, lse, weight}, {dx});
  });
}

TEST_CASE("a label that is no class has no loss, and an ignored one counts nowhere") {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  const auto attrs = entropy(0);
  const std::array<int32_t, 6> found{1, 255, 2, -1, kLeast, kMost};
  for (const bool rows : {true, false}) {
    const Shape shape = rows ? Shape{6, 2} : Shape{1, 2, 6}, positions = positions_of(shape);
    Tensor<float> x(shape);
    std::fill(x.begin(), x.end(), 0.0F);
    x[rows ? 2 : 1] = kNan;  // of the position that is ignored
    const Tensor<int32_t> label(positions, {found.begin(), found.end()});
    Tensor<float> loss(positions), share(positions), lse(positions), dx(shape), dloss(positions);
    std::fill(dloss.begin(), dloss.end(), 1.0F);
    entropy_runner().run(GPUNN_OP_CROSS_ENTROPY, &attrs, {x, label}, {loss, share, lse});
    CHECK(std::abs(loss[0] - std::log(2.0F)) < 1e-6F);
    CHECK(share[0] == 1.0F);
    CHECK(loss[1] == 0.0F);
    for (int64_t i = 2; i < 6; ++i) CHECK(std::isnan(loss[i]));
    for (int64_t i = 1; i < 6; ++i) CHECK(share[i] == 0.0F);
    entropy_runner().run(GPUNN_OP_CROSS_ENTROPY_BACKWARD, &attrs, {dloss, x, label, lse}, {dx});
    for (int64_t i = 0; i < dx.size(); ++i) {
      const bool first = rows ? i < 2 : i % 6 == 0;
      CHECK(std::abs(dx[i]) == (first ? Approx(0.5) : Approx(0)));
    }
  }
}

TEST_CASE("argmax and the confusion matrix are the same on any number of threads") {
  const Shape shape = GENERATE(Shape{3, 21, 70, 50}, Shape{2001, 23}, Shape{5, 200, 90}, Shape{700, 150});
  Random random(7);
  Tensor<float> x = random.coarse(shape);
  for (int64_t i = 0; i < x.size(); i += 1013) x[i] = kNan;
  const Tensor<int32_t> label = some_labels(shape, 8);
  const int64_t classes = shape[1], inner = label.size() / shape[0], count = shape[0] - 1;
  Tensor<int64_t> expected({classes, classes});
  for (int64_t i = 0; i < expected.size(); ++i) expected[i] = i % 5;
  Tensor<int64_t> confusion(expected);
  const std::vector<int64_t> before = expected.values();
  Tensor<int32_t> y(label.shape()), largest(label.shape());
  for (int64_t i = 0; i < label.size(); ++i) {
    const auto score = [&](int64_t c) { return x[(i / inner * classes + c) * inner + i % inner]; };
    int64_t best = 0;
    for (int64_t c = 1; c < classes && !std::isnan(score(best)); ++c) {
      if (score(c) > score(best) || std::isnan(score(c))) best = c;
    }
    largest[i] = static_cast<int32_t>(best);
    const bool counts = i < count * inner && label[i] < classes && !std::isnan(score(best));
    if (counts) ++expected[label[i] * classes + best];
  }
  on_each_machine(y, [&] {
    argmax_runner().run(GPUNN_OP_ARGMAX, nullptr, {x}, {y});
    CHECK(same_bits(y, largest));
  });
  const Tensor<int32_t> counted({}, {static_cast<int32_t>(count)});
  on_each_machine(confusion, [&] {
    std::copy(before.begin(), before.end(), confusion.begin());
    argmax_runner().run(GPUNN_OP_CONFUSION_ACCUMULATE, nullptr, {x, label, counted, confusion}, {confusion});
    CHECK(same_bits(confusion, expected));
  });
}

TEST_CASE("a count of rows may be anything") {
  const Tensor<float> x({2, 2}, {1, 2, 3, 1});
  const Tensor<int32_t> label({2}, {0, 0});
  const auto run = [&](int32_t count) {
    Tensor<int64_t> confusion({2, 2}, {0, 0, 0, 0});
    const Tensor<int32_t> counted({}, {count});
    argmax_runner().run(GPUNN_OP_CONFUSION_ACCUMULATE, nullptr, {x, label, counted, confusion}, {confusion});
    return confusion.values();
  };
  CHECK(run(-5) == std::vector<int64_t>{0, 0, 0, 0});
  CHECK(run(1) == std::vector<int64_t>{0, 1, 0, 0});
  CHECK(run(99) == std::vector<int64_t>{1, 1, 0, 0});
}

TEST_CASE("ops on scores refuse what ops.h does not have") {
  const Tensor<float> x({2, 3, 4}), weight({4});
  const Tensor<int32_t> label({2, 4});
  Tensor<float> loss({2, 4}), share({2, 4}), lse({2, 4});
  auto attrs = entropy(1.5F);
  const auto refusal = [&](const Views& inputs) {
    return entropy_runner().refusal(GPUNN_OP_CROSS_ENTROPY, &attrs, inputs, {loss, share, lse});
  };
  CHECK_THAT(refusal({x, label}), Contains("label_smoothing"));
  attrs.label_smoothing = 0;
  CHECK(refusal({x, label}).empty());
  CHECK_THAT(refusal({x, label, weight}), Contains("weight"));
  CHECK_THAT(refusal({x, Tensor<int32_t>({2, 3})}), Contains("label"));
  CHECK_THAT(refusal({Tensor<float>({2, 0, 4}), label}), Contains("C must not be 0"));
  // Labels of volumes have four dimensions, as images do.
  const Tensor<float> volume({1, 2, 3, 4, 5});
  const Tensor<int32_t> labels({1, 3, 4, 5});
  Tensor<float> of_volume({1, 3, 4, 5});
  const View strided = View(labels).strided({60, 1, 15, 3});
  CHECK_THAT(entropy_runner().refusal(GPUNN_OP_CROSS_ENTROPY, &attrs, {volume, strided},
                                      {View(of_volume).strided({60, 1, 15, 3}), View(of_volume).strided({60, 1, 15, 3}),
                                       View(of_volume).strided({60, 1, 15, 3})}),
             Contains("packed"));
}
