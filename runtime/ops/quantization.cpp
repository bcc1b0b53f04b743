// QUANTIZE, DEQUANTIZE, FAKE_QUANTIZE, QUANTIZE_FILTER, QUANTIZED_CONV2D, QUANTIZED_LINEAR and
// QUANTIZED_GLOBAL_AVG_POOL2D.
#include <algorithm>
#include <cmath>

#include "ops/fused_activation.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::quantization {

namespace {

constexpr double kMost = 255;

// Scales are powers of two in most cases: then quotients are exact in f32 as in float64, and no rounding of a quotient
// decides what a number at a tie is stored as.
Attributes quantize_attrs(double scale, int32_t zero_point) {
  return Attributes::of(
      gpunn_quantize_attrs{.struct_size = 0, .scale = static_cast<float>(scale), .zero_point = zero_point});
}

double stored(double x, double scale, double zero_point) {
  const double steps = x / scale;
  if (std::isnan(steps)) return 0;
  return std::clamp(std::nearbyint(steps) + zero_point, 0.0, kMost);
}

std::vector<CaseSpec> cases_of(const Generator& values, bool stored_values) {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) {
    for (const auto& [scale, zero_point] : {std::pair{1.0 / 64, 0}, {1.0 / 128, 128}, {0.5, 255}}) {
      cases.push_back(
          {.attrs = quantize_attrs(scale, zero_point), .inputs = {stored_values ? u8(shape) : f32(shape, values)}});
    }
  }
  return cases;
}

// --- QUANTIZE ---

void quantize_reference(ReferenceCall& call) {
  const auto a = call.attrs<gpunn_quantize_attrs>();
  map_elements(call, [&](double x) { return stored(x, a.scale, a.zero_point); });
}

std::vector<CaseSpec> quantize_cases() {
  std::vector<CaseSpec> cases = cases_of(uniform(-3, 5), false);
  cases.push_back({.attrs = quantize_attrs(1, 3),
                   .inputs = {f32({9}, listed({-0.5, 0.5, 1.5, 2.5, -2.5, 251.5, 252.5, 1e9, -1e9}))},
                   .note = "ties go to the even number"});
  return cases;
}

CaseSpec quantize_request(Written& r) { return {.attrs = quantize_attrs(0.03125, 128), .inputs = {f32(r.sizes)}}; }

// --- DEQUANTIZE ---

void dequantize_reference(ReferenceCall& call) {
  const auto a = call.attrs<gpunn_quantize_attrs>();
  map_elements(call, [&](double q) { return (q - a.zero_point) * a.scale; });
}

std::vector<CaseSpec> dequantize_cases() { return cases_of(uniform(), true); }

CaseSpec dequantize_request(Written& r) { return {.attrs = quantize_attrs(0.03125, 128), .inputs = {u8(r.sizes)}}; }

// --- FAKE_QUANTIZE ---

void fake_quantize_reference(ReferenceCall& call) {
  const auto a = call.attrs<gpunn_quantize_attrs>();
  map_elements(call, [&](double x) { return (stored(x, a.scale, a.zero_point) - a.zero_point) * a.scale; });
}

// To the nearest integer, ties to even. Every step is exact, whatever the backend makes of sums.
ValueId nearest(Composition& c, ValueId x) {
  const ValueId inner = c.truncated(x);
  const ValueId twice = c.scaled(c.sub(x, inner), 2), step = c.truncated(twice);
  const ValueId away = c.add(inner, step);  // ties away from 0
  const ValueId even = c.scaled(c.truncated(c.scaled(away, 0.5)), 2);
  return c.select(c.mul(c.equal(twice, step), step), even, away);
}

// x is cut before it is rounded, which is the same, since the limits are integers. A NaN equals nothing, itself
// included.
std::vector<ValueId> fake_quantize_parts(Composition& c) {
  const auto a = c.attrs<gpunn_quantize_attrs>();
  const ValueId scale = c.constant(a.scale), steps = c.div(c.in(0), scale);
  const ValueId least = c.constant(-a.zero_point), most = c.constant(kMost - a.zero_point);
  const ValueId number = c.select(c.equal(steps, steps), steps, least);
  return {c.mul(nearest(c, c.minimum(c.maximum(number, least), most)), scale)};
}

