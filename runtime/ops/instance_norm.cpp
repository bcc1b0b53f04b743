// INSTANCE_NORM and its backward. A plane is a channel of a row of x[N,C,...]; mean and rstd have a number for each.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::instance_norm {

namespace {

// --- INSTANCE_NORM ---

void instance_norm_gradient(GradientContext& c) {
  const std::vector<ValueId> gradients =
      c.graph().add(GPUNN_OP_INSTANCE_NORM_BACKWARD, c.name(), {},
                    {c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

// The elements of a plane.
int64_t plane_size(const Shape& x) {
  int64_t size = 1;
  for (std::size_t i = 2; i < x.size(); ++i) size *= x[i];
  return size;
}

// Formulas see planes as x[N,C,S], whose last dimension is what they reduce.
constexpr uint32_t kWithinPlane = 0b100, kAllButChannels = 0b101;

ValueId as_planes(Composition& c, ValueId x) {
  const Shape shape = c.shape(x);
  return c.view(x, {shape[0], shape[1], plane_size(shape)});
}

// A number for each plane, in a shape that broadcasts to the planes.
ValueId by_plane(Composition& c, ValueId numbers) {
  const Shape shape = c.shape(numbers);
  return c.view(numbers, {shape[0], shape[1], 1});
}

std::vector<ValueId> instance_norm_parts(Composition& c) {
  const ValueId x = c.in(0), gamma = c.by_channel(c.in(1), x), beta = c.by_channel(c.in(2), x);
  const Shape shape = c.shape(x);
  if (plane_size(shape) == 0) return {};
  const ValueId planes = as_planes(c, x), mean = c.mean(planes, kWithinPlane, false);
  const ValueId centred = c.sub(planes, by_plane(c, mean));
  const ValueId variance = c.mean(c.mul(centred, centred), kWithinPlane, false);
  const ValueId rstd = c.rsqrt(c.add(variance, c.constant(c.attrs<gpunn_layer_norm_attrs>().epsilon)));
  const ValueId normal = c.view(c.mul(centred, by_plane(c, rstd)), shape);
  return {c.add(c.mul(normal, gamma), beta), mean, rstd};
}

void instance_norm_reference(ReferenceCall& call) {
  const double epsilon = call.attrs<gpunn_layer_norm_attrs>().epsilon;
  const int64_t rows = call.in_dim(0, 0), channels = call.in_dim(0, 1), size = plane_size(call.in_type(0).shape);
  const auto terms = static_cast<double>(std::max<int64_t>(size, 1));  // nothing has a mean and a variance of 0
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2);
  for (int64_t plane = 0; plane < rows * channels; ++plane) {
    const int64_t begin = plane * size, end = begin + size, channel = plane % channels;
    double sum = 0, squares = 0;
    for (int64_t i = begin; i < end; ++i) sum += x[at(i)];
    const double mean = sum / terms;
    for (int64_t i = begin; i < end; ++i) squares += (x[at(i)] - mean) * (x[at(i)] - mean);
    const double rstd = 1 / std::sqrt(squares / terms + epsilon);
    for (int64_t i = begin; i < end; ++i) {
      call.out(0)[at(i)] = (x[at(i)] - mean) * rstd * gamma[at(channel)] + beta[at(channel)];
    }
    call.out(1)[at(plane)] = mean;
    call.out(2)[at(plane)] = rstd;
  }
}

// The planes of x[N,C,...] as channels of one image each.
ChannelView planes_of(const Evaluation& e, std::size_t x) {
  const Shape& shape = e.inputs.at(x).type.shape;
  return {1, at(shape.at(0) * shape.at(1)), at(plane_size(shape)), 1};
}

std::vector<double> instance_norm_scale(const Evaluation& e, std::size_t output) {
  const double epsilon = e.signature.attrs.as<gpunn_layer_norm_attrs>().epsilon;
  const ChannelView planes = planes_of(e, 0);
  const std::size_t channels = e.inputs.at(1).values.size();
  return normalization_scale(e, output, planes, epsilon, [&](std::size_t i) { return i / planes.inner % channels; });
}

// Planes of one element, of odd sizes, of more than a block's or a task's share, and none.
const std::vector<Shape> kShapes = {{1, 1},           {37, 11},         {2, 3, 1, 1},    {3, 5, 7},   {2, 3, 17, 19},
                                    {3, 16, 9, 11},   {2, 36, 13, 5},   {1, 1, 1, 1021}, {5, 129, 3}, {2, 2, 3, 4, 5},
                                    {2, 2, 70, 70},   {1, 2, 131, 127}, {1031, 1, 2, 3}, {0, 3, 4},   {2, 3, 0},
                                    {2, 3, 100, 100}, {1, 2, 370, 360}};

Attributes attributes(float epsilon) {
  return Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = epsilon});
}

CaseSpec forward_case(const Shape& x, const Generator& value, const std::string& note = {}, float epsilon = 1e-5F) {
  const Shape channels{x[1]};
  return {.attrs = attributes(epsilon), .inputs = {f32(x, value), f32(channels), f32(channels)}, .note = note};
}

const std::vector<Shape> kAwkwardShapes = {{3, 7, 13, 9}, {2, 3, 301}};

std::vector<CaseSpec> instance_norm_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kShapes) cases.push_back(forward_case(shape, uniform(-1, 3)));
  for (const Shape& shape : kAwkwardShapes) {
    cases.push_back(forward_case(shape, uniform(1000, 1001), "a mean of a thousand deviations"));
    cases.push_back(forward_case(shape, constant(3.3), "a variance of 0"));
    cases.push_back(forward_case(shape, sometimes(1e4, 97, uniform(-1e-3, 1e-3)), "outliers"));
    cases.push_back(forward_case(shape, uniform(), "", 0.5F));
    cases.push_back(forward_case(shape, sometimes(kNan, 400, uniform()), "NaN in some planes"));
  }
  return cases;
}

