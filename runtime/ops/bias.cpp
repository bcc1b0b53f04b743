// BIAS_ADD, BIAS_BACKWARD and BIAS_ACTIVATION_BACKWARD.
#include "ops/fused_activation.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::bias {

namespace {

// --- BIAS_ADD ---

void bias_add_gradient(GradientContext& c) {
  if (c.wants(1)) c.set(1, c.add(GPUNN_OP_BIAS_BACKWARD, {}, {c.output_gradient()}));
  if (c.wants(0)) c.set(0, c.output_gradient());
}

std::vector<ValueId> bias_add_parts(Composition& c) { return {c.add(c.in(0), c.by_channel(c.in(1), c.in(0)))}; }

// A tensor [N,C,...] as [images][channels][inner].
struct ChannelShape {
  int64_t images, channels, inner;
};

ChannelShape channel_shape(const ReferenceCall& call) {
  ChannelShape shape{call.in_dim(0, 0), call.in_dim(0, 1), 1};
  for (std::size_t i = 2; i < call.in_type(0).shape.size(); ++i) shape.inner *= call.in_dim(0, i);
  return shape;
}

void bias_add_reference(ReferenceCall& call) {
  const auto [images, channels, inner] = channel_shape(call);
  call.require(static_cast<int64_t>(call.in(1).size()) == channels, "b[C]");
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inner; ++i) {
        const std::size_t element = at((n * channels + c) * inner + i);
        call.out()[element] = call.in(0)[element] + call.in(1)[at(c)];
      }
    }
  }
}

// Rows of a linear layer, planes of images; one channel, one element, one image; odd sizes; many terms a sum.
const std::vector<Shape> kBiasShapes = {{1, 1},         {1, 17},      {129, 1},       {128, 10},       {37, 123},
                                        {1031, 7},      {1, 1, 1, 1}, {2, 3, 5, 7},   {16, 6, 28, 28}, {3, 33, 1, 1},
                                        {1, 5, 64, 65}, {4, 7, 11},   {5, 300, 2, 3}, {0, 4}};

std::vector<CaseSpec> bias_add_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kBiasShapes) cases.push_back({.inputs = {f32(shape), f32({shape[1]})}});
  return cases;
}

CaseSpec bias_backward_request(Written& r) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  return {.inputs = {f32(r.sizes)}};
}

CaseSpec bias_add_request(Written& r) {
  CaseSpec spec = bias_backward_request(r);
  spec.inputs.push_back(f32({r.sizes[1]}));
  return spec;
}

// --- BIAS_BACKWARD ---

std::vector<ValueId> bias_backward_parts(Composition& c) { return {c.channel_sum(c.in(0))}; }

// db[c] of a gradient [N,C,...].
void sum_by_channel(ReferenceCall& call, const Values& gradient, Values& db) {
  const auto [images, channels, inner] = channel_shape(call);
  call.require(static_cast<int64_t>(db.size()) == channels, "db[C]");
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t i = 0; i < inner; ++i) sum += gradient[at((n * channels + c) * inner + i)];
    }
    db[at(c)] = sum;
  }
}

void bias_backward_reference(ReferenceCall& call) { sum_by_channel(call, call.in(0), call.out()); }

// The elements of a channel.
double channel_terms(const OpSignature& s) {
  const Shape& shape = s.inputs.at(0).shape;
  return static_cast<double>(shape[0]) * sizes_from(shape, 2);
}

std::vector<CaseSpec> bias_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kBiasShapes) cases.push_back({.inputs = {f32(shape)}});
  return cases;
}

// --- BIAS_ACTIVATION_BACKWARD ---

std::vector<ValueId> bias_activation_backward_parts(Composition& c) {
  const auto a = c.attrs<gpunn_bias_activation_backward_attrs>();
  const ValueId dx = activation_backward(c, c.in(0), c.in(1), a.activation);
  return {dx, c.op(GPUNN_OP_BIAS_BACKWARD, {dx})};
}

void bias_activation_backward_reference(ReferenceCall& call) {
  const bool relu = call.attrs<gpunn_bias_activation_backward_attrs>().activation == GPUNN_ACTIVATION_RELU;
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  Values& dx = call.out(0);
  call.require(dy.size() == y.size() && dy.size() == dx.size(), "dy, y and dx of one size");
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = !relu || y[i] > 0 ? dy[i] : 0;
  sum_by_channel(call, dx, call.out(1));
}

Attributes activation_attrs(int32_t kind) {
  return Attributes::of(gpunn_bias_activation_backward_attrs{.struct_size = 0, .activation = kind});
}

std::vector<CaseSpec> bias_activation_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kBiasShapes) {
    for (const int32_t kind : {GPUNN_ACTIVATION_NONE, GPUNN_ACTIVATION_RELU}) {
      cases.push_back(
          {.attrs = activation_attrs(kind), .inputs = {f32(shape), f32(shape, sometimes(0, 2, uniform(0, 1)))}});
    }
  }
  return cases;
}

CaseSpec bias_activation_backward_request(Written& r) {
  CaseSpec spec = bias_backward_request(r);
  spec.attrs = activation_attrs(GPUNN_ACTIVATION_RELU);
  spec.inputs.push_back(f32(r.sizes));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_BIAS_ADD,
       .gradient = bias_add_gradient,
       .decompose = bias_add_parts,
       .reference = bias_add_reference,
       .tolerance = {{one_rounding_scale, "one addition, rounded once"}},
       .cases = bias_add_cases,
       .typical = {.inputs = {typical_images(), typical_channels()}},
       .request = bias_add_request},
      {.id = GPUNN_OP_BIAS_BACKWARD,
       .decompose = bias_backward_parts,
       .reference = bias_backward_reference,
       .tolerance = {{sum_scale(channel_terms), "a sum over images and pixels in any order"}},
       .cases = bias_backward_cases,
       .typical = {.inputs = {typical_images()}},
       .request = bias_backward_request},
      {.id = GPUNN_OP_BIAS_ACTIVATION_BACKWARD,
       .decompose = bias_activation_backward_parts,
       .composite = true,
       .reference = bias_activation_backward_reference,
       .tolerance = {{exact_scale, "dx is chosen, not computed"},
                     {first_input_sum_scale(channel_terms), "a sum over images and pixels in any order"}},
       .cases = bias_activation_backward_cases,
       .typical = {.attrs = activation_attrs(GPUNN_ACTIVATION_RELU), .inputs = repeated(2, typical_images())},
       .request = bias_activation_backward_request},
  };
}

}  // namespace gpunn::ops::bias