// Where x is stored as it is, but for rounding.
void fake_quantize_gradient(GradientContext& c) {
  graph::Expressions e = c.expressions();
  const auto a = c.node().attrs.as<gpunn_quantize_attrs>();
  const auto limit = [&](double q) { return e.constant((q - a.zero_point) * a.scale); };
  const ValueId above = e.less_equal(limit(0), c.input(0));
  const ValueId below = e.less_equal(c.input(0), limit(kMost));
  c.set(0, e.mul(c.output_gradient(), e.mul(above, below)));
}

std::vector<CaseSpec> fake_quantize_cases() { return cases_of(uniform(-3, 5), false); }

// Beyond the range, where the gradient is the derivative of the function itself. Within it is not: the function is a
// staircase.
std::vector<CaseSpec> differentiable_fake_quantize() {
  return {{.attrs = quantize_attrs(1.0 / 64, 0), .inputs = {f32({3, 4}, uniform(-3, -1))}},
          {.attrs = quantize_attrs(1.0 / 64, 128), .inputs = {f32({3, 4}, uniform(3, 5))}}};
}

// --- QUANTIZE_FILTER ---

void quantize_filter_reference(ReferenceCall& call) {
  constexpr double kLargestWeight = 127, kFilterZero = 128;
  const Values& w = call.in(0);
  const std::size_t filters = call.out(1).size();
  const std::size_t row = w.size() / filters;
  for (std::size_t k = 0; k < filters; ++k) {
    double most = 0;
    for (std::size_t i = k * row; i < (k + 1) * row; ++i) {
      if (std::abs(w[i]) > most) most = std::abs(w[i]);
    }
    const double scale = most > 0 ? rounded(most / kLargestWeight, DType::f32) : 1;
    call.out(1)[k] = scale;
    for (std::size_t i = k * row; i < (k + 1) * row; ++i) call.out(0)[i] = stored(w[i], scale, kFilterZero);
  }
}

std::vector<CaseSpec> quantize_filter_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{5, 3, 3, 2}, Shape{33, 17, 3, 3}, Shape{10, 84}, Shape{7}}) {
    cases.push_back({.inputs = {f32(shape)}});
    cases.push_back({.inputs = {f32(shape, constant(0))}, .note = "all are 0"});
  }
  return cases;
}

CaseSpec quantize_filter_request(Written& r) { return {.inputs = {f32(r.sizes)}}; }

// --- QUANTIZED_CONV2D ---

void quantized_conv2d_reference(ReferenceCall& call) {
  constexpr double kFilterZero = 128;
  const auto a = call.attrs<gpunn_quantized_conv2d_attrs>();
  const Shape &x = call.in_type(0).shape, &w = call.in_type(1).shape, &y = call.out_type().shape;
  const int64_t group_filters = w[0] / a.groups;
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t k = 0; k < y[1]; ++k) {
      for (int64_t p = 0; p < y[2]; ++p) {
        for (int64_t q = 0; q < y[3]; ++q) {
          double sum = 0;
          for (int64_t c = 0; c < w[1]; ++c) {
            const int64_t channel = k / group_filters * w[1] + c;
            for (int64_t r = 0; r < w[2]; ++r) {
              for (int64_t s = 0; s < w[3]; ++s) {
                const int64_t row = p * a.stride[0] - a.pad[0] + r * a.dilation[0];
                const int64_t column = q * a.stride[1] - a.pad[1] + s * a.dilation[1];
                if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                const double pixel = call.in(0)[at(((n * x[1] + channel) * x[2] + row) * x[3] + column)];
                const double weight = call.in(1)[at(((k * w[1] + c) * w[2] + r) * w[3] + s)];
                sum += (pixel - a.x_zero_point) * (weight - kFilterZero);
              }
            }
          }
          const int64_t element = ((n * y[1] + k) * y[2] + p) * y[3] + q;
          double value = sum * a.x_scale * call.in(2)[at(k)] + call.in(3)[at(k)];
          if (call.inputs() > 4) {
            value += (call.in(4)[at(element)] - a.residual_zero_point) * a.residual_scale;
          }
          call.out()[at(element)] = stored(activate(a.activation, value), a.y_scale, a.y_zero_point);
        }
      }
    }
  }
}

double quantized_conv2d_flops(const OpSignature& s) {
  const Shape& w = s.inputs[1].shape;
  return 2.0 * static_cast<double>(s.outputs[0].elements()) * static_cast<double>(w[1] * w[2] * w[3]);
}

