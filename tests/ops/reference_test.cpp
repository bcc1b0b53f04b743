// The references against values computed by hand.
#include "ops/reference.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/random.h>

#include <cmath>
#include <limits>
#include <set>

#include "catch.hpp"
#include "ops/case.hpp"
#include "ops/near.hpp"
#include "ops/op.hpp"

using namespace gpunn;
using namespace gpunn::ops;
using ops_test::near;

namespace {

ReferenceTensor tensor_of(DType dtype, Shape shape, std::vector<double> values) {
  TensorType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return {std::move(type), std::move(values)};
}
ReferenceTensor f32s(Shape shape, std::vector<double> values) {
  return tensor_of(DType::f32, std::move(shape), std::move(values));
}
ReferenceTensor i32s(Shape shape, std::vector<double> values) {
  return tensor_of(DType::i32, std::move(shape), std::move(values));
}
ReferenceTensor i64s(std::vector<double> values) { return tensor_of(DType::i64, {}, std::move(values)); }

std::vector<ReferenceTensor> run(int32_t op, const std::vector<ReferenceTensor>& inputs,
                                 const graph::Attributes& attrs = {}) {
  graph::OpSignature signature{op, attrs, {}, {}};
  for (const ReferenceTensor& input : inputs) signature.inputs.push_back(input.type);
  signature.outputs = ops::op_info(op).infer(attrs, signature.inputs);
  return run_reference(signature, inputs);
}

void check_values(const ReferenceTensor& tensor, const std::vector<double>& expected) {
  REQUIRE(tensor.values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i << ": " << tensor.values[i] << ", expected " << expected[i]);
    CHECK(near(tensor.values[i], expected[i], 1e-6 * std::abs(expected[i]) + 1e-12));
  }
}

}  // namespace

TEST_CASE("matmul, in all four transpositions") {
  const ReferenceTensor a = f32s({2, 3}, {1, 2, 3, 4, 5, 6}), at = f32s({3, 2}, {1, 4, 2, 5, 3, 6});
  const ReferenceTensor b = f32s({3, 2}, {7, 8, 9, 10, 11, 12}), bt = f32s({2, 3}, {7, 9, 11, 8, 10, 12});
  const auto attrs = [](int32_t ta, int32_t tb) {
    return graph::Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb});
  };
  const std::vector<double> product{58, 64, 139, 154};
  check_values(run(GPUNN_OP_MATMUL, {a, b}, attrs(0, 0))[0], product);
  check_values(run(GPUNN_OP_MATMUL, {at, b}, attrs(1, 0))[0], product);
  check_values(run(GPUNN_OP_MATMUL, {a, bt}, attrs(0, 1))[0], product);
  check_values(run(GPUNN_OP_MATMUL, {at, bt}, attrs(1, 1))[0], product);

  const auto fused = graph::Attributes::of(gpunn_matmul_bias_activation_attrs{
      .struct_size = 0, .transpose_a = 0, .transpose_b = 0, .activation = GPUNN_ACTIVATION_RELU});
  check_values(run(GPUNN_OP_MATMUL_BIAS_ACTIVATION, {a, b, f32s({2}, {-100, 1})}, fused)[0], {0, 65, 39, 155});
}

