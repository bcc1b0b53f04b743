#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& elementwise_runner() {
  static const Runner made(gpunn::cpu::add_elementwise_kernels);
  return made;
}

template <class To, class From>
std::vector<To> copied(const std::vector<From>& values) {
  const Tensor<From> x({static_cast<int64_t>(values.size())}, values);
  Tensor<To> y(x.shape());
  elementwise_runner().run(GPUNN_OP_COPY, nullptr, {x}, {y});
  CHECK(y.intact());
  return y.values();
}

gpunn_fill_attrs fill_attrs(int32_t dtype, const Shape& shape, double value) {
  gpunn_fill_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.dtype = dtype;
  attrs.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), attrs.dim);
  attrs.value = value;
  return attrs;
}

}  // namespace

TEST_CASE("element-wise ops are exact at any size, instruction set and number of threads") {
  const int64_t n = GENERATE(0, 1, 3, 16, 17, 97, 16384, 50021);
  Random random(7);
  const Tensor<float> a = random.coarse({n});
  const Tensor<float> b = random.tensor({n});
  Tensor<float> y({n});
  const gpunn_scale_attrs half{sizeof(half), 0.3F};
  bool right = true;
  on_each_machine(y, [&] {
    elementwise_runner().run(GPUNN_OP_ADD, nullptr, {a, b}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == a[i] + b[i];
  });
  on_each_machine(y, [&] {
    elementwise_runner().run(GPUNN_OP_SCALE, &half, {b}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == 0.3F * b[i];
  });
  const gpunn_clamp_attrs bounds{sizeof(bounds), -0.25F, 0.5F};
  on_each_machine(y, [&] {
    elementwise_runner().run(GPUNN_OP_CLAMP, &bounds, {b}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == std::min(std::max(b[i], -0.25F), 0.5F);
  });
  const gpunn_axpby_attrs powers{sizeof(powers), 0.5F, -2.0F};  // exact products: one rounding, fused or not
  on_each_machine(y, [&] {
    elementwise_runner().run(GPUNN_OP_AXPBY, &powers, {a, b}, {y});
    for (int64_t i = 0; i < n; ++i) right = right && y[i] == 0.5F * a[i] - 2.0F * b[i];
  });
  CHECK(right);
}

TEST_CASE("element-wise ops work in place") {
  Random random(8);
  const Tensor<float> a = random.tensor({40009});
  const Tensor<float> b = random.tensor({40009});
  Tensor<float> apart(a.shape());
  elementwise_runner().run(GPUNN_OP_ADD, nullptr, {a, b}, {apart});
  Tensor<float> first(a);
  elementwise_runner().run(GPUNN_OP_ADD, nullptr, {first, b}, {first});
  Tensor<float> second(b);
  elementwise_runner().run(GPUNN_OP_ADD, nullptr, {a, second}, {second});
  CHECK(same_bits(first, apart));
  CHECK(same_bits(second, apart));
}

TEST_CASE("a clamp leaves NaN and bounds infinities") {
  const Tensor<float> x({4}, {kNan, kInf, -kInf, -0.5F});
  Tensor<float> y({4});
  const gpunn_clamp_attrs bounds{sizeof(bounds), -1.0F, 2.0F};
  elementwise_runner().run(GPUNN_OP_CLAMP, &bounds, {x}, {y});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 2.0F);
  CHECK(y[2] == -1.0F);
  CHECK(y[3] == -0.5F);
  const gpunn_clamp_attrs crossed{sizeof(crossed), 2.0F, -1.0F};
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_CLAMP, &crossed, {x}, {y}), Contains("must not be above high"));
}

