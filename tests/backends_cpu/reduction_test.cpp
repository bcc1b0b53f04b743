#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& reduction_runner() {
  static const Runner made(gpunn::cpu::add_reduction_kernels);
  return made;
}

gpunn_reduce_attrs attrs_of(int32_t kind, uint32_t axes, bool keep_dims) {
  return {sizeof(gpunn_reduce_attrs), kind, axes, keep_dims ? 1 : 0};
}

Shape reduced_shape(const Shape& shape, uint32_t axes, bool keep_dims) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if ((axes >> i & 1U) == 0) result.push_back(shape[i]);
    if ((axes >> i & 1U) != 0 && keep_dims) result.push_back(1);
  }
  return result;
}

std::vector<double> reduced(const Tensor<float>& x, int32_t kind, uint32_t axes) {
  const Shape& shape = x.shape();
  const int64_t outputs = count_of(reduced_shape(shape, axes, true));
  const double nothing = kind == GPUNN_REDUCE_MAX ? -std::numeric_limits<double>::infinity() : 0.0;
  std::vector<double> y(static_cast<std::size_t>(outputs), nothing);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = i;
    int64_t output = 0;
    int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const int64_t position = rest % shape[d];
      rest /= shape[d];
      if ((axes >> d & 1U) != 0) continue;
      output += position * stride;
      stride *= shape[d];
    }
    double& total = y[static_cast<std::size_t>(output)];
    const auto value = static_cast<double>(x[i]);
    if (kind != GPUNN_REDUCE_MAX) {
      total += value;
    } else if (!std::isnan(total) && (value > total || std::isnan(value))) {
      total = value;
    }
  }
  if (kind == GPUNN_REDUCE_MEAN) {
    const double terms = static_cast<double>(x.size()) / static_cast<double>(outputs);
    for (double& total : y) total /= terms;
  }
  return y;
}

}  // namespace

TEST_CASE("reductions over any axes") {
  const Shape shape =
      GENERATE(Shape{}, Shape{1}, Shape{7}, Shape{100003}, Shape{50000, 3}, Shape{3, 70001}, Shape{128, 6, 24, 24},
               Shape{5, 1, 3, 1, 7}, Shape{2, 3, 2, 3, 2, 3, 2, 3}, Shape{17, 700}, Shape{90, 2, 300});
  const int32_t kind = GENERATE(GPUNN_REDUCE_SUM, GPUNN_REDUCE_MEAN, GPUNN_REDUCE_MAX);
  Random random(71);
  Tensor<float> x = random.tensor(shape, -1.0F, 1.1F);
  if (kind == GPUNN_REDUCE_MAX && x.size() > 40) x[37] = kNan;
  bool right = true;
  for (uint32_t axes = 0; axes < 1U << shape.size(); axes += shape.size() == 8 ? 5 : 1) {
    const bool keep_dims = axes % 2 == 1;
    const auto attrs = attrs_of(kind, axes, keep_dims);
    const std::vector<double> expected = reduced(x, kind, axes);
    Tensor<float> y(reduced_shape(shape, axes, keep_dims));
    INFO("axes " << axes << " kind " << kind << " of " << shape.size());
    on_each_machine(y, [&] {
      reduction_runner().run(GPUNN_OP_REDUCE, &attrs, {x}, {y});
      const double error = worst_error(y, expected);
      right = right && error <= (kind == GPUNN_REDUCE_MAX ? 0.0 : 2e-5);
    });
    CHECK(right);
  }
}

TEST_CASE("a long sum keeps its accuracy") {
  Tensor<float> x({3000017});
  std::fill(x.begin(), x.end(), 0.1F);
  Tensor<float> y({});
  const auto attrs = attrs_of(GPUNN_REDUCE_SUM, 1, false);
  reduction_runner().run(GPUNN_OP_REDUCE, &attrs, {x}, {y});
  CHECK(worst_error(y, {3000017.0 * static_cast<double>(0.1F)}) < 1e-5);
}

TEST_CASE("reductions of nothing") {
  const Tensor<float> x({3, 0});
  Tensor<float> y({3});
  const auto sum = attrs_of(GPUNN_REDUCE_SUM, 2, false);
  reduction_runner().run(GPUNN_OP_REDUCE, &sum, {x}, {y});
  CHECK(y.values() == std::vector<float>{0, 0, 0});
  const auto mean = attrs_of(GPUNN_REDUCE_MEAN, 2, false);
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_REDUCE, &mean, {x}, {y}), Contains("nothing to reduce"));
  const auto max = attrs_of(GPUNN_REDUCE_MAX, 2, false);
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_REDUCE, &max, {x}, {y}), Contains("nothing to reduce"));
  Tensor<float> none({0});
  const auto rows = attrs_of(GPUNN_REDUCE_MAX, 1, false);
  reduction_runner().run(GPUNN_OP_REDUCE, &rows, {x}, {none});
  CHECK(none.intact());
}

TEST_CASE("the mean of the first rows, and its backward") {
  const Tensor<float> x({4}, {1, 2, 6, kNan});
  Tensor<float> y({});
  const auto mean = [&](int32_t count) {
    reduction_runner().run(GPUNN_OP_MEAN_ROWS, nullptr, {x, Tensor<int32_t>({}, {count})}, {y});
    return y[0];
  };
  CHECK(mean(3) == 3.0F);
  CHECK(mean(1) == 1.0F);
  CHECK(mean(0) == 0.0F);
  CHECK(mean(-7) == 0.0F);
  CHECK(std::isnan(mean(4)));
  CHECK(std::isnan(mean(INT32_MAX)));

  const gpunn_rows_attrs rows{sizeof(rows), 0, 5};
  Tensor<float> dx({5});
  const Tensor<float> dy({}, {6.0F});
  const auto backward = [&](int32_t count) {
    reduction_runner().run(GPUNN_OP_MEAN_ROWS_BACKWARD, &rows, {dy, Tensor<int32_t>({}, {count})}, {dx});
    return dx.values();
  };
  CHECK(backward(3) == std::vector<float>{2, 2, 2, 0, 0});
  CHECK(backward(0) == std::vector<float>{0, 0, 0, 0, 0});
  CHECK(backward(-1) == std::vector<float>{0, 0, 0, 0, 0});
  CHECK(backward(99) == std::vector<float>(5, 6.0F / 5.0F));
  CHECK(dx.intact());
}

TEST_CASE("reductions refuse nonsense") {
  const Tensor<float> x({2, 3});
  Tensor<float> y({2});
  const auto beyond = attrs_of(GPUNN_REDUCE_SUM, 4, false);
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_REDUCE, &beyond, {x}, {y}), Contains("names a dimension that x"));
  const auto odd = attrs_of(3, 2, false);
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_REDUCE, &odd, {x}, {y}), Contains("unknown reduction"));
  const auto kept = attrs_of(GPUNN_REDUCE_SUM, 2, true);
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_REDUCE, &kept, {x}, {y}), Contains("is f32[2]"));
  const gpunn_rows_attrs rows{sizeof(rows), 0, -1};
  const Tensor<float> dy({});
  const Tensor<int32_t> count({});
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_MEAN_ROWS_BACKWARD, &rows, {dy, count}, {y}),
             Contains("must be 0 or more"));
  CHECK_THAT(reduction_runner().refusal(GPUNN_OP_MEAN_ROWS, nullptr, {x, count}, {y}), Contains("x must be f32[N]"));
}