TEST_CASE("convolution with padding, stride and groups") {
  gpunn_conv2d_attrs attrs{};
  attrs.groups = 1;
  for (std::size_t i = 0; i < 2; ++i) attrs.stride[i] = attrs.dilation[i] = 1;
  const ReferenceTensor x = f32s({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const ReferenceTensor w = f32s({1, 1, 2, 2}, {1, 2, 3, 4});
  // A cross-correlation: the filter is not turned.
  check_values(run(GPUNN_OP_CONV2D, {x, w}, graph::Attributes::of(attrs))[0], {37, 47, 67, 77});
  attrs.pad[0] = attrs.pad[1] = 1;
  attrs.stride[0] = attrs.stride[1] = 2;
  check_values(run(GPUNN_OP_CONV2D, {x, w}, graph::Attributes::of(attrs))[0], {4, 18, 36, 77});

  attrs.pad[0] = attrs.pad[1] = 0;
  attrs.stride[0] = attrs.stride[1] = 1;
  attrs.groups = 2;
  const ReferenceTensor channels = f32s({1, 2, 1, 2}, {1, 2, 3, 4}), filters = f32s({2, 1, 1, 1}, {10, 100});
  check_values(run(GPUNN_OP_CONV2D, {channels, filters}, graph::Attributes::of(attrs))[0], {10, 20, 300, 400});
}

TEST_CASE("max pooling: NaN wins, padding never, the first of equals gets the gradient") {
  const gpunn_pool2d_attrs two{
      .struct_size = 0, .window = {2, 2}, .stride = {2, 2}, .pad = {0, 0}, .count_padding = 0, .input_size = {0, 0}};
  const auto attrs = graph::Attributes::of(two);
  const ReferenceTensor x = f32s({1, 1, 2, 4}, {5, 5, 1, kNan, 5, 4, 2, 9});
  check_values(run(GPUNN_OP_MAX_POOL2D, {x}, attrs)[0], {5, kNan});

  const ReferenceTensor ties = f32s({1, 1, 2, 2}, {3, 3, 3, 3});
  check_values(run(GPUNN_OP_MAX_POOL2D_BACKWARD, {f32s({1, 1, 1, 1}, {7}), ties, f32s({1, 1, 1, 1}, {3})}, attrs)[0],
               {7, 0, 0, 0});

  const gpunn_pool2d_attrs padded{
      .struct_size = 0, .window = {2, 2}, .stride = {2, 2}, .pad = {1, 1}, .count_padding = 0, .input_size = {0, 0}};
  check_values(run(GPUNN_OP_MAX_POOL2D, {f32s({1, 1, 2, 2}, {-1, -2, -3, -4})}, graph::Attributes::of(padded))[0],
               {-1, -2, -3, -4});
}

TEST_CASE("average pooling: padding is counted where it is asked for") {
  gpunn_pool2d_attrs pool{
      .struct_size = 0, .window = {2, 2}, .stride = {2, 2}, .pad = {1, 0}, .count_padding = 0, .input_size = {2, 2}};
  const ReferenceTensor x = f32s({1, 1, 2, 2}, {1, 3, 5, 11}), dy = f32s({1, 1, 2, 1}, {8, 16});
  check_values(run(GPUNN_OP_AVG_POOL2D, {x}, graph::Attributes::of(pool))[0], {2, 8});
  check_values(run(GPUNN_OP_AVG_POOL2D_BACKWARD, {dy}, graph::Attributes::of(pool))[0], {4, 4, 8, 8});
  pool.count_padding = 1;
  check_values(run(GPUNN_OP_AVG_POOL2D, {x}, graph::Attributes::of(pool))[0], {1, 4});
  check_values(run(GPUNN_OP_AVG_POOL2D_BACKWARD, {dy}, graph::Attributes::of(pool))[0], {2, 2, 4, 4});
}

TEST_CASE("element-wise ops keep NaN and convert as C does") {
  check_values(run(GPUNN_OP_RELU, {f32s({4}, {-1, 0, 2, kNan})})[0], {0, 0, 2, kNan});
  check_values(run(GPUNN_OP_RELU_BACKWARD, {f32s({3}, {kNan, 5, 6}), f32s({3}, {0, 0, 1})})[0], {0, 0, 6});
  const graph::OpSignature to_u8{GPUNN_OP_COPY, {}, {TensorType{DType::i32, {3}}}, {TensorType{DType::u8, {3}}}};
  check_values(run_reference(to_u8, {i32s({3}, {255, 256, -1})})[0], {255, 0, 255});
  const graph::OpSignature to_i32{GPUNN_OP_COPY, {}, {TensorType{DType::f32, {2}}}, {TensorType{DType::i32, {2}}}};
  check_values(run_reference(to_i32, {f32s({2}, {-2.9, 2.9})})[0], {-2, 2});
}

TEST_CASE("softmax and its loss stay right far from 0") {
  check_values(run(GPUNN_OP_SOFTMAX, {f32s({1, 3}, {0, std::log(2.0), std::log(5.0)})})[0], {0.125, 0.25, 0.625});
  check_values(run(GPUNN_OP_SOFTMAX, {f32s({1, 2}, {3e38, 3e38})})[0], {0.5, 0.5});
  const auto out = run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, {f32s({1, 2}, {1e6, 1e6}), i32s({1}, {1})});
  check_values(out[0], {std::log(2.0)});
  check_values(out[1], {-std::log(2.0), -std::log(2.0)});
  check_values(run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                   {f32s({1}, {2}), f32s({1, 2}, {std::log(0.25), std::log(0.75)}), i32s({1}, {0})})[0],
               {-1.5, 1.5});
  // A label that names no class.
  check_values(run(GPUNN_OP_NLL_LOSS, {f32s({2, 2}, {0, -1, 0, -1}), i32s({2}, {2, 1})})[0], {kNan, 1});
  check_values(run(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                   {f32s({1}, {2}), f32s({1, 2}, {std::log(0.25), std::log(0.75)}), i32s({1}, {-1})})[0],
               {0, 0});
}