struct EightBits {
  Shape x;
  int64_t filters, side;
  int32_t stride = 1, pad = 0, dilation = 1, groups = 1;
  bool residual = false;
  int32_t activation = GPUNN_ACTIVATION_NONE;
  int32_t x_zero_point = 0, y_zero_point = 0;
};

const std::vector<EightBits> kEightBits = {
    {{1, 1, 1, 1}, 1, 1},
    {{2, 3, 7, 5}, 4, 3, 1, 1, 1, 1, false, GPUNN_ACTIVATION_RELU},
    {{2, 16, 9, 8}, 33, 3, 2, 1, 1, 1, false, GPUNN_ACTIVATION_RELU, 128, 3},
    {{1, 64, 7, 7}, 65, 1, 1, 0, 1, 1, true, GPUNN_ACTIVATION_RELU},
    {{3, 32, 6, 5}, 40, 3, 1, 1, 1, 1, true, GPUNN_ACTIVATION_NONE, 128, 128},
    {{1, 3, 17, 18}, 32, 7, 2, 3, 1, 1, false, GPUNN_ACTIVATION_RELU, 117, 0},
    {{2, 72, 9, 9}, 48, 1, 2},
    {{1, 5, 9, 8}, 6, 3, 1, 2, 2, 1, false, GPUNN_ACTIVATION_NONE, 7, 250},
    {{2, 8, 6, 7}, 12, 3, 1, 1, 1, 4, true, GPUNN_ACTIVATION_RELU, 90, 10},
    {{1, 130, 4, 4}, 70, 3, 1, 1, 1, 1, false, GPUNN_ACTIVATION_RELU},
    {{4, 400, 1, 1}, 120, 1, 1, 0, 1, 1, false, GPUNN_ACTIVATION_RELU, 0, 0},
    {{2, 40, 9, 7}, 40, 3, 2, 1, 1, 40, false, GPUNN_ACTIVATION_RELU, 100, 3},
    {{1, 96, 8, 9}, 96, 5, 1, 2, 1, 96, true, GPUNN_ACTIVATION_NONE, 0, 128},
    // Channels in blocks of 64; several images, and several blocks of filters, in the tiles of kernels.
    {{5, 64, 6, 8}, 80, 3, 1, 1, 1, 1, true, GPUNN_ACTIVATION_RELU},
    {{2, 192, 9, 7}, 136, 3, 2, 1, 1, 1, false, GPUNN_ACTIVATION_RELU, 128, 3},
    {{2, 320, 5, 4}, 48, 3, 1, 1, 1, 1, true, GPUNN_ACTIVATION_NONE, 0, 128},
    {{3, 128, 5, 5}, 160, 3, 1, 1, 1, 2, true, GPUNN_ACTIVATION_RELU, 90, 10},
    {{3, 512, 8, 7}, 32, 1, 2},
    {{2, 64, 9, 8}, 64, 3, 1, 2, 2, 1, false, GPUNN_ACTIVATION_NONE, 7, 250},
    // Few channels and many pixels.
    {{2, 3, 19, 33}, 64, 3, 1, 1, 1, 1, false, GPUNN_ACTIVATION_RELU, 117, 0},
    {{3, 4, 12, 13}, 80, 5, 2, 2, 1, 1, false, GPUNN_ACTIVATION_NONE, 0, 128},
};

CaseSpec case_of(const EightBits& e, const std::string& note = "") {
  const gpunn_quantized_conv2d_attrs attrs{.struct_size = 0,
                                           .activation = e.activation,
                                           .stride = {e.stride, e.stride},
                                           .pad = {e.pad, e.pad},
                                           .dilation = {e.dilation, e.dilation},
                                           .groups = e.groups,
                                           .x_scale = 1.0F / 64,
                                           .x_zero_point = e.x_zero_point,
                                           .residual_scale = 1.0F / 32,
                                           .residual_zero_point = e.x_zero_point,
                                           .y_scale = 1.0F / 16,
                                           .y_zero_point = e.y_zero_point};
  CaseSpec spec{.attrs = Attributes::of(attrs), .note = note};
  const Shape w = {e.filters, e.x[1] / e.groups, e.side, e.side};
  // Powers of two and their multiples: every sum is exact in f32.
  const Generator scales = listed({1.0 / 512, 1.0 / 1024, 1.0 / 256, 1.0 / 2048});
  const Generator biases = [](Random& random, int64_t) { return static_cast<double>(random.below(257) - 128) / 32; };
  spec.inputs = {u8(e.x), u8(w, integers(0, 255)), f32({e.filters}, scales), f32({e.filters}, biases)};
  if (e.residual) {
    gpunn_conv2d_attrs plain{};
    for (std::size_t i = 0; i < 2; ++i) {
      plain.stride[i] = e.stride;
      plain.pad[i] = e.pad;
      plain.dilation[i] = e.dilation;
    }
    plain.groups = e.groups;
    const Shape y = output_shape(GPUNN_OP_CONV2D, Attributes::of(plain), {{DType::f32, e.x}, {DType::f32, w}});
    spec.inputs.push_back(u8(y));
  }
  return spec;
}

