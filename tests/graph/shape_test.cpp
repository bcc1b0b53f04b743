#include <gpunn/ops.h>

#include "catch.hpp"
#include "graph/graph.hpp"
#include "graph/output_types.hpp"

using namespace gpunn;
using namespace gpunn::graph;

namespace {

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

gpunn_conv2d_attrs conv(int32_t stride, int32_t pad, int32_t dilation = 1, int32_t groups = 1) {
  gpunn_conv2d_attrs a{};
  a.stride[0] = a.stride[1] = stride;
  a.pad[0] = a.pad[1] = pad;
  a.dilation[0] = a.dilation[1] = dilation;
  a.groups = groups;
  return a;
}

std::vector<TensorType> infer(int32_t op, const Attributes& attrs, const std::vector<TensorType>& inputs) {
  return output_types(op_row(op), attrs, inputs);
}

}  // namespace

TEST_CASE("convolution shapes") {
  const auto shape = [](const gpunn_conv2d_attrs& a, Shape x, Shape w) {
    return infer(GPUNN_OP_CONV2D, Attributes::of(a), {f32(std::move(x)), f32(std::move(w))})[0].shape;
  };
  CHECK(shape(conv(1, 2), {128, 1, 28, 28}, {6, 1, 5, 5}) == Shape{128, 6, 28, 28});
  CHECK(shape(conv(2, 3), {2, 3, 224, 224}, {64, 3, 7, 7}) == Shape{2, 64, 112, 112});
  CHECK(shape(conv(1, 0, 2), {1, 1, 7, 9}, {1, 1, 3, 3}) == Shape{1, 1, 3, 5});
  CHECK(shape(conv(1, 1, 1, 4), {1, 8, 5, 5}, {8, 2, 3, 3}) == Shape{1, 8, 5, 5});
  CHECK_THROWS_WITH(shape(conv(1, 0), {1, 3, 8, 8}, {4, 2, 3, 3}), Contains("reads 2 channels") && Contains("has 3"));
  CHECK_THROWS_WITH(shape(conv(1, 0), {1, 1, 2, 8}, {4, 1, 3, 3}), Contains("larger than the padded input of 2 rows"));
  CHECK_THROWS_WITH(shape(conv(0, 0), {1, 1, 8, 8}, {4, 1, 3, 3}), Contains("stride 0x0 must be 1 or more"));
  CHECK_THROWS_WITH(shape(conv(1, 0, 1, 3), {1, 6, 8, 8}, {4, 2, 3, 3}), Contains("can't be split in 3 groups"));
}

TEST_CASE("convolution gradients come back to the shapes they start from") {
  auto a = conv(2, 1);
  const TensorType x = f32({2, 3, 9, 8}), w = f32({4, 3, 3, 2});
  const TensorType y = infer(GPUNN_OP_CONV2D, Attributes::of(a), {x, w})[0];
  a.input_size[0] = 9;
  a.input_size[1] = 8;
  a.filter_size[0] = 3;
  a.filter_size[1] = 2;
  CHECK(infer(GPUNN_OP_CONV2D_BACKWARD_DATA, Attributes::of(a), {y, w})[0] == x);
  CHECK(infer(GPUNN_OP_CONV2D_BACKWARD_FILTER, Attributes::of(a), {y, x})[0] == w);
  a.input_size[0] = 14;
  CHECK_THROWS_WITH(infer(GPUNN_OP_CONV2D_BACKWARD_DATA, Attributes::of(a), {y, w}), Contains("dy must be"));
}

TEST_CASE("an average pool's gradient needs the size that the pool came from") {
  gpunn_pool2d_attrs a{};
  a.window[0] = a.window[1] = 3;
  a.stride[0] = a.stride[1] = 2;
  a.pad[0] = a.pad[1] = 1;
  const TensorType x = f32({2, 3, 9, 8});
  const TensorType y = infer(GPUNN_OP_AVG_POOL2D, Attributes::of(a), {x})[0];
  CHECK(y == f32({2, 3, 5, 4}));
  CHECK_THROWS_WITH(infer(GPUNN_OP_AVG_POOL2D_BACKWARD, Attributes::of(a), {y}),
                    Contains("input_size 0x0 must be 1 or more"));
  a.input_size[0] = 9;
  a.input_size[1] = 8;
  CHECK(infer(GPUNN_OP_AVG_POOL2D_BACKWARD, Attributes::of(a), {y})[0] == x);
  a.input_size[1] = 9;
  CHECK_THROWS_WITH(infer(GPUNN_OP_AVG_POOL2D_BACKWARD, Attributes::of(a), {y}), Contains("dy must be [2, 3, 5, 5]"));
}

TEST_CASE("matmul shapes in all four transposes") {
  const auto shape = [](int32_t ta, int32_t tb, Shape a, Shape b) {
    const gpunn_matmul_attrs attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb};
    return infer(GPUNN_OP_MATMUL, Attributes::of(attrs), {f32(std::move(a)), f32(std::move(b))})[0].shape;
  };
  CHECK(shape(0, 0, {2, 3}, {3, 5}) == Shape{2, 5});
  CHECK(shape(1, 0, {3, 2}, {3, 5}) == Shape{2, 5});
  CHECK(shape(0, 1, {2, 3}, {5, 3}) == Shape{2, 5});
  CHECK(shape(1, 1, {3, 2}, {5, 3}) == Shape{2, 5});
  CHECK_THROWS_WITH(shape(0, 0, {2, 3}, {4, 5}), Contains("differ: 3 and 4"));
}

