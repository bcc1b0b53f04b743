// CONV2D, its two gradients and the composite with bias and activation.
#include <algorithm>
#include <cmath>

#include "ops/fused_activation.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::convolution {

namespace {

// --- CONV2D ---

// The node's attributes with the sizes of x and w put in, which each of the three ops may need of the others.
Attributes with_sizes(const GradientContext& c, ValueId x, ValueId w) {
  auto a = c.node().attrs.as<gpunn_conv2d_attrs>();
  const Shape& image = c.graph().value(x).type.shape;
  const Shape& filter = c.graph().value(w).type.shape;
  for (std::size_t i = 0; i < 2; ++i) {
    a.input_size[i] = static_cast<int32_t>(image[2 + i]);
    a.filter_size[i] = static_cast<int32_t>(filter[2 + i]);
  }
  return Attributes::of(a);
}

// y, x and w enter the sum of y * (x convolved by w) alike: the gradient of each op by one of them is that of the three
// ops which computes it of the other two.
void conv2d_gradient(GradientContext& c) {
  const Attributes a = with_sizes(c, c.input(0), c.input(1));
  const ValueId dy = c.output_gradient();
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_CONV2D_BACKWARD_FILTER, a, {dy, c.input(0)}));
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_CONV2D_BACKWARD_DATA, a, {dy, c.input(1)}));
}

// dy and w (or dw) give the products: one a tap, group channel and output element.
double product_flops(const Shape& dy, const Shape& w) {
  return 2.0 * static_cast<double>(element_count(dy)) * static_cast<double>(w[1] * w[2] * w[3]);
}

double convolution_flops(const OpSignature& s) { return product_flops(s.outputs[0].shape, s.inputs[1].shape); }

// x[N,C,H,W], w[K,C/groups,R,S], y[N,K,P,Q].
struct Geometry {
  int64_t images, channels, height, width;
  int64_t filters, group_channels, filter_height, filter_width;
  int64_t out_height, out_width;
  int64_t groups;
  gpunn_conv2d_attrs attrs;
};

Geometry geometry(const ReferenceCall& call, const Shape& x, const Shape& w, const Shape& y) {
  call.require(x.size() == 4 && w.size() == 4 && y.size() == 4, "tensors of rank 4");
  const auto attrs = call.attrs<gpunn_conv2d_attrs>();
  const Geometry g{x[0], x[1], x[2], x[3], w[0], w[1], w[2], w[3], y[2], y[3], attrs.groups, attrs};
  call.require(g.groups > 0 && g.channels == g.group_channels * g.groups && g.filters % g.groups == 0,
               "channels and filters that the groups divide");
  call.require(y[0] == g.images && y[1] == g.filters, "y[N,K,P,Q]");
  return g;
}

// Calls visit(index into x, index into w, index into y) for every product of the convolution. A row of y is the
// innermost loop, whose ends are known: with a question for each product the checks of all backends took twice as long.
template <class Visit>
void for_each_product(const Geometry& g, Visit visit) {
  const int64_t group_filters = g.filters / g.groups;
  const int64_t stride = g.attrs.stride[1];
  for (int64_t n = 0; n < g.images; ++n) {
    for (int64_t k = 0; k < g.filters; ++k) {
      const int64_t group = k / group_filters;
      for (int64_t p = 0; p < g.out_height; ++p) {
        const int64_t y_row = ((n * g.filters + k) * g.out_height + p) * g.out_width;
        for (int64_t c = 0; c < g.group_channels; ++c) {
          const int64_t channel = group * g.group_channels + c;
          for (int64_t r = 0; r < g.filter_height; ++r) {
            const int64_t h = p * g.attrs.stride[0] - g.attrs.pad[0] + r * g.attrs.dilation[0];
            if (h < 0 || h >= g.height) continue;
            const int64_t x_row = ((n * g.channels + channel) * g.height + h) * g.width;
            for (int64_t s = 0; s < g.filter_width; ++s) {
              // Column q of y meets column q * stride + shift of x, where there is one.
              const int64_t shift = s * g.attrs.dilation[1] - g.attrs.pad[1];
              const int64_t begin = shift < 0 ? (stride - 1 - shift) / stride : 0;
              const int64_t end = shift < g.width ? std::min(g.out_width, (g.width - 1 - shift) / stride + 1) : 0;
              const int64_t wi = ((k * g.group_channels + c) * g.filter_height + r) * g.filter_width + s;
              for (int64_t q = begin; q < end; ++q) visit(at(x_row + q * stride + shift), at(wi), at(y_row + q));
            }
          }
        }
      }
    }
  }
}