std::vector<CaseSpec> quantized_conv2d_cases() {
  std::vector<CaseSpec> cases;
  for (const EightBits& e : kEightBits) cases.push_back(case_of(e));
  return cases;
}

CaseSpec quantized_conv2d_request(Written& r) {
  if (r.sizes.size() != 7 || r.sizes[5] != r.sizes[6]) bad(r, "N,C,H,W,K,R,R with stride= and pad= if wanted");
  EightBits e{.x = {r.sizes[0], r.sizes[1], r.sizes[2], r.sizes[3]}, .filters = r.sizes[4], .side = r.sizes[5]};
  e.stride = take_int(r, "stride", 1);
  e.pad = take_int(r, "pad", 0);
  e.activation = GPUNN_ACTIVATION_RELU;
  return case_of(e);
}

// --- QUANTIZED_LINEAR ---

void quantized_linear_reference(ReferenceCall& call) {
  constexpr double kFilterZero = 128;
  const auto a = call.attrs<gpunn_quantize_attrs>();
  const int64_t rows = call.out_dim(0, 0), units = call.out_dim(0, 1), terms = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t k = 0; k < units; ++k) {
      double sum = 0;
      for (int64_t c = 0; c < terms; ++c) {
        sum += (call.in(0)[at(n * terms + c)] - a.zero_point) * (call.in(1)[at(k * terms + c)] - kFilterZero);
      }
      const double bias = call.inputs() > 3 ? call.in(3)[at(k)] : 0;
      call.out()[at(n * units + k)] = sum * a.scale * call.in(2)[at(k)] + bias;
    }
  }
}

double quantized_linear_flops(const OpSignature& s) {
  return 2.0 * static_cast<double>(s.outputs[0].elements()) * static_cast<double>(s.inputs[0].shape[1]);
}

CaseSpec linear_case(int64_t rows, int64_t terms, int64_t units, bool bias, int32_t zero_point) {
  // Powers of two: sums are exact in f32, and each answer is rounded once.
  const Generator scales = listed({1.0 / 512, 1.0 / 1024, 1.0 / 256, 1.0 / 2048});
  CaseSpec spec{.attrs = quantize_attrs(1.0 / 64, zero_point),
                .inputs = {u8({rows, terms}), u8({units, terms}, integers(0, 255)), f32({units}, scales)}};
  if (bias) spec.inputs.push_back(f32({units}));
  return spec;
}

std::vector<CaseSpec> quantized_linear_cases() {
  return {linear_case(1, 1, 1, true, 0),       linear_case(2, 3, 5, false, 128),  linear_case(1, 512, 10, true, 0),
          linear_case(13, 84, 33, true, 7),    linear_case(5, 130, 64, false, 0), linear_case(64, 400, 120, true, 128),
          linear_case(1, 256, 1000, true, 255)};
}

CaseSpec quantized_linear_request(Written& r) {
  if (r.sizes.size() != 3) bad(r, "N,C,K");
  return linear_case(r.sizes[0], r.sizes[1], r.sizes[2], true, 0);
}

// --- QUANTIZED_GLOBAL_AVG_POOL2D ---

void quantized_mean_reference(ReferenceCall& call) {
  const auto a = call.attrs<gpunn_requantize_attrs>();
  const Shape& x = call.in_type(0).shape;
  const int64_t pixels = x[2] * x[3];
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += call.in(0)[at(plane * pixels + i)] - a.x_zero_point;
    const double mean = sum * a.x_scale / static_cast<double>(pixels);
    call.out()[at(plane)] = stored(mean, a.y_scale, a.y_zero_point);
  }
}

