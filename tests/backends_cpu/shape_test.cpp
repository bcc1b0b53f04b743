#include <cstdint>
#include <numeric>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& shape_runner() {
  static const Runner made(gpunn::cpu::add_shape_kernels);
  return made;
}

// 0, 1, 2, ...
Tensor<float> counted(const Shape& shape) {
  Tensor<float> x(shape);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

gpunn_transpose_attrs permutation(const std::vector<int32_t>& order) {
  gpunn_transpose_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.rank = static_cast<int32_t>(order.size());
  std::copy(order.begin(), order.end(), attrs.permutation);
  return attrs;
}

}  // namespace

TEST_CASE("a transpose is right at any number of threads") {
  const int64_t planes = GENERATE(1, 3), rows = GENERATE(1, 31, 130), columns = GENERATE(1, 17, 257);
  const Tensor<float> x = counted({planes, rows, columns});
  Tensor<float> y({planes, columns, rows});
  const auto attrs = permutation({0, 2, 1});
  on_each_machine(y, [&] {
    shape_runner().run(GPUNN_OP_TRANSPOSE, &attrs, {x}, {y});
    bool right = true;
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t plane = i / (rows * columns), column = i / rows % columns, row = i % rows;
      right = right && y[i] == x[(plane * rows + row) * columns + column];
    }
    CHECK(right);
  });
}

TEST_CASE("padding, and the slice that takes it away again") {
  const Tensor<float> x = counted({2, 3, 41, 37});
  gpunn_pad_attrs pad{};
  pad.struct_size = sizeof(pad);
  gpunn_slice_attrs slice{};
  slice.struct_size = sizeof(slice);
  pad.rank = slice.rank = 4;
  pad.before[1] = slice.start[1] = 1;
  pad.before[3] = slice.start[3] = 2;
  pad.after[2] = 3;
  std::copy(x.shape().begin(), x.shape().end(), slice.size);
  Tensor<float> y({2, 4, 44, 39}), back(x.shape());
  on_each_machine(y, [&] { shape_runner().run(GPUNN_OP_PAD, &pad, {x}, {y}); });
  double sum = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t channel = i / (44 * 39) % 4, row = i / 39 % 44, column = i % 39;
    if (channel < 1 || row >= 41 || column < 2) CHECK(y[i] == 0.0F);
    sum += y[i];
  }
  CHECK(sum == static_cast<double>(x.size()) * static_cast<double>(x.size() - 1) / 2);
  on_each_machine(back, [&] {
    shape_runner().run(GPUNN_OP_SLICE, &slice, {y}, {back});
    CHECK(back.values() == x.values());
  });
}

TEST_CASE("parts one behind the other, one of them twice") {
  const Tensor<float> a = counted({3, 2, 5}), b = counted({3, 1, 5});
  Tensor<float> y({3, 5, 5});
  const gpunn_concat_attrs attrs{sizeof(attrs), 1};
  on_each_machine(y, [&] {
    shape_runner().run(GPUNN_OP_CONCAT, &attrs, {a, b, a}, {y});
    bool right = true;
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t i = 0; i < 10; ++i) {
        right = right && y[row * 25 + i] == a[row * 10 + i] && y[row * 25 + 15 + i] == a[row * 10 + i];
      }
      for (int64_t i = 0; i < 5; ++i) right = right && y[row * 25 + 10 + i] == b[row * 5 + i];
    }
    CHECK(right);
  });
}

TEST_CASE("channels-last images: concatenated, and a slice of them") {
  // Rows of fewer bytes than a vector, of a few more, and of many.
  const int64_t first = GENERATE(1, 5, 24, 70), second = 3;
  const Tensor<float> a = counted({2, first, 5, 7}), b = counted({2, second, 5, 7});
  const Tensor<float> last_a = with_channels_last(a), last_b = with_channels_last(b);
  const Shape joined{2, first + second, 5, 7};
  Tensor<float> packed(joined), y(joined), back(b.shape());
  const gpunn_concat_attrs attrs{sizeof(attrs), 1};
  shape_runner().run(GPUNN_OP_CONCAT, &attrs, {a, b}, {packed});
  const View last_y = channels_last(y);
  on_each_machine(y, [&] {
    shape_runner().run(GPUNN_OP_CONCAT, &attrs, {channels_last(last_a), channels_last(last_b)}, {last_y});
    CHECK(with_channels_last(y, true).values() == packed.values());
  });
  gpunn_slice_attrs slice{};
  slice.struct_size = sizeof(slice);
  slice.rank = 4;
  slice.start[1] = first;
  std::copy(b.shape().begin(), b.shape().end(), slice.size);
  const View last_back = channels_last(back);
  on_each_machine(back, [&] {
    shape_runner().run(GPUNN_OP_SLICE, &slice, {last_y}, {last_back});
    CHECK(back.values() == last_b.values());
  });
}

TEST_CASE("boxes that are not in their tensors are refused") {
  const Tensor<float> x({4, 6});
  Tensor<float> y({4, 3}), turned({6, 4});
  gpunn_slice_attrs slice{};
  slice.struct_size = sizeof(slice);
  slice.rank = 2;
  slice.start[1] = 3;
  slice.size[0] = 4, slice.size[1] = 3;
  CHECK(shape_runner().refusal(GPUNN_OP_SLICE, &slice, {x}, {y}).empty());
  slice.start[1] = 4;
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_SLICE, &slice, {x}, {y}), Contains("are not in dimension 1 of [4, 6]"));
  slice.start[1] = INT64_MAX;
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_SLICE, &slice, {x}, {y}), Contains("are not in dimension 1 of [4, 6]"));
  slice.start[1] = 0;
  slice.rank = 3;
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_SLICE, &slice, {x}, {y}), Contains("the attributes are for 3 dimensions"));
  gpunn_pad_attrs pad{};
  pad.struct_size = sizeof(pad);
  pad.rank = 2;
  pad.before[1] = 3;
  CHECK(shape_runner().refusal(GPUNN_OP_PAD, &pad, {y}, {Tensor<float>({4, 6})}).empty());
  pad.before[1] = 2;
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_PAD, &pad, {y}, {Tensor<float>({4, 6})}),
             Contains("y must be f32[4, 5], is f32[4, 6]"));
  pad.before[1] = INT64_MAX;
  pad.after[1] = INT64_MAX;
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_PAD, &pad, {y}, {Tensor<float>({4, 6})}),
             Contains("larger than any memory"));
  const auto order = permutation({1, 0}), twice = permutation({1, 1});
  CHECK(shape_runner().refusal(GPUNN_OP_TRANSPOSE, &order, {x}, {turned}).empty());
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_TRANSPOSE, &order, {x}, {Tensor<float>({4, 6})}),
             Contains("y must be f32[6, 4], is f32[4, 6]"));
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_TRANSPOSE, &twice, {x}, {turned}), Contains("once"));
  const gpunn_concat_attrs axis{sizeof(axis), 1}, none{sizeof(none), 2};
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_CONCAT, &axis, {x, y}, {Tensor<float>({4, 8})}),
             Contains("y must be f32[4, 9]"));
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_CONCAT, &axis, {x, y}, {Tensor<float>({4, 10})}),
             Contains("y must be f32[4, 9]"));
  CHECK_THAT(shape_runner().refusal(GPUNN_OP_CONCAT, &none, {x, y}, {Tensor<float>({4, 9})}),
             Contains("there is no dimension 2"));
  CHECK(shape_runner().refusal(GPUNN_OP_CONCAT, &axis, {x, y}, {Tensor<float>({4, 9})}).empty());
}