void conv2d_reference(ReferenceCall& call) {
  const Geometry g = geometry(call, call.in_type(0).shape, call.in_type(1).shape, call.out_type().shape);
  const Values& x = call.in(0);
  const Values& w = call.in(1);
  Values& y = call.out();
  y.assign(y.size(), 0);
  for_each_product(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) { y[yi] += x[xi] * w[wi]; });
}

double conv2d_terms(const OpSignature& s) { return sizes_from(s.inputs.at(1).shape, 1); }

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
    {{3, 12, 9, 7}, 12, 3, 3, {2, 2}, {1, 1}, {1, 1}, 12, "depthwise"},
    {{2, 8, 9, 10}, 8, 3, 3, {2, 2}, {0, 1}, {1, 1}, 8, "depthwise"},
    {{2, 20, 14, 13}, 20, 5, 5, {1, 1}, {2, 2}, {1, 1}, 20, "depthwise"},
    {{2, 16, 11, 12}, 16, 5, 5, {2, 2}, {1, 3}, {1, 1}, 16, "depthwise"},
    {{2, 10, 15, 16}, 10, 7, 7, {1, 1}, {3, 2}, {1, 1}, 10, "depthwise"},
    {{1, 6, 17, 15}, 6, 7, 7, {2, 2}, {3, 3}, {1, 1}, 6, "depthwise"},
    {{2, 12, 13, 9}, 24, 3, 3, {1, 1}, {2, 1}, {2, 3}, 12, "depthwise, dilated, two filters a channel"},
    {{3, 68, 4, 4}, 68, 3, 3, {1, 1}, {1, 1}, {1, 1}, 68, "depthwise, small images"},
    {{7, 33, 2, 3}, 33, 3, 3, {2, 2}, {1, 1}, {1, 1}, 33, "depthwise, small images"},
    {{1, 8, 5, 6}, 8, 3, 3, {1, 1}, {4, 3}, {1, 1}, 8, "depthwise, windows of padding alone"},
    {{2, 4, 150, 66}, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 4, "depthwise, large images"},
    {{1, 4, 131, 122}, 4, 5, 5, {2, 2}, {2, 2}, {1, 1}, 4, "depthwise, large images"},
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
    {{2, 24, 9, 11}, 32, 3, 2, {2, 1}, {1, 0}, {1, 1}, 1, "channels in eights"},
    {{1, 8, 13, 17}, 24, 3, 3, {1, 1}, {2, 3}, {2, 3}, 1, "channels in eights, dilated"},
    {{3, 40, 15, 12}, 16, 3, 2, {2, 2}, {1, 2}, {3, 2}, 1, "channels in eights, dilated strides"},
    {{3, 72, 11, 9}, 136, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "channels in eights, several blocks"},
    {{1, 40, 9, 90}, 16, 3, 3, {1, 1}, {0, 2}, {1, 1}, 1, "channels in eights, wide images"},
    {{2, 72, 9, 9}, 136, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1, "channels in eights, pixels that no window reads"},
    {{2, 3, 17, 18}, 32, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1, "a network's first"},
    {{2, 3, 19, 70}, 72, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "a network's first, several blocks"},
    {{1, 5, 21, 45}, 16, 5, 4, {2, 3}, {2, 1}, {1, 1}, 1, "a network's first, other strides"},
    {{2, 32, 19, 70}, 12, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "a network's last"},
    {{1, 16, 37, 45}, 3, 9, 9, {1, 1}, {4, 4}, {1, 1}, 1, "a network's last, large windows"},
    {{2, 64, 21, 40}, 27, 3, 2, {2, 1}, {1, 2}, {1, 2}, 1, "a network's last, dilated strides"},
    {{1, 48, 9, 33}, 8, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "a network's last, single pixels"},
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