double quantized_mean_flops(const OpSignature& s) { return static_cast<double>(s.inputs[0].elements()); }

// Scales are powers of two: means at a tie are exact.
CaseSpec mean_case(const Shape& x, int32_t x_zero_point, int32_t y_zero_point, double y_scale) {
  return {.attrs = Attributes::of(gpunn_requantize_attrs{.struct_size = 0,
                                                         .x_scale = 1.0F / 64,
                                                         .x_zero_point = x_zero_point,
                                                         .y_scale = static_cast<float>(y_scale),
                                                         .y_zero_point = y_zero_point}),
          .inputs = {u8(x)}};
}

std::vector<CaseSpec> quantized_mean_cases() {
  return {mean_case({1, 1, 1, 1}, 0, 0, 1.0 / 64),      mean_case({2, 3, 2, 2}, 0, 0, 1.0 / 64),
          mean_case({2, 64, 7, 7}, 0, 0, 1.0 / 128),    mean_case({3, 132, 7, 5}, 128, 128, 1.0 / 256),
          mean_case({2, 130, 3, 17}, 100, 7, 1.0 / 64), mean_case({1, 512, 8, 8}, 0, 255, 1.0 / 256),
          mean_case({5, 48, 1, 9}, 0, 0, 1.0 / 1024)};
}

CaseSpec quantized_mean_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W");
  return mean_case(r.sizes, 0, 0, 1.0 / 128);
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_QUANTIZE,
       .reference = quantize_reference,
       .tolerance = {{exact_scale, "an integer"}},
       .cases = quantize_cases,
       .typical = {.attrs = quantize_attrs(1.0 / 64, 128), .inputs = {typical_images()}},
       .request = quantize_request},
      {.id = GPUNN_OP_DEQUANTIZE,
       .reference = dequantize_reference,
       .tolerance = {{one_rounding_scale, "a product"}},
       .cases = dequantize_cases,
       .typical = {.attrs = quantize_attrs(1.0 / 64, 128), .inputs = {u8({64, 64, 28, 28})}},
       .request = dequantize_request},
      {.id = GPUNN_OP_FAKE_QUANTIZE,
       .gradient = fake_quantize_gradient,
       .decompose = fake_quantize_parts,
       .reference = fake_quantize_reference,
       .tolerance = {{one_rounding_scale, "a product of an integer"}},
       .cases = fake_quantize_cases,
       .differentiable = differentiable_fake_quantize,
       .typical = {.attrs = quantize_attrs(1.0 / 64, 128), .inputs = {typical_images()}},
       .request = quantize_request},
      {.id = GPUNN_OP_QUANTIZE_FILTER,
       .reference = quantize_filter_reference,
       .tolerance = {{one_rounding_scale, "integers, and a quotient"}},
       .cases = quantize_filter_cases,
       .typical = {.inputs = {f32({64, 64, 3, 3})}},
       .request = quantize_filter_request},
      {.id = GPUNN_OP_QUANTIZED_CONV2D,
       .flops = quantized_conv2d_flops,
       .reference = quantized_conv2d_reference,
       .tolerance = {{exact_scale, "sums of integers, scaled by powers of two"}},
       .cases = quantized_conv2d_cases,
       .typical = case_of({{8, 64, 28, 28}, 64, 3, 1, 1, 1, 1, true, GPUNN_ACTIVATION_RELU}),
       .request = quantized_conv2d_request},
      {.id = GPUNN_OP_QUANTIZED_LINEAR,
       .flops = quantized_linear_flops,
       .reference = quantized_linear_reference,
       .tolerance = {{one_rounding_scale, "sums of integers, scaled by powers of two, and a bias"}},
       .cases = quantized_linear_cases,
       .typical = linear_case(8, 2048, 1000, true, 0),
       .request = quantized_linear_request},
      {.id = GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D,
       .flops = quantized_mean_flops,
       .reference = quantized_mean_reference,
       .tolerance = {{exact_scale, "sums of integers, a quotient, scaled by powers of two"}},
       .cases = quantized_mean_cases,
       .typical = mean_case({64, 2048, 7, 7}, 0, 0, 1.0 / 128),
       .request = quantized_mean_request},
  };
}

}  // namespace gpunn::ops::quantization