TEST_CASE("cross-entropy with soft targets") {
  const double far = std::numeric_limits<double>::infinity();
  const ReferenceTensor x = f32s({2, 2}, {std::log(0.25), std::log(0.75), 5, 5});
  const auto out = run(GPUNN_OP_SOFT_CROSS_ENTROPY, {x, f32s({2, 2}, {0.5, 0.5, 2, 0})});
  check_values(out[0], {-0.5 * std::log(0.25) - 0.5 * std::log(0.75), 2 * std::log(2.0)});
  check_values(out[1], {std::log(0.25), std::log(0.75), -std::log(2.0), -std::log(2.0)});
  // An impossible class costs nothing if its target is 0.
  check_values(run(GPUNN_OP_SOFT_CROSS_ENTROPY, {f32s({1, 3}, {0, -far, 0}), f32s({1, 3}, {1, 0, 1})})[0],
               {2 * std::log(2.0)});
  check_values(run(GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD,
                   {f32s({1}, {2}), f32s({1, 2}, {std::log(0.25), std::log(0.75)}), f32s({1, 2}, {0.5, 1.5})})[0],
               {2 * (0.25 * 2 - 0.5), 2 * (0.75 * 2 - 1.5)});
  CHECK_THROWS_WITH(run(GPUNN_OP_SOFT_CROSS_ENTROPY, {f32s({1, 2}, {0, 0}), f32s({1, 3}, {0, 0, 0})}),
                    Contains("target must be f32[N, C] = [1, 2], is f32[1, 3]"));
}

TEST_CASE("losses and means by row") {
  check_values(run(GPUNN_OP_MSE_LOSS, {f32s({2, 2}, {1, 2, 3, 4}), f32s({2, 2}, {0, 0, 3, 6})})[0], {2.5, 2});
  check_values(run(GPUNN_OP_MEAN_ROWS, {f32s({3}, {1, 2, kNan}), i32s({}, {2})})[0], {1.5});
  check_values(run(GPUNN_OP_MEAN_ROWS, {f32s({1}, {kNan}), i32s({}, {0})})[0], {0});
  const auto rows = graph::Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = 3});
  check_values(run(GPUNN_OP_MEAN_ROWS_BACKWARD, {f32s({}, {6}), i32s({}, {2})}, rows)[0], {3, 3, 0});
  const auto columns =
      graph::Attributes::of(gpunn_reduce_attrs{.struct_size = 0, .kind = GPUNN_REDUCE_MAX, .axes = 1, .keep_dims = 0});
  check_values(run(GPUNN_OP_REDUCE, {f32s({2, 3}, {1, 5, -3, 4, 2, -1})}, columns)[0], {4, 5, -1});
}