Attributes conv2d_attrs(const Convolution& c, int32_t activation) { return Attributes::of(attributes(c, activation)); }

Shape filter_shape(const Convolution& c) { return {c.filters, c.x[1] / c.groups, c.height, c.width}; }

std::vector<CaseSpec> conv2d_cases() {
  std::vector<CaseSpec> cases;
  for (const Convolution& c : kConvolutions) {
    cases.push_back(
        {.attrs = conv2d_attrs(c, GPUNN_ACTIVATION_NONE), .inputs = {f32(c.x), f32(filter_shape(c))}, .note = c.note});
  }
  return cases;
}

Attributes typical_attrs(int32_t activation) {
  gpunn_conv2d_attrs attrs = attributes({.x = {}, .filters = 0, .height = 0, .width = 0, .pad = {1, 1}}, activation);
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.input_size[i] = 28;
    attrs.filter_size[i] = 3;
  }
  return Attributes::of(attrs);
}

InputSpec typical_x() { return f32({64, 32, 28, 28}); }

InputSpec typical_w() { return f32({kTypicalChannels, 32, 3, 3}); }

Convolution convolution_of(Written& r) {
  if (r.sizes.size() != 7) bad(r, "N,C,H,W,K,R,S with stride=, pad=, dilation= and groups= if wanted");
  const int32_t stride = take_int(r, "stride", 1), pad = take_int(r, "pad", 0);
  const int32_t dilation = take_int(r, "dilation", 1), groups = take_int(r, "groups", 1);
  if (groups < 1) bad(r, "groups of at least 1");
  const auto& z = r.sizes;
  return {.x = {z[0], z[1], z[2], z[3]},
          .filters = z[4],
          .height = z[5],
          .width = z[6],
          .stride = {stride, stride},
          .pad = {pad, pad},
          .dilation = {dilation, dilation},
          .groups = groups};
}

// With the sizes of x and w, which the gradients need.
Attributes gradient_attrs(const Convolution& c) {
  gpunn_conv2d_attrs attrs = attributes(c, GPUNN_ACTIVATION_NONE);
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.input_size[i] = static_cast<int32_t>(c.x[2 + i]);
    attrs.filter_size[i] = static_cast<int32_t>(filter_shape(c)[2 + i]);
  }
  return Attributes::of(attrs);
}

CaseSpec conv2d_request(Written& r) {
  const Convolution c = convolution_of(r);
  return {.attrs = gradient_attrs(c), .inputs = {f32(c.x), f32(filter_shape(c))}};
}

// --- CONV2D_BACKWARD_DATA ---

void backward_data_gradient(GradientContext& c) {
  const ValueId x = c.output_gradient();
  const Attributes a = with_sizes(c, x, c.input(1));
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_CONV2D_BACKWARD_FILTER, a, {c.input(0), x}));
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_CONV2D, a, {x, c.input(1)}));
}

double data_flops(const OpSignature& s) { return product_flops(s.inputs[0].shape, s.inputs[1].shape); }

void conv2d_backward_data_reference(ReferenceCall& call) {
  const Geometry g = geometry(call, call.out_type().shape, call.in_type(1).shape, call.in_type(0).shape);
  const Values& dy = call.in(0);
  const Values& w = call.in(1);
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_product(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dx[xi] += dy[yi] * w[wi]; });
}

double backward_data_terms(const OpSignature& s) {
  const Shape& w = s.inputs.at(1).shape;
  return sizes_from(w, 2) * static_cast<double>(w[0]) / s.attrs.as<gpunn_conv2d_attrs>().groups;
}

Shape result_shape(const Convolution& c) {
  return output_shape(GPUNN_OP_CONV2D, conv2d_attrs(c, GPUNN_ACTIVATION_NONE),
                      {{DType::f32, c.x}, {DType::f32, filter_shape(c)}});
}