TEST_CASE("an error names the layer, the op and both shapes") {
  Graph g;
  const ValueId a = g.add_value("a", f32({2, 3}), Storage::data);
  const ValueId b = g.add_value("b", f32({2, 4}), Storage::data);
  CHECK_THROWS_WITH(g.add1(GPUNN_OP_ADD, "join", {}, {a, b}),
                    Contains("'join': ADD") && Contains("[2, 3] and [2, 4] can't be broadcast to one shape"));
  CHECK_THROWS_WITH(g.add1(GPUNN_OP_ADD, "join", {}, {a}), Contains("takes 2 inputs, not 1"));
  CHECK_THROWS_WITH(g.add1(12345, "join", {}, {a}), Contains("no op 12345"));
}

TEST_CASE("in-place ops give back the value they change") {
  Graph g;
  const ValueId w = g.add_value("w", f32({8}), Storage::parameters);
  const ValueId grad = g.add_value("g", f32({8}), Storage::gradients);
  const ValueId lr = g.add_value("lr", f32({}), Storage::state);
  const gpunn_sgd_attrs plain{.struct_size = 0, .momentum = 0, .weight_decay = 0, .nesterov = 0, .decayed = 8};
  CHECK(g.add(GPUNN_OP_SGD_UPDATE, "sgd", Attributes::of(plain), {w, grad, lr}) == std::vector<ValueId>{w});
  auto momentum = plain;
  momentum.momentum = 0.9F;
  CHECK_THROWS_WITH(g.add(GPUNN_OP_SGD_UPDATE, "sgd", Attributes::of(momentum), {w, grad, lr}),
                    Contains("velocity goes with a momentum"));
}

TEST_CASE("a batch larger than the data is refused where the last is dropped") {
  Graph g;
  const ValueId step = g.add_value("step", {DType::i64, {}}, Storage::state);
  gpunn_sample_attrs a{};
  a.rows = 10;
  a.batch = 16;
  CHECK(g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(a), {step}).size() == 2);
  a.drop_last = 1;
  CHECK_THROWS_WITH(g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(a), {step}),
                    Contains("a batch of 16 is larger than the 10 rows"));
}

TEST_CASE("augmentation keeps the shape of images, and says what it can't be done to") {
  const TensorType images = f32({8, 3, 32, 32}), counter{DType::i64, {}}, channels = f32({3});
  const auto shift = [&](const gpunn_random_shift_attrs& a, const std::vector<TensorType>& in) {
    return infer(GPUNN_OP_RANDOM_SHIFT, Attributes::of(a), in).at(0);
  };
  gpunn_random_shift_attrs moved{};
  moved.reach[0] = 4;
  CHECK(shift(moved, {images, counter, channels}) == images);
  CHECK_THROWS_WITH(shift(moved, {f32({8, 3}), counter, channels}),
                    Contains("x must be f32[N, C, H, W]") && Contains("is f32[8, 3]"));
  CHECK_THROWS_WITH(shift(moved, {images, counter, f32({4})}), Contains("border must be f32[C] = [3], is f32[4]"));
  CHECK_THROWS_WITH(shift(moved, {images, f32({}), channels}), Contains("counter must be i64[], is f32[]"));
  moved.flip = 1.5F;
  CHECK_THROWS_WITH(shift(moved, {images, counter, channels}), Contains("flip 1.5") && Contains("in [0, 1]"));
  moved.flip = 0;
  moved.reach[1] = -1;
  CHECK_THROWS_WITH(shift(moved, {images, counter, channels}), Contains("reach 4x-1 must be 0 or more"));

  gpunn_random_affine_attrs turned{};
  turned.scale_low = 2;
  turned.scale_high = 1;
  CHECK_THROWS_WITH(infer(GPUNN_OP_RANDOM_AFFINE, Attributes::of(turned), {images, counter, channels}),
                    Contains("must not be above"));
  gpunn_random_color_attrs coloured{};
  CHECK_THROWS_WITH(infer(GPUNN_OP_RANDOM_COLOR, Attributes::of(coloured), {images, counter, channels, channels}),
                    Contains("white 0"));
  gpunn_random_erase_attrs erased{};
  erased.p = -1;
  CHECK_THROWS_WITH(infer(GPUNN_OP_RANDOM_ERASE, Attributes::of(erased), {images, counter, channels}),
                    Contains("p -1"));
  const TensorType count{DType::i32, {}};
  CHECK(infer(GPUNN_OP_MIX_ROWS, {}, {f32({8, 10}), f32({}), count}).at(0) == f32({8, 10}));
  CHECK_THROWS_WITH(infer(GPUNN_OP_MIX_ROWS, {}, {f32({}), f32({}), count}),
                    Contains("x must be f32[N, ...], is f32[]"));
  CHECK_THROWS_WITH(infer(GPUNN_OP_MIX_ROWS, {}, {f32({8}), f32({8}), count}),
                    Contains("share must be f32[], is f32[8]"));
}