TEST_CASE("sums with factors, bounds and norms") {
  const double far = std::numeric_limits<double>::infinity();
  const gpunn_axpby_attrs axpby{.struct_size = 0, .alpha = 0.5F, .beta = -2};
  check_values(run(GPUNN_OP_AXPBY, {f32s({2}, {4, 1}), f32s({2}, {3, 0})}, graph::Attributes::of(axpby))[0], {-4, 0.5});
  const gpunn_clamp_attrs clamp{.struct_size = 0, .low = -1, .high = 2};
  check_values(run(GPUNN_OP_CLAMP, {f32s({5}, {-far, 0.5, 3, kNan, -1})}, graph::Attributes::of(clamp))[0],
               {-1, 0.5, 2, kNan, -1});
  const gpunn_clamp_attrs crossed{.struct_size = 0, .low = 2, .high = 1};
  CHECK_THROWS_WITH(run(GPUNN_OP_CLAMP, {f32s({1}, {0})}, graph::Attributes::of(crossed)),
                    Contains("must not be above high"));
  check_values(run(GPUNN_OP_NORM, {f32s({2, 2}, {1, -2, 4, 10})})[0], {11});
  check_values(run(GPUNN_OP_NORM, {f32s({0}, {})})[0], {0});
  check_values(run(GPUNN_OP_NORM, {f32s({2}, {-far, 1})})[0], {far});

  gpunn_clip_norm_attrs clip{.struct_size = 0, .max_norm = 3, .epsilon = 1, .rescale = 0};
  const auto clipped = [&clip](double norm) {
    return run(GPUNN_OP_CLIP_NORM, {f32s({2}, {6, -8}), f32s({}, {norm})}, graph::Attributes::of(clip))[0];
  };
  check_values(clipped(5), {3, -4});
  check_values(clipped(1), {6, -8});
  check_values(clipped(far), {6, -8});
  check_values(clipped(kNan), {6, -8});
  clip.rescale = 1;
  check_values(clipped(1), {9, -12});

  const gpunn_l1_attrs l1{.struct_size = 0, .weight = 0.5F, .decayed = 3};
  check_values(
      run(GPUNN_OP_L1_GRADIENT, {f32s({4}, {1, 1, 1, 1}), f32s({4}, {-7, 0, 2, 3})}, graph::Attributes::of(l1))[0],
      {0.5, 1, 1.5, 1});
}