std::vector<CaseSpec> backward_data_cases() {
  std::vector<CaseSpec> cases;
  for (const Convolution& c : kConvolutions) {
    cases.push_back(
        {.attrs = gradient_attrs(c), .inputs = {f32(result_shape(c)), f32(filter_shape(c))}, .note = c.note});
  }
  return cases;
}

CaseSpec backward_data_request(Written& r) {
  const Convolution c = convolution_of(r);
  return {.attrs = gradient_attrs(c), .inputs = {f32(result_shape(c)), f32(filter_shape(c))}};
}

// --- CONV2D_BACKWARD_FILTER ---

void weight_gradient_gradient(GradientContext& c) {
  const ValueId w = c.output_gradient();
  const Attributes a = with_sizes(c, c.input(1), w);
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_CONV2D_BACKWARD_DATA, a, {c.input(0), w}));
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_CONV2D, a, {c.input(1), w}));
}

double filter_flops(const OpSignature& s) { return product_flops(s.inputs[0].shape, s.outputs[0].shape); }

void conv2d_backward_filter_reference(ReferenceCall& call) {
  const Geometry g = geometry(call, call.in_type(1).shape, call.out_type().shape, call.in_type(0).shape);
  const Values& dy = call.in(0);
  const Values& x = call.in(1);
  Values& dw = call.out();
  dw.assign(dw.size(), 0);
  for_each_product(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dw[wi] += dy[yi] * x[xi]; });
}

double backward_filter_terms(const OpSignature& s) {
  const Shape& dy = s.inputs.at(0).shape;
  return static_cast<double>(dy[0]) * sizes_from(dy, 2);
}

std::vector<CaseSpec> backward_filter_cases() {
  std::vector<CaseSpec> cases;
  for (const Convolution& c : kConvolutions) {
    cases.push_back({.attrs = gradient_attrs(c), .inputs = {f32(result_shape(c)), f32(c.x)}, .note = c.note});
  }
  return cases;
}

CaseSpec backward_filter_request(Written& r) {
  const Convolution c = convolution_of(r);
  return {.attrs = gradient_attrs(c), .inputs = {f32(result_shape(c)), f32(c.x)}};
}

// --- CONV2D_BIAS_ACTIVATION ---

std::vector<ValueId> conv2d_bias_activation_parts(Composition& c) {
  auto a = c.attrs<gpunn_conv2d_attrs>();
  const int32_t activation = a.activation;
  a.activation = GPUNN_ACTIVATION_NONE;
  const ValueId y = c.op(GPUNN_OP_CONV2D, {c.in(0), c.in(1)}, Attributes::of(a));
  return {bias_and_activation(c, y, c.in(2), activation)};
}

void conv2d_bias_activation_reference(ReferenceCall& call) {
  conv2d_reference(call);
  const Shape& shape = call.out_type().shape;
  const int64_t inner = shape[2] * shape[3];
  call.require(static_cast<int64_t>(call.in(2).size()) == shape[1], "bias[K]");
  Values& y = call.out();
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const int64_t k = i / inner % shape[1];
    y[at(i)] = activate(call.attrs<gpunn_conv2d_attrs>().activation, y[at(i)] + call.in(2)[at(k)]);
  }
}

double conv2d_bias_activation_terms(const OpSignature& s) { return conv2d_terms(s) + 1; }

std::vector<CaseSpec> conv2d_bias_activation_cases() {
  std::vector<CaseSpec> cases;
  for (const Convolution& c : kConvolutions) {
    for (const int32_t activation : {GPUNN_ACTIVATION_NONE, GPUNN_ACTIVATION_RELU}) {
      cases.push_back({.attrs = conv2d_attrs(c, activation),
                       .inputs = {f32(c.x), f32(filter_shape(c)), f32({c.filters})},
                       .note = c.note});
    }
  }
  return cases;
}

// --- CONV2D_BIAS_ADD_ACTIVATION ---