std::vector<CaseSpec> differentiable_planes() {
  return {forward_case({2, 3, 7}, uniform(-1, 3), "", 1e-2F), forward_case({3, 2, 2, 4}, uniform(-1, 3), "", 1e-2F),
          forward_case({1, 1, 12}, uniform(-1, 3), "", 1e-2F)};
}

CaseSpec instance_norm_request(Written& r) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  const InputSpec channels = f32({r.sizes[1]});
  return {.attrs = attributes(1e-5F), .inputs = {f32(r.sizes), channels, channels}};
}

// --- INSTANCE_NORM_BACKWARD ---

// With h = (x - mean) rstd and means within a plane: dx = gamma rstd (dy - mean(dy) - h mean(dy h)).
std::vector<ValueId> instance_norm_backward_parts(Composition& c) {
  const ValueId dy = as_planes(c, c.in(0)), x = as_planes(c, c.in(1)), rstd = by_plane(c, c.in(4));
  const Shape shape = c.shape(c.in(1));
  if (plane_size(shape) == 0) return {};
  const ValueId h = c.mul(c.sub(x, by_plane(c, c.in(3))), rstd), product = c.mul(dy, h);
  const ValueId along = c.mul(h, c.mean(product, kWithinPlane));
  const ValueId normal = c.view(c.mul(rstd, c.sub(c.sub(dy, c.mean(dy, kWithinPlane)), along)), shape);
  return {c.mul(normal, c.by_channel(c.in(2), c.in(1))), c.sum(product, kAllButChannels, false),
          c.sum(dy, kAllButChannels, false)};
}

// With h = (x - mean) rstd and means within a plane, dx = gamma rstd (dy - mean(dy) - h mean(dy h)).
void instance_norm_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(1, 0), channels = call.in_dim(1, 1), size = plane_size(call.in_type(1).shape);
  const Values &dy = call.in(0), &x = call.in(1), &gamma = call.in(2), &mean = call.in(3), &rstd = call.in(4);
  Values &dgamma = call.out(1), &dbeta = call.out(2);
  dgamma.assign(dgamma.size(), 0);
  dbeta.assign(dbeta.size(), 0);
  for (int64_t plane = 0; plane < rows * channels; ++plane) {
    const int64_t begin = plane * size, end = begin + size, channel = plane % channels;
    const auto h = [&](int64_t i) { return (x[at(i)] - mean[at(plane)]) * rstd[at(plane)]; };
    double sum = 0, product = 0;
    for (int64_t i = begin; i < end; ++i) {
      sum += dy[at(i)];
      product += dy[at(i)] * h(i);
    }
    for (int64_t i = begin; i < end; ++i) {
      call.out(0)[at(i)] =
          gamma[at(channel)] * rstd[at(plane)] * (dy[at(i)] - (sum + h(i) * product) / static_cast<double>(size));
    }
    dgamma[at(channel)] += product;
    dbeta[at(channel)] += sum;
  }
}