TEST_CASE("optimizers, one step by hand") {
  const ReferenceTensor w = f32s({2}, {1, 2}), g = f32s({2}, {0.5, 0.25}), lr = f32s({}, {0.1});
  // The first element decays: g' = 0.5 + 0.5 * 1 = 1.
  const gpunn_sgd_attrs sgd{.struct_size = 0, .momentum = 0.5F, .weight_decay = 0.5F, .nesterov = 0, .decayed = 1};
  auto out = run(GPUNN_OP_SGD_UPDATE, {w, g, lr, f32s({2}, {2, 2})}, graph::Attributes::of(sgd));
  check_values(out[1], {2, 1.25});
  check_values(out[0], {0.8, 1.875});
  gpunn_sgd_attrs nesterov = sgd;
  nesterov.nesterov = 1;
  out = run(GPUNN_OP_SGD_UPDATE, {w, g, lr, f32s({2}, {2, 2})}, graph::Attributes::of(nesterov));
  check_values(out[0], {1 - 0.1 * (1 + 1), 2 - 0.1 * (0.25 + 0.625)});

  // From fresh moments Adam's first step is the learning rate, whatever the gradient.
  const gpunn_adam_attrs adam{.struct_size = 0,
                              .beta1 = 0.9F,
                              .beta2 = 0.999F,
                              .epsilon = 0,
                              .weight_decay = 0.5F,
                              .decoupled = 1,
                              .decayed = 1};
  out = run(GPUNN_OP_ADAM_UPDATE, {w, g, lr, i64s({0}), f32s({2}, {0, 0}), f32s({2}, {0, 0})},
            graph::Attributes::of(adam));
  check_values(out[0], {1 * (1 - 0.1 * 0.5) - 0.1, 2 - 0.1});

  const gpunn_rmsprop_attrs rmsprop{.struct_size = 0,
                                    .alpha = 0.75F,
                                    .epsilon = 0.5F,
                                    .momentum = 0.5F,
                                    .weight_decay = 0,
                                    .reserved = 0,
                                    .decayed = 0};
  out = run(GPUNN_OP_RMSPROP_UPDATE, {f32s({1}, {1}), f32s({1}, {1}), lr, f32s({1}, {1}), f32s({1}, {2})},
            graph::Attributes::of(rmsprop));
  check_values(out[1], {1});
  check_values(out[2], {0.5 * 2 + 1 / 1.5});
  check_values(out[0], {1 - 0.1 * (1 + 1 / 1.5)});

  const gpunn_adagrad_attrs adagrad{
      .struct_size = 0, .epsilon = 0.5F, .weight_decay = 0.5F, .reserved = 0, .decayed = 1};
  out = run(GPUNN_OP_ADAGRAD_UPDATE, {w, g, lr, f32s({2}, {3, 0})}, graph::Attributes::of(adagrad));
  check_values(out[1], {4, 0.0625});
  check_values(out[0], {1 - 0.1 / 2.5, 2 - 0.1 * 0.25 / 0.75});

  // The moment outweighs the second gradient, so that w grows; nothing moves the third but its decay.
  const gpunn_lion_attrs lion{.struct_size = 0, .beta1 = 0.5F, .beta2 = 0.75F, .weight_decay = 0.5F, .decayed = 3};
  out = run(GPUNN_OP_LION_UPDATE, {f32s({3}, {1, 2, 4}), f32s({3}, {0.5, 0.25, 0}), lr, f32s({3}, {0, -1, 0})},
            graph::Attributes::of(lion));
  check_values(out[0], {0.95 - 0.1, 1.9 + 0.1, 3.8});
  check_values(out[1], {0.125, -0.6875, 0});

  // One part whose norms are 5 and 2.5, and one that does not decay.
  const gpunn_lars_attrs lars{.struct_size = 0,
                              .momentum = 0.5F,
                              .weight_decay = 0.25F,
                              .trust = 0.5F,
                              .epsilon = 0.25F,
                              .reserved = 0,
                              .decayed = 2};
  out = run(
      GPUNN_OP_LARS_UPDATE,
      {f32s({3}, {3, 4, 1}), f32s({3}, {1.5, 2, 1}), lr, f32s({3}, {0, 1, 2}), tensor_of(DType::i64, {3}, {0, 2, 3})},
      graph::Attributes::of(lars));
  const double by = 0.1 * 0.5 * 5 / (2.5 + 0.25 * 5 + 0.25);
  check_values(out[1], {by * 2.25, 0.5 + by * 3, 1.1});
  check_values(out[0], {3 - by * 2.25, 3.5 - by * 3, -0.1});
}