std::vector<ValueId> conv2d_bias_add_activation_parts(Composition& c) {
  auto a = c.attrs<gpunn_conv2d_attrs>();
  const int32_t activation = a.activation;
  a.activation = GPUNN_ACTIVATION_NONE;
  const ValueId product = c.op(GPUNN_OP_CONV2D, {c.in(0), c.in(1)}, Attributes::of(a));
  const ValueId y = bias_and_activation(c, product, c.in(2), GPUNN_ACTIVATION_NONE);
  const ValueId sum = c.op(GPUNN_OP_ADD, {y, c.in(3)});
  return {activation == GPUNN_ACTIVATION_RELU ? c.op(GPUNN_OP_RELU, {sum}) : sum};
}

void conv2d_bias_add_activation_reference(ReferenceCall& call) {
  conv2d_reference(call);
  const Shape& shape = call.out_type().shape;
  const int64_t inner = shape[2] * shape[3];
  call.require(static_cast<int64_t>(call.in(2).size()) == shape[1], "bias[K]");
  Values& y = call.out();
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const double sum = y[at(i)] + call.in(2)[at(i / inner % shape[1])] + call.in(3)[at(i)];
    y[at(i)] = activate(call.attrs<gpunn_conv2d_attrs>().activation, sum);
  }
}

double conv2d_bias_add_activation_terms(const OpSignature& s) { return conv2d_terms(s) + 2; }

std::vector<CaseSpec> conv2d_bias_add_activation_cases() {
  std::vector<CaseSpec> cases = conv2d_bias_activation_cases();
  for (CaseSpec& spec : cases) {
    spec.inputs.push_back(f32(output_shape(GPUNN_OP_CONV2D, spec.attrs, {spec.inputs[0].type, spec.inputs[1].type})));
  }
  return cases;
}

CaseSpec conv2d_bias_activation_request(Written& r) {
  CaseSpec spec = conv2d_request(r);
  auto attrs = spec.attrs.as<gpunn_conv2d_attrs>();
  attrs.activation = GPUNN_ACTIVATION_RELU;
  spec.attrs = Attributes::of(attrs);
  spec.inputs.push_back(f32({r.sizes[4]}));
  return spec;
}

CaseSpec conv2d_bias_add_activation_request(Written& r) {
  CaseSpec spec = conv2d_bias_activation_request(r);
  spec.inputs.push_back(f32(output_shape(GPUNN_OP_CONV2D, spec.attrs, {spec.inputs[0].type, spec.inputs[1].type})));
  return spec;
}

// --- Tolerance ---

// Winograd's algorithms (Lavin and Gray, 2016) add and subtract what lies in a tile of at most 6 rows and columns. So
// an element has the roundings of its neighbours, even where its own products are 0.
constexpr int64_t kTile = 6;
// Below this share of the largest scale that of an element says little. Of dense tensors all are much larger.
constexpr double kSparse = 1e-3;

bool has_winograd(const OpSignature& s) {
  const auto a = s.attrs.as<gpunn_conv2d_attrs>();
  const Shape& filter = (s.op == GPUNN_OP_CONV2D_BACKWARD_FILTER ? s.outputs.at(0) : s.inputs.at(1)).shape;
  return filter.at(2) == 3 && filter.at(3) == 3 && a.stride[0] == 1 && a.stride[1] == 1 && a.dilation[0] == 1 &&
         a.dilation[1] == 1;
}

// The largest of `values` within a tile's reach along a dimension of `size` elements, `step` apart.
std::vector<double> largest_near(const std::vector<double>& values, int64_t size, int64_t step) {
  std::vector<double> largest = values;
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    const int64_t place = i / step % size;
    const int64_t first = std::max<int64_t>(place - kTile + 1, 0), last = std::min(place + kTile - 1, size - 1);
    for (int64_t near = first; near <= last; ++near) {
      largest[at(i)] = std::max(largest[at(i)], values[at(i + (near - place) * step)]);
    }
  }
  return largest;
}

std::vector<double> largest_in_tiles(const std::vector<double>& values, const Shape& images) {
  return largest_near(largest_near(values, images.at(3), 1), images.at(2), images.at(3));
}