TEST_CASE("copy converts as C does, and never leaves the type's range") {
  CHECK(copied<int32_t, float>({1.9F, -1.9F, 0.0F}) == std::vector<int32_t>{1, -1, 0});
  CHECK(copied<uint8_t, float>({255.5F, 256.0F, -3.0F, kNan}) == std::vector<uint8_t>{255, 255, 0, 0});
  CHECK(copied<int32_t, float>({3e9F, -3e9F, kInf, -kInf, kNan}) ==
        std::vector<int32_t>{INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0});
  CHECK(copied<int64_t, float>({1e19F, -1e19F, 4096.5F}) == std::vector<int64_t>{INT64_MAX, INT64_MIN, 4096});
  CHECK(copied<uint8_t, int32_t>({257, -1}) == std::vector<uint8_t>{1, 255});
  CHECK(copied<int32_t, int64_t>({-5, (int64_t{1} << 32) + 7}) == std::vector<int32_t>{-5, 7});
  CHECK(copied<float, uint8_t>({0, 200}) == std::vector<float>{0, 200});
  CHECK(copied<float, int64_t>({-3}) == std::vector<float>{-3});
  CHECK(copied<int64_t, uint8_t>({255}) == std::vector<int64_t>{255});
}

TEST_CASE("copy follows any strides") {
  Random random(9);
  const Shape shape = GENERATE(Shape{2, 3, 5}, Shape{1, 7, 1}, Shape{40, 30, 50}, Shape{4, 0, 3});
  const Tensor<float> x = random.tensor(shape);
  const int64_t p = shape[1] * shape[2];
  const int64_t q = shape[2];
  // x read as [i][j][k] and written as [k][i][j], in the order of either side.
  Tensor<float> y({shape[2], shape[0], shape[1]});
  on_each_machine(y, [&] {
    elementwise_runner().run(GPUNN_OP_COPY, nullptr, {View(x)},
                             {View(GPUNN_F32, shape, y.data()).strided({shape[1], 1, shape[0] * shape[1]})});
  });
  bool right = true;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t k = 0; k < shape[2]; ++k) {
        right = right && y[(k * shape[0] + i) * shape[1] + j] == x[i * p + j * q + k];
      }
    }
  }
  CHECK(right);
  Tensor<float> back(shape);
  elementwise_runner().run(GPUNN_OP_COPY, nullptr,
                           {View(GPUNN_F32, shape, y.data()).strided({shape[1], 1, shape[0] * shape[1]})}, {back});
  CHECK(same_bits(back, x));
}