TEST_CASE("random numbers are the words of random.h") {
  gpunn_random_attrs attrs{};
  attrs.rank = 1;
  attrs.dim[0] = 6;
  attrs.seed = 77;
  attrs.stream = 5;
  attrs.low = -1;
  attrs.high = 3;
  // Six elements take two blocks a draw, so draw 3 begins at block 6 and element 5 is word 1 of block 7.
  const auto uniform = run(GPUNN_OP_RANDOM_UNIFORM, {i64s({3})}, graph::Attributes::of(attrs))[0];
  CHECK(uniform.values[5] == -1 + 4 * static_cast<double>(gpunn_random_unit(gpunn_philox(77, 5, 7).word[1])));

  attrs.dim[0] = 100000;
  attrs.low = 2;
  const auto normal = run(GPUNN_OP_RANDOM_NORMAL, {i64s({0})}, graph::Attributes::of(attrs))[0];
  double mean = 0, square = 0;
  for (const double value : normal.values) mean += value / 1e5;
  for (const double value : normal.values) square += (value - mean) * (value - mean) / 1e5;
  CHECK(near(mean, 2, 0.05));
  CHECK(near(std::sqrt(square), 3, 0.05));

  attrs.dim[0] = 1000;
  const auto permutation = run(GPUNN_OP_RANDOM_PERMUTATION, {i64s({9})}, graph::Attributes::of(attrs))[0];
  const std::set<double> distinct(permutation.values.begin(), permutation.values.end());
  CHECK(distinct.size() == 1000);
  CHECK(*distinct.begin() == 0);
  CHECK(*distinct.rbegin() == 999);
}

TEST_CASE("dropout drops its share, scales the rest, and is its own backward") {
  gpunn_dropout_attrs attrs{};
  attrs.p = 0.25F;
  attrs.seed = 3;
  const ReferenceTensor ones = f32s({10000}, std::vector<double>(10000, 1.0));
  const auto y = run(GPUNN_OP_DROPOUT, {ones, i64s({2})}, graph::Attributes::of(attrs))[0];
  int dropped = 0;
  for (const double value : y.values) {
    dropped += value == 0 ? 1 : 0;
    CHECK((value == 0 || near(value, 4.0 / 3)));
  }
  CHECK(dropped > 2300);
  CHECK(dropped < 2700);
}