// A weight gradient's products are of two images: those that a tile brings together. At a border an element of the
// filter may have no product at all where its neighbours have.
std::vector<double> filter_scale_of_tiles(const Evaluation& e) {
  std::vector<ReferenceTensor> inputs = e.inputs;
  for (ReferenceTensor& input : inputs) {
    for (double& value : input.values) value = std::abs(value);
  }
  inputs[0].values = largest_in_tiles(inputs[0].values, inputs[0].type.shape);
  return largest_in_tiles(e.on(inputs).at(0).values, e.signature.outputs.at(0).shape);
}

ErrorScale products_in_tiles(TermCount terms) {
  return [exact = sum_scale(terms), terms](const Evaluation& e, std::size_t output) {
    std::vector<double> scale = exact(e, output);
    if (!has_winograd(e.signature) || scale.empty()) return scale;
    const auto [least, most] = std::ranges::minmax(scale);
    if (!(least < kSparse * most)) return scale;
    if (e.signature.op != GPUNN_OP_CONV2D_BACKWARD_FILTER) {
      return largest_in_tiles(scale, e.signature.outputs.at(output).shape);
    }
    const std::vector<double> near = filter_scale_of_tiles(e);
    for (std::size_t i = 0; i < scale.size(); ++i) {
      scale[i] = std::max(scale[i], accumulation(terms(e.signature)) * near[i]);
    }
    return scale;
  };
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_CONV2D,
       .gradient = conv2d_gradient,
       .flops = convolution_flops,
       .reference = conv2d_reference,
       .tolerance = {{products_in_tiles(conv2d_terms), "a sum of C/groups R S products in any order", true}},
       .cases = conv2d_cases,
       .typical = {.attrs = typical_attrs(GPUNN_ACTIVATION_NONE), .inputs = {typical_x(), typical_w()}},
       .request = conv2d_request},
      {.id = GPUNN_OP_CONV2D_BACKWARD_DATA,
       .gradient = backward_data_gradient,
       .flops = data_flops,
       .reference = conv2d_backward_data_reference,
       .tolerance = {{products_in_tiles(backward_data_terms), "a sum of at most K/groups R S products in any order",
                      true}},
       .cases = backward_data_cases,
       .typical = {.attrs = typical_attrs(GPUNN_ACTIVATION_NONE), .inputs = {typical_images(), typical_w()}},
       .request = backward_data_request},
      {.id = GPUNN_OP_CONV2D_BACKWARD_FILTER,
       .gradient = weight_gradient_gradient,
       .flops = filter_flops,
       .reference = conv2d_backward_filter_reference,
       .tolerance = {{products_in_tiles(backward_filter_terms), "a sum of at most N P Q products in any order", true}},
       .cases = backward_filter_cases,
       .typical = {.attrs = typical_attrs(GPUNN_ACTIVATION_NONE), .inputs = {typical_images(), typical_x()}},
       .request = backward_filter_request},
      {.id = GPUNN_OP_CONV2D_BIAS_ACTIVATION,
       .decompose = conv2d_bias_activation_parts,
       .composite = true,
       .flops = convolution_flops,
       .reference = conv2d_bias_activation_reference,
       .tolerance = {{products_in_tiles(conv2d_bias_activation_terms), "the products and the bias; ReLU adds no error",
                      true}},
       .cases = conv2d_bias_activation_cases,
       .typical = {.attrs = typical_attrs(GPUNN_ACTIVATION_RELU),
                   .inputs = {typical_x(), typical_w(), typical_channels()}},
       .request = conv2d_bias_activation_request},
      {.id = GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION,
       .decompose = conv2d_bias_add_activation_parts,
       .composite = true,
       .flops = convolution_flops,
       .reference = conv2d_bias_add_activation_reference,
       .tolerance = {{products_in_tiles(conv2d_bias_add_activation_terms),
                      "the products, the bias and the residual; ReLU adds no error", true}},
       .cases = conv2d_bias_add_activation_cases,
       .typical = {.attrs = typical_attrs(GPUNN_ACTIVATION_RELU),
                   .inputs = {typical_x(), typical_w(), typical_channels(), typical_images()}},
       .request = conv2d_bias_add_activation_request},
  };
}

}  // namespace gpunn::ops::convolution
