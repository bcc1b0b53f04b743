#include "session/check/op_comparison.hpp"

#include <gpunn/ops.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"
#include "ops/reference.hpp"
#include "session/check/parameter_comparison.hpp"

using namespace gpunn;
using namespace gpunn::training;
using ops::ReferenceTensor;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
HostBytes bytes(const std::vector<T>& values) {
  HostBytes result(values.size() * sizeof(T));
  std::memcpy(result.data(), values.data(), result.size());
  return result;
}

TensorType f32_of(Shape shape) { return {DType::f32, std::move(shape)}; }

// [1, 4] times [4, 1]: 1 * 1 + 1000 * 1 - 1000 * 1 + 1 * 1 = 2, with absolute values 2002.
ComparedOp product(float first, float second) {
  const auto attrs = gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 0};
  return {{GPUNN_OP_MATMUL, graph::Attributes::of(attrs), {f32_of({1, 4}), f32_of({4, 1})}, {f32_of({1, 1})}},
          {bytes<float>({1, 1000, -1000, 1}), bytes<float>({1, 1, 1, 1})},
          {bytes<float>({first})},
          {bytes<float>({second})}};
}

// Counts how often a bound was asked for.
struct Counted {
  int evaluations = 0;
  Judging judging(const graph::OpSignature& signature) {
    Judging result;
    result.evaluate = [this, signature](const std::vector<ReferenceTensor>& inputs) {
      ++evaluations;
      return ops::run_reference(signature, inputs);
    };
    return result;
  }
};

}  // namespace

TEST_CASE("equal bits need no bound") {
  Counted counted;
  const ComparedOp op = product(2, 2);
  CHECK(compare_op(op, counted.judging(op.signature)).error == 0);
  CHECK(counted.evaluations == 0);
}

TEST_CASE("a difference within what the sum of absolute values allows is rounding") {
  Counted counted;
  const ComparedOp op = product(2, 2.0004F);
  const OpDifference difference = compare_op(op, counted.judging(op.signature));
  CHECK_FALSE(difference.departs);
  CHECK(difference.error > 0.1);
  CHECK(difference.error < 1);
  CHECK(counted.evaluations == 1);
}

TEST_CASE("beyond it the reference says who is wrong") {
  Counted counted;
  ComparedOp op = product(2, 2.1F);
  OpDifference difference = compare_op(op, counted.judging(op.signature));
  CHECK(difference.departs);
  CHECK(difference.reference == 2.0);
  CHECK_FALSE(difference.first_wrong);
  CHECK(difference.second_wrong);
  CHECK(difference.first == 2);
  CHECK(difference.second == 2.1F);
  CHECK(difference.wrong == 1);

  op = product(kNaN, 2);
  difference = compare_op(op, counted.judging(op.signature));
  CHECK(difference.departs);
  CHECK(difference.first_wrong);
  CHECK_FALSE(difference.second_wrong);
}

TEST_CASE("a wrong bound from the first backend does not make an op depart") {
  for (const double value : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
    const ComparedOp op = product(2, 2.0001F);
    Judging judging;
    judging.evaluate = [&](const std::vector<ReferenceTensor>&) {
      return std::vector<ReferenceTensor>{{f32_of({1, 1}), {value}}};
    };
    const OpDifference difference = compare_op(op, judging);
    CHECK_FALSE(difference.departs);
    CHECK(difference.error < 1);
  }
}

TEST_CASE("coarser products may differ more, other ops may not") {
  Counted counted;
  const ComparedOp op = product(2, 2.1F);
  Judging judging = counted.judging(op.signature);
  judging.precision = Precision::tf32;
  CHECK_FALSE(compare_op(op, judging).departs);

  const ComparedOp sum{{GPUNN_OP_ADD, {}, {f32_of({1}), f32_of({1})}, {f32_of({1})}},
                       {bytes<float>({1}), bytes<float>({1})},
                       {bytes<float>({2})},
                       {bytes<float>({2.0001F})}};
  CHECK(compare_op(sum, judging).departs);
}

TEST_CASE("an input that was left on the device is fetched for the reference alone") {
  int fetched = 0;
  Judging judging;
  judging.fetch = [&](std::size_t input) {
    ++fetched;
    CHECK(input == 0);
    return bytes<uint8_t>({10, 20, 30, 40});
  };
  const ComparedOp op{{GPUNN_OP_GATHER_ROWS, {}, {{DType::u8, {2, 2}}, {DType::i32, {1}}}, {{DType::u8, {1, 2}}}},
                      {{}, bytes<int32_t>({1})},
                      {bytes<uint8_t>({30, 40})},
                      {bytes<uint8_t>({30, 41})}};
  const OpDifference difference = compare_op(op, judging);
  CHECK(fetched == 1);
  CHECK(difference.departs);
  CHECK(difference.second_wrong);
  CHECK(difference.element == 1);
  CHECK(difference.reference == 40.0);
}

TEST_CASE("parameters after a step may differ by a part of the step, and by rounding") {
  const std::vector<float> before{1, -2}, first{1.01F, -2.02F};
  CHECK_FALSE(compare_parameters(before, first, first).departs);
  const ParameterDifference little = compare_parameters(before, first, std::vector<float>{1.01F, -2.0201F});
  CHECK_FALSE(little.departs);
  CHECK(little.element == 1);
  CHECK(little.largest == Approx(1e-4).epsilon(1e-2));
  CHECK(compare_parameters(before, first, before).departs);
  CHECK(compare_parameters(before, first, before, true).departs);
  const std::vector<float> third = {before[0] + (first[0] - before[0]) * 0.65F,
                                    before[1] + (first[1] - before[1]) * 0.65F};
  CHECK(compare_parameters(before, first, third).departs);
  CHECK_FALSE(compare_parameters(before, first, third, true).departs);
  CHECK(compare_parameters(before, first, std::vector<float>{1.01F, kNaN}).departs);

  // A step of nothing: what is left is the rounding of the sum.
  CHECK_FALSE(compare_parameters(before, before, std::vector<float>{std::nextafter(1.0F, 2.0F), -2}).departs);
  CHECK(compare_parameters(before, before, std::vector<float>{1.0001F, -2}).departs);
  // The first has diverged: nothing to compare with.
  CHECK_FALSE(compare_parameters(before, std::vector<float>{kNaN, -2}, first).departs);
}