TEST_CASE("an epoch's batches hold every row once, and the last one ends in -1") {
  const gpunn_sample_attrs attrs{
      .struct_size = 0, .shuffle = 1, .rows = 10, .batch = 4, .drop_last = 0, .seed = 1, .stream = 2};
  std::multiset<double> rows;
  for (const double step : {3, 4, 5}) {  // the second epoch
    const auto out = run(GPUNN_OP_SAMPLE_INDICES, {i64s({step})}, graph::Attributes::of(attrs));
    rows.insert(out[0].values.begin(), out[0].values.end());
    CHECK(out[1].values[0] == (step == 5 ? 2 : 4));
  }
  CHECK(rows == std::multiset<double>{-1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("rows of a negative index are 0, normalised or not") {
  const ReferenceTensor data = tensor_of(DType::u8, {2, 1, 2}, {10, 20, 30, 40});
  const ReferenceTensor index = i32s({3}, {1, -1, 0});
  check_values(run(GPUNN_OP_GATHER_ROWS, {data, index})[0], {30, 40, 0, 0, 10, 20});
  check_values(run(GPUNN_OP_GATHER_NORMALIZE, {data, index, f32s({1}, {0.5}), f32s({1}, {1})})[0],
               {16, 21, 0, 0, 6, 11});
}

TEST_CASE("counters and tables") {
  const auto by = graph::Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = 3});
  check_values(run(GPUNN_OP_ADVANCE, {i64s({39})}, by)[0], {42});
  const ReferenceTensor table = f32s({3}, {5, 6, 7});
  check_values(run(GPUNN_OP_TABLE_LOAD, {table, i64s({1})})[0], {6});
  check_values(run(GPUNN_OP_TABLE_LOAD, {table, i64s({99})})[0], {7});
  check_values(run(GPUNN_OP_TABLE_STORE, {table, i64s({4}), f32s({}, {9})})[0], {5, 9, 7});
}

TEST_CASE("metrics: ties go to the smaller index, a NaN row has rank C, the tail does not count") {
  const ReferenceTensor totals = tensor_of(DType::f64, {4}, {10, 1, 2, 3});
  const ReferenceTensor loss = f32s({4}, {1, 2, 4, kNan});
  const ReferenceTensor x = f32s({4, 6}, {3, 3, 0, 0,    0, 0,    // label 0: first of equals, rank 0
                                          3, 3, 0, 0,    0, 0,    // label 1: rank 1
                                          9, 8, 7, kNan, 5, 4,    // label 0, but a NaN: rank 6
                                          1, 0, 0, 0,    0, 0});  // behind the count
  const ReferenceTensor label = i32s({4}, {0, 1, 0, 0});
  check_values(run(GPUNN_OP_METRICS_ACCUMULATE, {loss, i32s({}, {3}), totals, x, label})[0], {17, 2, 4, 6});
  check_values(run(GPUNN_OP_METRICS_ACCUMULATE, {loss, i32s({}, {2}), totals})[0], {13, 1, 2, 5});
}

TEST_CASE("a confusion matrix: ties go to the smaller class; a NaN, no class and the tail change nothing") {
  const ReferenceTensor x = f32s({3, 2, 3}, {5, 1, 1, 5, 2, kNan,  // classes 0, 1 and none
                                             1, 1, 1, 2, 2, 2,     // class 1 three times
                                             9, 9, 9, 0, 0, 0});   // after the count
  const ReferenceTensor label = i32s({3, 3}, {1, 1, 1, 0, 255, -1, 0, 0, 0});
  const ReferenceTensor confusion = tensor_of(DType::i64, {2, 2}, {10, 20, 30, 40});
  check_values(run(GPUNN_OP_CONFUSION_ACCUMULATE, {x, label, i32s({}, {2}), confusion})[0], {10, 21, 31, 41});
  check_values(run(GPUNN_OP_ARGMAX, {x})[0], {0, 1, 1, 1, 1, 1, 0, 0, 0});
}

// The numbers that seed 1 and stream 0 draw in block 0 are 0.890259147, 0.894684672, 0.585725904, ...
TEST_CASE("label maps shift by what is drawn, and a window of them is enlarged") {
  gpunn_random_shift_attrs shift{};
  shift.reach[0] = shift.reach[1] = 1;
  shift.seed = 1;
  const ReferenceTensor x = i32s({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  check_values(run(GPUNN_OP_RANDOM_SHIFT_LABELS, {x, i64s({0}), i32s({}, {255})}, graph::Attributes::of(shift))[0],
               {5, 6, 255, 255, 255, 255});
  gpunn_random_zoom_attrs zoom{};
  zoom.low = zoom.high = 2;
  zoom.seed = 1;
  const ReferenceTensor line = i32s({1, 1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  // From column 4 * 0.5857 on, half a column each.
  check_values(run(GPUNN_OP_RANDOM_ZOOM_LABELS, {line, i64s({0})}, graph::Attributes::of(zoom))[0],
               {2, 3, 3, 4, 4, 5, 5, 6});
  const ReferenceTensor pixels = f32s({1, 1, 1, 3}, {0, 10, 30});
  // Columns 0.6286, 1.1286 and 1.6286.
  check_values(run(GPUNN_OP_RANDOM_ZOOM, {pixels, i64s({0})}, graph::Attributes::of(zoom))[0],
               {6.28588856, 12.57177712, 22.57177712});
}

TEST_CASE("a reference refuses what does not fit") {
  const ReferenceTensor two = f32s({2}, {1, 2}), three = f32s({3}, {1, 2, 3});
  const graph::OpSignature add{GPUNN_OP_ADD, {}, {two.type, two.type}, {two.type}};
  CHECK_THROWS_WITH(run_reference(add, {two}), Contains("2 input tensors, found 1"));
  CHECK_THROWS_WITH(run_reference(add, {two, three}), Contains("input 1 of type f32[2], found f32[3]"));
  CHECK_THROWS_WITH(run_reference({12345, {}, {}, {}}, {}), Contains("there is no op 12345"));
}