// dx = gamma rstd (dy - (sum of dy + h sum of dy h) / S), h = (x - mean) rstd; dgamma and dbeta are sums by channel.
std::vector<double> instance_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const ChannelView planes = planes_of(e, 1);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values, &gamma = e.inputs.at(2).values,
        &mean = e.inputs.at(3).values, &rstd = e.inputs.at(4).values;
  const auto elements = static_cast<double>(planes.inner);
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (std::size_t plane = 0; plane < planes.channels; ++plane) {
    const std::size_t c = plane % gamma.size();
    const auto h = [&](std::size_t i) { return std::abs((x[i] - mean[plane]) * rstd[plane]); };
    double size = 0, product = 0;
    planes.for_channel(plane, 1, [&](std::size_t i) {
      size += std::abs(dy[i]);
      product += std::abs(dy[i]) * h(i);
    });
    if (output == 1) scale[c] += product;
    if (output == 2) scale[c] += size;
    if (output != 0) continue;
    planes.for_channel(plane, 1, [&](std::size_t i) {
      scale[i] = std::abs(gamma[c] * rstd[plane]) *
                 (4 * std::abs(dy[i]) + (accumulation(elements) + 4) * (size + h(i) * product) / elements);
    });
  }
  if (output == 0 || scale.empty()) return scale;
  const std::size_t images = planes.channels / scale.size();
  const double terms = elements * static_cast<double>(images);
  for (double& sum : scale) sum *= accumulation(terms);
  return scale;
}

// With the statistics that the forward op saves.
CaseSpec backward_case(const Shape& x, const Generator& dy, const Generator& value, const std::string& note = {}) {
  const Shape channels{x[1]}, planes{x[0], x[1]};
  return {.inputs = {f32(x, dy), f32(x, value), f32(channels), f32(planes), f32(planes)},
          .note = note,
          .derive = [](std::vector<ReferenceTensor>& in) {
            const Attributes attrs = attributes(1e-5F);
            const std::vector<ReferenceTensor> of_forward{in[1], in[2], in[2]};
            in[3] = forward(GPUNN_OP_INSTANCE_NORM, attrs, of_forward, 1);
            in[4] = forward(GPUNN_OP_INSTANCE_NORM, attrs, of_forward, 2);
          }};
}

std::vector<CaseSpec> instance_norm_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kShapes) cases.push_back(backward_case(shape, uniform(), uniform(-1, 3)));
  for (const Shape& shape : kAwkwardShapes) {
    cases.push_back(backward_case(shape, uniform(), uniform(1000, 1001), "a large mean"));
    cases.push_back(backward_case(shape, uniform(99, 100), uniform(), "a large mean of dy"));
    cases.push_back(backward_case(shape, sometimes(kNan, 400, uniform()), uniform(), "NaN in dy"));
  }
  return cases;
}

InputSpec positive(const Shape& planes) { return f32(planes, uniform(0.5, 2)); }

CaseSpec instance_norm_backward_request(Written& r) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  const Shape planes{r.sizes[0], r.sizes[1]};
  return {.inputs = {f32(r.sizes), f32(r.sizes), f32({r.sizes[1]}), f32(planes), positive(planes)}};
}

Shape typical_planes() {
  const Shape images = typical_images().type.shape;
  return {images[0], images[1]};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_INSTANCE_NORM,
       .gradient = instance_norm_gradient,
       .decompose = instance_norm_parts,
       .flops = flops_per_input<8>,
       .reference = instance_norm_reference,
       .tolerance = {{instance_norm_scale, "as BATCH_NORM, by plane"}},
       .cases = instance_norm_cases,
       .differentiable = differentiable_planes,
       .typical = {.attrs = attributes(1e-5F), .inputs = {typical_images(), typical_channels(), typical_channels()}},
       .largest = kLargestSquared,
       .request = instance_norm_request},
      {.id = GPUNN_OP_INSTANCE_NORM_BACKWARD,
       .decompose = instance_norm_backward_parts,
       .flops = flops_per_input<10>,
       .reference = instance_norm_backward_reference,
       .tolerance = {{instance_norm_backward_scale, "two sums by plane, which are added by channel"}},
       .cases = instance_norm_backward_cases,
       .typical = {.inputs = {typical_images(), typical_images(), typical_channels(), f32(typical_planes()),
                              positive(typical_planes())}},
       .request = instance_norm_backward_request},
  };
}

}  // namespace gpunn::ops::instance_norm