TEST_CASE("copy to channels-last images and back, in both precisions") {
  Random random(11);
  const Shape shape = GENERATE(Shape{2, 3, 5, 7}, Shape{3, 16, 8, 8}, Shape{2, 33, 1, 131}, Shape{1, 130, 3, 23});
  const Tensor<float> x = random.tensor(shape);
  const Tensor<float> expected = with_channels_last(x);
  const Shape last{shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  Tensor<gpunn::BFloat16> half(shape), half_back(shape);
  Tensor<float> whole(shape), back(shape);
  const View half_view = View(half).strided(last), whole_view = View(whole).strided(last);
  const auto copy = [](const View& from, const View& to) {
    elementwise_runner().run(GPUNN_OP_COPY, nullptr, {from}, {to});
  };
  on_each_machine(whole, [&] {
    copy(x, whole_view);
    CHECK(same_bits(whole, expected));
  });
  on_each_machine(half, [&] {
    copy(x, half_view);
    bool right = true;
    for (int64_t i = 0; i < half.size(); ++i) right = right && half[i].bits() == gpunn::BFloat16(expected[i]).bits();
    CHECK(right);
  });
  on_each_machine(half_back, [&] { copy(half_view, half_back); });
  on_each_machine(back, [&] {
    copy(half_view, back);
    bool right = true;
    for (int64_t i = 0; i < x.size(); ++i) {
      right =
          right && half_back[i].bits() == gpunn::BFloat16(x[i]).bits() && back[i] == static_cast<float>(half_back[i]);
    }
    CHECK(right);
  });
}

TEST_CASE("copy broadcasts a stride of 0 and walks backwards on a negative one") {
  const Tensor<float> row({3}, {1, 2, 3});
  Tensor<float> rows({2, 3});
  elementwise_runner().run(GPUNN_OP_COPY, nullptr,
                           {View(GPUNN_F32, {2, 3}, const_cast<float*>(row.data())).strided({0, 1})}, {rows});
  CHECK(rows.values() == std::vector<float>{1, 2, 3, 1, 2, 3});
  Tensor<float> reversed({3});
  elementwise_runner().run(GPUNN_OP_COPY, nullptr,
                           {View(GPUNN_F32, {3}, const_cast<float*>(row.data()) + 2).strided({-1})}, {reversed});
  CHECK(reversed.values() == std::vector<float>{3, 2, 1});
}

TEST_CASE("fill writes every type it names") {
  Tensor<double> f64({5});
  const auto half = fill_attrs(GPUNN_F64, {5}, 0.5);
  elementwise_runner().run(GPUNN_OP_FILL, &half, {}, {f64});
  CHECK(f64.values() == std::vector<double>(5, 0.5));
  Tensor<int64_t> i64({});
  const auto most = fill_attrs(GPUNN_I64, {}, -9007199254740992.0);
  elementwise_runner().run(GPUNN_OP_FILL, &most, {}, {i64});
  CHECK(i64[0] == -9007199254740992);
  Tensor<uint8_t> u8({2, 20000});
  const auto bytes = fill_attrs(GPUNN_U8, {2, 20000}, 255);
  elementwise_runner().run(GPUNN_OP_FILL, &bytes, {}, {u8});
  CHECK(u8.values() == std::vector<uint8_t>(40000, 255));
  CHECK(u8.intact());
}

TEST_CASE("element-wise ops refuse what they do not serve, and say why") {
  const Tensor<float> x({2, 3});
  const Tensor<float> longer({2, 4});
  const Tensor<int32_t> whole({2, 3});
  Tensor<float> y({2, 3});
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_ADD, nullptr, {x}, {y}), Contains("takes 2 inputs, not 1"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_ADD, nullptr, {x, x}, {}), Contains("has 1 outputs, not 0"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_ADD, nullptr, {x, longer}, {y}), Contains("[2, 3] and [2, 4]"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_ADD, nullptr, {whole, x}, {y}),
             Contains("must be f32 or bf16 or f16[]"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_ADD, nullptr, {View(x).strided({1, 2}), x}, {y}),
             Contains("packed"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_SCALE, nullptr, {x}, {y}), Contains("attributes"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {x}, {View(y).strided({0, 1})}), Contains("overlap"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {View(GPUNN_F64, {2, 3})}, {y}), Contains("f64"));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {View(77, {2, 3})}, {y}), Contains("dtype 77"));
  const auto odd = fill_attrs(GPUNN_U8, {2}, 256);
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_FILL, &odd, {}, {View(GPUNN_U8, {2})}), Contains("fit u8"));
  const auto nan = fill_attrs(GPUNN_I32, {2}, std::nan(""));
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_FILL, &nan, {}, {View(GPUNN_I32, {2})}), Contains("fit i32"));
  auto lying = fill_attrs(GPUNN_F32, {2}, 0);
  lying.rank = 1000000;
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_FILL, &lying, {}, {View(GPUNN_F32, {2})}), Contains("rank"));
}

TEST_CASE("tensors that are none are refused") {
  View wide(GPUNN_F32, {1});
  wide.raw.rank = 9;
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {wide}, {wide}), Contains("rank 9"));
  wide.raw.rank = -1;
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {wide}, {wide}), Contains("rank -1"));
  const View negative(GPUNN_F32, {-4});
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {negative}, {negative}), Contains("negative"));
  const View vast(GPUNN_F32, {int64_t{1} << 40, int64_t{1} << 40});
  CHECK_THAT(elementwise_runner().refusal(GPUNN_OP_COPY, nullptr, {vast}, {vast}), Contains("beyond any memory"));
  gpunn_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.op = GPUNN_OP_COPY;
  desc.n_inputs = desc.n_outputs = 1;
  plugin::HostDevice device;
  gpunn::cpu::add_elementwise_kernels(device);
  CHECK_THAT(device.choose(plugin::OpDesc(desc)).support.reason, Contains("missing"));
  const gpunn_tensor* none = nullptr;
  desc.inputs = desc.outputs = &none;
  CHECK_THAT(device.choose(plugin::OpDesc(desc)).support.reason, Contains("missing"));
}
