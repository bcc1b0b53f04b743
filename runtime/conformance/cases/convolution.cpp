#include <gpunn/ops.h>

#include "conformance/cases/case.hpp"
#include "graph/op_info.hpp"

namespace gpunn::conformance {

namespace {

struct Convolution {
  Shape x;                         // N, C, H, W
  int64_t filters, height, width;  // K, R, S
  int32_t stride[2] = {1, 1};
  int32_t pad[2] = {0, 0};
  int32_t dilation[2] = {1, 1};
  int32_t groups = 1;
  const char* note = "";
};

const std::vector<Convolution> kConvolutions = {
    {{1, 1, 1, 1}, 1, 1, 1},
    {{2, 3, 7, 5}, 4, 3, 3},
    {{5, 1, 28, 28}, 6, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1, "LeNet's first"},
    {{3, 6, 14, 14}, 16, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1, "LeNet's second"},
    {{2, 5, 9, 11}, 7, 3, 2, {2, 1}, {1, 0}},
    {{1, 4, 13, 17}, 6, 3, 3, {1, 1}, {2, 3}, {2, 3}},
    {{2, 2, 15, 12}, 3, 3, 2, {2, 3}, {1, 2}, {3, 2}},
    {{2, 8, 10, 10}, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, 8, "depthwise"},
    {{1, 3, 9, 9}, 6, 3, 3, {2, 2}, {1, 1}, {1, 1}, 3, "depthwise, two filters a channel"},
    {{2, 6, 8, 9}, 12, 3, 3, {2, 2}, {0, 1}, {1, 1}, 3},
    {{2, 34, 5, 7}, 38, 2, 3, {1, 1}, {1, 1}, {1, 1}, 2},
    {{4, 16, 7, 7}, 33, 1, 1},
    {{1, 3, 8, 8}, 5, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1, "pixels that no window reads"},
    {{3, 5, 6, 7}, 9, 1, 1, {1, 1}, {1, 2}},
    {{1, 2, 5, 6}, 3, 5, 6, {1, 1}, {0, 0}, {1, 1}, 1, "a filter as large as the image"},
    {{2, 3, 12, 31}, 5, 1, 7, {1, 1}, {0, 3}},
    {{2, 3, 31, 4}, 5, 7, 1, {1, 1}, {3, 0}},
    {{1, 3, 6, 6}, 4, 3, 3, {1, 1}, {4, 4}, {1, 1}, 1, "windows of padding alone"},
    {{1, 1, 4, 50}, 2, 2, 3, {3, 5}},
    {{1, 2, 8, 10}, 3, 3, 3, {2, 2}, {0, 0}, {1, 1}, 1, "a last row and column unread"},
    {{2, 17, 19, 23}, 37, 3, 3, {1, 1}, {1, 1}},
    {{3, 24, 28, 28}, 40, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "several blocks"},
    {{1, 70, 6, 6}, 130, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "deep"},
    {{5, 96, 2, 2}, 200, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "small images, deep"},
    {{3, 132, 3, 3}, 72, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, "small images, deep"},
    {{67, 2, 6, 5}, 3, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, "many images"},
};

gpunn_conv2d_attrs attributes(const Convolution& c, int32_t activation) {
  gpunn_conv2d_attrs attrs{};
  attrs.activation = activation;
  attrs.groups = c.groups;
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.stride[i] = c.stride[i];
    attrs.pad[i] = c.pad[i];
    attrs.dilation[i] = c.dilation[i];
  }
  return attrs;
}

void add_cases(std::vector<Case>& cases, const Convolution& c) {
  const TensorType x{DType::f32, c.x};
  const TensorType w{DType::f32, {c.filters, c.x[1] / c.groups, c.height, c.width}};
  gpunn_conv2d_attrs attrs = attributes(c, GPUNN_ACTIVATION_NONE);
  const auto plain = graph::Attributes::of(attrs);
  const std::vector<TensorType> types{x, w};
  const Shape y = graph::op_info(GPUNN_OP_CONV2D).infer(plain, types).front().shape;

  cases.push_back(
      make_case({.op = GPUNN_OP_CONV2D, .attrs = plain, .inputs = {f32(x.shape), f32(w.shape)}, .note = c.note}));
  for (const int32_t activation : {GPUNN_ACTIVATION_NONE, GPUNN_ACTIVATION_RELU}) {
    cases.push_back(make_case({.op = GPUNN_OP_CONV2D_BIAS_ACTIVATION,
                               .attrs = graph::Attributes::of(attributes(c, activation)),
                               .inputs = {f32(x.shape), f32(w.shape), f32({c.filters})},
                               .note = c.note}));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.input_size[i] = static_cast<int32_t>(x.shape[2 + i]);
    attrs.filter_size[i] = static_cast<int32_t>(w.shape[2 + i]);
  }
  const auto backward = graph::Attributes::of(attrs);
  cases.push_back(make_case(
      {.op = GPUNN_OP_CONV2D_BACKWARD_DATA, .attrs = backward, .inputs = {f32(y), f32(w.shape)}, .note = c.note}));
  cases.push_back(make_case(
      {.op = GPUNN_OP_CONV2D_BACKWARD_FILTER, .attrs = backward, .inputs = {f32(y), f32(x.shape)}, .note = c.note}));
}

}  // namespace

std::vector<Case> convolution_cases() {
  std::vector<Case> cases;
  for (const Convolution& c : kConvolutions) add_cases(cases, c);
  return cases;
}

}  // namespace gpunn::conformance
