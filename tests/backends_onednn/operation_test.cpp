// What `gpunn check` does not see of oneDNN's kernels: where they write, which copies they make, and whose threads they
// use.
#include "operation.hpp"

#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include <omp.h>

#include "backends_cpu/run_op.hpp"
#include "kernels.hpp"

using namespace cpu_test;

namespace {

const Runner& convolutions() {
  static const Runner runner([](plugin::Device& device) { gpunn::onednn::add_convolution_kernels(device, 2); });
  return runner;
}

const Runner& products() {
  static const Runner runner([](plugin::Device& device) { gpunn::onednn::add_matmul_kernels(device, 2); });
  return runner;
}

gpunn_conv2d_attrs same_size_3x3() {
  gpunn_conv2d_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  for (int i = 0; i < 2; ++i) attrs.stride[i] = attrs.pad[i] = attrs.dilation[i] = 1;
  attrs.groups = 1;
  return attrs;
}

gpunn_matmul_attrs plain() {
  gpunn_matmul_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  return attrs;
}

Tensor<float> drawn(const Shape& shape, unsigned seed) {
  Tensor<float> tensor(shape);
  Random random(seed);
  for (float& value : tensor) value = random.number();
  return tensor;
}

// Of x[2, 16, 9, 7], w[24, 16, 3, 3] at output [image, channel, row, column].
double convolved(const Tensor<float>& x, const Tensor<float>& w, int64_t image, int64_t channel, int64_t row,
                 int64_t column) {
  double sum = 0;
  for (int64_t c = 0; c < 16; ++c) {
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t s = 0; s < 3; ++s) {
        const int64_t i = row + r - 1, j = column + s - 1;
        if (i < 0 || i >= 9 || j < 0 || j >= 7) continue;
        sum += static_cast<double>(x[((image * 16 + c) * 9 + i) * 7 + j]) *
               static_cast<double>(w[((channel * 16 + c) * 3 + r) * 3 + s]);
      }
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a convolution by oneDNN is right, packed and channels-last, and stays within its memory") {
  const auto attrs = same_size_3x3();
  const Tensor<float> x = drawn({2, 16, 9, 7}, 1), w = drawn({24, 16, 3, 3}, 2);
  Tensor<float> packed({2, 24, 9, 7});
  convolutions().run(GPUNN_OP_CONV2D, &attrs, {x, w}, {packed});
  CHECK(packed.intact());

  const Tensor<float> turned_x = with_channels_last(x), turned_w = with_channels_last(w);
  Tensor<float> turned({2, 24, 9, 7});
  convolutions().run(GPUNN_OP_CONV2D, &attrs, {channels_last(turned_x), channels_last(turned_w)},
                     {channels_last(turned)});
  CHECK(turned.intact());
  const Tensor<float> back = with_channels_last(turned, true);

  double worst = 0;
  for (int64_t i = 0; i < packed.size(); ++i) {
    const double exact = convolved(x, w, i / (24 * 63), i / 63 % 24, i / 7 % 9, i % 7);
    for (const Tensor<float>* found : {&std::as_const(packed), &back}) {
      worst = std::max(worst, std::abs(static_cast<double>((*found)[i]) - exact));
    }
  }
  CHECK(worst < 1e-4);
}

TEST_CASE("what oneDNN does not serve is left to the base, with the reason") {
  const auto attrs = same_size_3x3();
  const View f16_x(GPUNN_F16, {2, 16, 9, 7}), f16_w(GPUNN_F16, {24, 16, 3, 3}), f16_y(GPUNN_F16, {2, 24, 9, 7});
  CHECK_THAT(convolutions().refusal(GPUNN_OP_CONV2D, &attrs, {f16_x, f16_w}, {f16_y}), Contains("f32 and bf16"));

  const auto product = plain();
  const View a(GPUNN_F32, {3, 0}), b(GPUNN_F32, {0, 4}), y(GPUNN_F32, {3, 4});
  CHECK_THAT(products().refusal(GPUNN_OP_MATMUL, &product, {a, b}, {y}), Contains("empty"));
}

TEST_CASE("oneDNN computes with the device's threads, whichever thread calls, and leaves the caller's number alone") {
  const int before = omp_get_max_threads();
  {
    const gpunn::onednn::ThreadsInUse in_use(before + 3);
    CHECK(omp_get_max_threads() == before + 3);
  }
  CHECK(omp_get_max_threads() == before);

  const auto attrs = plain();
  const Tensor<float> a = drawn({70, 300}, 3), b = drawn({300, 50}, 4);
  Tensor<float> here({70, 50}), elsewhere({70, 50});
  products().run(GPUNN_OP_MATMUL, &attrs, {a, b}, {here});
  CHECK(omp_get_max_threads() == before);
  int after = 0;
  std::thread([&] {
    omp_set_num_threads(5);
    products().run(GPUNN_OP_MATMUL, &attrs, {a, b}, {elsewhere});
    after = omp_get_max_threads();
  }).join();
  CHECK(after == 5);
  CHECK(here.values() == elsewhere.values());
  CHECK(here.intact());
}
