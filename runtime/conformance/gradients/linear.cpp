#include <gpunn/ops.h>

#include "conformance/gradients/function.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

namespace {

graph::Attributes matmul(bool ta, bool tb) {
  return graph::Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb});
}

std::string transposes(bool ta, bool tb) {
  return std::string("of MATMUL") + (ta ? ", a transposed" : "") + (tb ? ", b transposed" : "");
}

// y = op(a) op(b): da and db are products too.
void add_matmul(std::vector<GradientCase>& cases, bool ta, bool tb) {
  const int64_t m = 5, n = 7, k = 6;
  const std::vector<InputSpec> inputs{f32(ta ? Shape{k, m} : Shape{m, k}), f32(tb ? Shape{n, k} : Shape{k, n})};
  const Wire dy{Source::output_gradient, 0}, a{Source::input, 0}, b{Source::input, 1};
  const GradientCase base{
      transposes(ta, tb), inputs, reference_function(GPUNN_OP_MATMUL, matmul(ta, tb)), GPUNN_OP_MATMUL, {}, {}, {}, 0};
  GradientCase by_a = base;
  by_a.name += ", by a";
  by_a.attrs = ta ? matmul(tb, true) : matmul(false, !tb);
  by_a.wires = ta ? std::vector<Wire>{b, dy} : std::vector<Wire>{dy, b};
  by_a.with_respect = {0};
  GradientCase by_b = base;
  by_b.name += ", by b";
  by_b.attrs = tb ? matmul(true, ta) : matmul(!ta, false);
  by_b.wires = tb ? std::vector<Wire>{dy, a} : std::vector<Wire>{a, dy};
  by_b.with_respect = {1};
  cases.push_back(std::move(by_a));
  cases.push_back(std::move(by_b));
}

void add_bias(std::vector<GradientCase>& cases, const Shape& shape) {
  cases.push_back({.name = "of BIAS_ADD, by b, x " + to_string(shape),
                   .inputs = {f32(shape), f32({shape[1]})},
                   .forward = reference_function(GPUNN_OP_BIAS_ADD),
                   .op = GPUNN_OP_BIAS_BACKWARD,
                   .attrs = {},
                   .wires = {{Source::output_gradient, 0}},
                   .with_respect = {1}});
  for (const int32_t activation : {GPUNN_ACTIVATION_NONE, GPUNN_ACTIVATION_RELU}) {
    const Function biased = reference_function(GPUNN_OP_BIAS_ADD), relu = reference_function(GPUNN_OP_RELU);
    const Function forward = [=](const std::vector<ReferenceTensor>& in) {
      return activation == GPUNN_ACTIVATION_RELU ? relu(biased(in)) : biased(in);
    };
    const gpunn_bias_activation_backward_attrs attrs{.struct_size = 0, .activation = activation};
    cases.push_back({.name = std::string("of BIAS_ADD") + (activation == GPUNN_ACTIVATION_RELU ? " and RELU" : "") +
                             ", by x and b, x " + to_string(shape),
                     .inputs = {f32(shape, apart()), f32({shape[1]}, constant(0.01))},
                     .forward = forward,
                     .op = GPUNN_OP_BIAS_ACTIVATION_BACKWARD,
                     .attrs = graph::Attributes::of(attrs),
                     .wires = {{Source::output_gradient, 0}, {Source::output, 0}},
                     .with_respect = {0, 1}});
  }
}

struct TransposedConvolution {
  Shape x, w;
  int32_t stride[2], pad[2], dilation[2], groups;
};

// The gradients of BACKWARD_DATA, which is what a transposed convolution computes.
void add_transposed(std::vector<GradientCase>& cases, const TransposedConvolution& c,
                    const graph::Attributes& attributes) {
  const std::vector<TensorType> types{{DType::f32, c.x}, {DType::f32, c.w}};
  const Shape y = ops::op_info(GPUNN_OP_CONV2D).infer(attributes, types).front().shape;
  const GradientCase base{"of CONV2D_BACKWARD_DATA, dy " + to_string(y) + ", w " + to_string(c.w),
                          {f32(y), f32(c.w)},
                          reference_function(GPUNN_OP_CONV2D_BACKWARD_DATA, attributes),
                          0,
                          attributes,
                          {},
                          {},
                          0};
  GradientCase data = base;
  data.op = GPUNN_OP_CONV2D;
  data.wires = {{Source::output_gradient, 0}, {Source::input, 1}};
  data.with_respect = {0};
  GradientCase filter = base;
  filter.op = GPUNN_OP_CONV2D_BACKWARD_FILTER;
  filter.wires = {{Source::input, 0}, {Source::output_gradient, 0}};
  filter.with_respect = {1};
  cases.push_back(std::move(data));
  cases.push_back(std::move(filter));
}

void add_convolution(std::vector<GradientCase>& cases, const TransposedConvolution& c) {
  gpunn_conv2d_attrs attrs{};
  attrs.groups = c.groups;
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.stride[i] = c.stride[i];
    attrs.pad[i] = c.pad[i];
    attrs.dilation[i] = c.dilation[i];
    attrs.input_size[i] = static_cast<int32_t>(c.x[2 + i]);
    attrs.filter_size[i] = static_cast<int32_t>(c.w[2 + i]);
  }
  const auto attributes = graph::Attributes::of(attrs);
  const GradientCase base{"of CONV2D, x " + to_string(c.x) + ", w " + to_string(c.w),
                          {f32(c.x), f32(c.w)},
                          reference_function(GPUNN_OP_CONV2D, attributes),
                          0,
                          attributes,
                          {},
                          {},
                          0};
  GradientCase data = base;
  data.op = GPUNN_OP_CONV2D_BACKWARD_DATA;
  data.wires = {{Source::output_gradient, 0}, {Source::input, 1}};
  data.with_respect = {0};
  GradientCase filter = base;
  filter.op = GPUNN_OP_CONV2D_BACKWARD_FILTER;
  filter.wires = {{Source::output_gradient, 0}, {Source::input, 0}};
  filter.with_respect = {1};
  cases.push_back(std::move(data));
  cases.push_back(std::move(filter));
  add_transposed(cases, c, attributes);
}

}  // namespace

std::vector<GradientCase> linear_gradients() {
  std::vector<GradientCase> cases;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) add_matmul(cases, ta, tb);
  }
  add_bias(cases, {7, 5});
  add_bias(cases, {2, 3, 4, 5});
  add_convolution(cases, {{2, 3, 5, 6}, {4, 3, 3, 2}, {1, 1}, {0, 0}, {1, 1}, 1});
  add_convolution(cases, {{1, 2, 7, 6}, {3, 2, 3, 3}, {2, 1}, {1, 2}, {1, 2}, 1});
  add_convolution(cases, {{1, 4, 6, 5}, {6, 2, 2, 3}, {1, 2}, {1, 1}, {2, 1}, 2});
  add_convolution(cases, {{2, 3, 4, 4}, {3, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 3});
  return cases;
}

}  // namespace gpunn::conformance
