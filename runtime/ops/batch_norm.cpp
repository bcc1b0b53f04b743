// BATCH_NORM, its backward and BATCH_NORM_INFERENCE.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::batch_norm {

namespace {

// --- BATCH_NORM ---

// Nothing flows to the running statistics, which do not enter y.
void batch_norm_gradient(GradientContext& c) {
  std::vector<ValueId> inputs{c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)};
  if (c.node().inputs.size() == 6) inputs.push_back(c.input(5));
  const std::vector<ValueId> gradients = c.graph().add(GPUNN_OP_BATCH_NORM_BACKWARD, c.name(), {}, std::move(inputs));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

// x[N,C,...], of whose rows `count` enter the statistics; without a count all.
ChannelView channel_view(const Shape& x, std::optional<double> count) {
  ChannelView view{at(x.at(0)), at(x.at(1)), 1, at(x[0])};
  for (std::size_t i = 2; i < x.size(); ++i) view.inner *= at(x[i]);
  if (count) view.counted = static_cast<std::size_t>(std::clamp(*count, 0.0, static_cast<double>(x[0])));
  return view;
}

// The first input is x, or dy of the same shape. `count` is the index of that input, which may be left out.
ChannelView channel_view(const ReferenceCall& call, std::size_t count) {
  return channel_view(call.in_type(0).shape,
                      count < call.inputs() ? std::optional(call.in(count).at(0)) : std::nullopt);
}
ChannelView channel_view(const Evaluation& e, std::size_t count) {
  return channel_view(e.inputs.at(0).type.shape,
                      count < e.inputs.size() ? std::optional(e.inputs[count].values.at(0)) : std::nullopt);
}

void batch_norm_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_batch_norm_attrs>();
  const double epsilon = attrs.epsilon, momentum = attrs.momentum;
  const ChannelView batch = channel_view(call, 5);
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2);
  const double elements = batch.elements();
  for (std::size_t c = 0; c < batch.channels; ++c) {
    call.out(3)[c] = call.in(3)[c];
    call.out(4)[c] = call.in(4)[c];
    call.out(1)[c] = 0;
    call.out(2)[c] = 0;
    if (elements == 0) {
      batch.for_channel(c, batch.images, [&](std::size_t i) { call.out(0)[i] = 0; });
      continue;
    }
    double sum = 0, squares = 0;
    batch.for_channel(c, batch.counted, [&](std::size_t i) { sum += x[i]; });
    const double mean = sum / elements;
    batch.for_channel(c, batch.counted, [&](std::size_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    const double rstd = 1 / std::sqrt(squares / elements + epsilon);
    batch.for_channel(c, batch.images,
                      [&](std::size_t i) { call.out(0)[i] = (x[i] - mean) * rstd * gamma[c] + beta[c]; });
    call.out(1)[c] = mean;
    call.out(2)[c] = rstd;
    const double variance = squares / (elements > 1 ? elements - 1 : 1);
    call.out(3)[c] = (1 - momentum) * call.in(3)[c] + momentum * mean;
    call.out(4)[c] = (1 - momentum) * call.in(4)[c] + momentum * variance;
  }
}

std::vector<double> batch_norm_scale(const Evaluation& e, std::size_t output) {
  const auto attrs = e.signature.attrs.as<gpunn_batch_norm_attrs>();
  const ChannelView batch = channel_view(e, 5);
  const std::vector<double>&x = e.inputs.at(0).values, &gamma = e.inputs.at(1).values, &beta = e.inputs.at(2).values;
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  if (batch.elements() == 0) return scale;  // zeros, and statistics that stay
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const StatisticsError s = statistics_error(batch, x, c);
    const double rstd = 1 / std::sqrt(s.variance + attrs.epsilon);
    const double rstd_error = rstd * (kRootError + 0.5 * s.variance_error * rstd * rstd);
    // 1 - momentum, the product with it, and the sum are rounded.
    const double before = 3 * std::abs((1.0 - attrs.momentum) * e.inputs.at(output < 3 ? 3 : output).values[c]);
    switch (output) {
      case 0: {
        const double mean = e.reference.at(1).values[c];
        batch.for_channel(c, batch.images, [&](std::size_t i) {
          const double from_mean = std::abs(x[i] - mean);
          scale[i] = std::abs(gamma[c]) * (rstd * (s.mean_error + 4 * from_mean) + rstd_error * from_mean) +
                     2 * std::abs(beta[c]);
        });
        break;
      }
      case 1:
        scale[c] = s.mean_error;
        break;
      case 2:
        scale[c] = rstd_error;
        break;
      case 3:
        scale[c] = before + attrs.momentum * s.mean_error;
        break;
      default:
        scale[c] = before + attrs.momentum * 2 * (s.variance_error + 4 * s.variance);
    }
  }
  return scale;
}

struct BatchCase {
  Shape x;
  int64_t count = -1;  // -1: without that input
};

// Rows of a linear layer, planes of images; one element a channel; odd sizes, sizes off 4; many rows, large planes;
// full, partial and empty batches; channels without elements.
const std::vector<BatchCase> kBatches = {
    {{1, 1}},           {{2, 1}},           {{128, 10}},     {{37, 123}},          {{1031, 7}},       {{1, 1, 1, 1}},
    {{2, 3, 5, 7}},     {{16, 6, 28, 28}},  {{3, 33, 1, 1}}, {{1, 5, 64, 65}},     {{4, 7, 11}},      {{5, 300, 2, 3}},
    {{0, 4}},           {{3, 2, 0}},        {{4, 0, 3}},     {{9, 2, 128, 128}},   {{700, 3, 4, 4}},  {{128, 10}, 128},
    {{128, 10}, 96},    {{37, 123}, 1},     {{37, 5}, 0},    {{16, 6, 28, 28}, 9}, {{3, 2, 8, 9}, 1}, {{5, 3, 2, 2}, 0},
    {{6, 2, 33, 3}, 5}, {{64, 64, 8, 8}, 7}};

CaseSpec with_count(CaseSpec spec, const BatchCase& batch) {
  if (batch.count >= 0) {
    spec.inputs.push_back(count(batch.count));
    spec.note = "count " + std::to_string(batch.count) + (spec.note.empty() ? "" : ", ") + spec.note;
  }
  return spec;
}

Attributes attributes(float epsilon, float momentum) {
  return Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = epsilon, .momentum = momentum});
}

CaseSpec forward_case(const BatchCase& batch, const Generator& x, const std::string& note = {}, float epsilon = 1e-5F,
                      float momentum = 0.1F) {
  const Shape channels{batch.x[1]};
  return with_count(
      {.attrs = attributes(epsilon, momentum),
       .inputs = {f32(batch.x, x), f32(channels), f32(channels), f32(channels), f32(channels, uniform(0.5, 2))},
       .note = note},
      batch);
}

// `rest` for what counts, NaN for the rows behind.
Generator until_count(const BatchCase& batch, Generator rest) {
  if (batch.count < 0 || batch.x[0] == 0) return rest;
  const int64_t counted = batch.count * (element_count(batch.x) / batch.x[0]);
  return [=, rest = std::move(rest)](Random& random, int64_t i) { return i < counted ? rest(random, i) : kNan; };
}

const std::vector<BatchCase> kAwkwardBatches = {{{6, 5, 17, 9}}, {{6, 5, 17, 9}, 4}, {{203, 11}}};

std::vector<CaseSpec> batch_norm_cases() {
  std::vector<CaseSpec> cases;
  for (const BatchCase& batch : kBatches) {
    cases.push_back(forward_case(batch, uniform(-1, 3)));
    // What lies behind the count must not spoil the statistics.
    if (batch.count >= 0) cases.push_back(forward_case(batch, until_count(batch, uniform()), "NaN behind the count"));
  }
  for (const BatchCase& batch : kAwkwardBatches) {
    cases.push_back(forward_case(batch, uniform(1000, 1001), "a mean of a thousand deviations"));
    cases.push_back(forward_case(batch, constant(3.3), "a variance of 0"));
    cases.push_back(forward_case(batch, sometimes(1e4, 97, uniform(-1e-3, 1e-3)), "outliers"));
    cases.push_back(forward_case(batch, uniform(), "", 0.5F, 1.0F));
    cases.push_back(forward_case(batch, uniform(), "", 1e-5F, 0.0F));
    cases.push_back(forward_case(batch, sometimes(kNan, 400, uniform()), "NaN in some channels"));
  }
  // A count that the device holds may be anything.
  for (const int64_t counted : {int64_t{-3}, int64_t{99}}) {
    CaseSpec spec = forward_case({{6, 3}}, uniform());
    spec.inputs.push_back(count(counted));
    spec.note = "count " + std::to_string(counted) + " of 6";
    cases.push_back(std::move(spec));
  }
  return cases;
}

// A variance, or the inverse of a deviation.
InputSpec positive(int64_t channels) { return f32({channels}, uniform(0.5, 2)); }

std::vector<InputSpec> typical_normalization() {
  return {typical_images(), typical_channels(), typical_channels(), typical_channels(), positive(kTypicalChannels)};
}

CaseSpec batch_norm_request(Written& r) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  const InputSpec channels = f32({r.sizes[1]});
  return {.attrs = attributes(1e-5F, 0.1F),
          .inputs = {f32(r.sizes), channels, channels, channels, positive(r.sizes[1])}};
}

std::vector<CaseSpec> differentiable_batches() {
  return {forward_case({{9, 3}}, uniform(-1, 3), "", 1e-2F), forward_case({{3, 2, 2, 4}}, uniform(-1, 3), "", 1e-2F)};
}

// --- BATCH_NORM_BACKWARD ---

// Of y = (x - mean) rstd gamma + beta, where mean and rstd depend on x: with h = (x - mean) rstd and means
// over what counts, dx = gamma rstd (dy - mean(dy) - h mean(dy h)).
void batch_norm_backward_reference(ReferenceCall& call) {
  const ChannelView batch = channel_view(call, 5);
  const Values &dy = call.in(0), &x = call.in(1), &gamma = call.in(2), &mean = call.in(3), &rstd = call.in(4);
  const double elements = batch.elements();
  for (std::size_t c = 0; c < batch.channels; ++c) {
    double dgamma = 0, dbeta = 0;
    batch.for_channel(c, batch.images, [&](std::size_t i) { call.out(0)[i] = 0; });  // but for what counts
    batch.for_channel(c, batch.counted, [&](std::size_t i) {
      dbeta += dy[i];
      dgamma += dy[i] * (x[i] - mean[c]) * rstd[c];
    });
    batch.for_channel(c, batch.counted, [&](std::size_t i) {
      const double h = (x[i] - mean[c]) * rstd[c];
      call.out(0)[i] = gamma[c] * rstd[c] * (dy[i] - dbeta / elements - h * dgamma / elements);
    });
    call.out(1)[c] = dgamma;
    call.out(2)[c] = dbeta;
  }
}

// dx = gamma rstd (dy - (sum of dy + h sum of dy h) / m), h = (x - mean) rstd.
std::vector<double> batch_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const ChannelView batch = channel_view(e, 5);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values, &gamma = e.inputs.at(2).values,
        &mean = e.inputs.at(3).values, &rstd = e.inputs.at(4).values;
  const double elements = batch.elements(), terms = accumulation(elements);
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const auto h = [&](std::size_t i) { return std::abs((x[i] - mean[c]) * rstd[c]); };
    double size = 0, product = 0;
    batch.for_channel(c, batch.counted, [&](std::size_t i) {
      size += std::abs(dy[i]);
      product += std::abs(dy[i]) * h(i);
    });
    if (output == 1) scale[c] = product * terms;
    if (output == 2) scale[c] = size * terms;
    if (output != 0) continue;
    batch.for_channel(c, batch.counted, [&](std::size_t i) {
      scale[i] =
          std::abs(gamma[c] * rstd[c]) * (4 * std::abs(dy[i]) + (terms + 4) * (size + h(i) * product) / elements);
    });
  }
  return scale;
}

// With the statistics that the forward op saves.
CaseSpec backward_case(const BatchCase& batch, const Generator& dy, const Generator& x, const std::string& note = {}) {
  const Shape channels{batch.x[1]};
  const auto save_statistics = [](std::vector<ReferenceTensor>& in) {
    const ReferenceTensor zeros{in[2].type, std::vector<double>(in[2].values.size())};
    std::vector<ReferenceTensor> forward_inputs{in[1], in[2], zeros, zeros, zeros};
    if (in.size() == 6) forward_inputs.push_back(in[5]);
    const Attributes attrs = attributes(1e-5F, 0.1F);
    in[3] = forward(GPUNN_OP_BATCH_NORM, attrs, forward_inputs, 1);
    in[4] = forward(GPUNN_OP_BATCH_NORM, attrs, forward_inputs, 2);
  };
  return with_count({.inputs = {f32(batch.x, dy), f32(batch.x, x), f32(channels), f32(channels), f32(channels)},
                     .note = note,
                     .derive = save_statistics},
                    batch);
}

std::vector<CaseSpec> batch_norm_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const BatchCase& batch : kBatches) {
    const Generator dy = until_count(batch, uniform());
    cases.push_back(backward_case(batch, dy, uniform(-1, 3)));
    if (batch.count >= 0) {
      cases.push_back(backward_case(batch, dy, until_count(batch, uniform()), "x NaN behind the count"));
    }
  }
  for (const BatchCase& batch : kAwkwardBatches) {
    cases.push_back(backward_case(batch, until_count(batch, uniform()), uniform(1000, 1001), "a large mean"));
    cases.push_back(backward_case(batch, until_count(batch, uniform(99, 100)), uniform(), "a large mean of dy"));
    cases.push_back(backward_case(batch, sometimes(kNan, 400, uniform()), uniform(), "NaN in dy"));
  }
  return cases;
}

CaseSpec batch_norm_backward_request(Written& r) {
  CaseSpec spec = batch_norm_request(r);
  return {.inputs = {spec.inputs[0], spec.inputs[0], spec.inputs[1], spec.inputs[1], spec.inputs[4]}};
}

// --- BATCH_NORM_INFERENCE ---

// Mean and variance are given, so that y is x scaled and shifted by channel: dx is dy scaled alike, which the op itself
// does with a mean and a shift of 0. Nothing flows to the statistics.
void batch_norm_inference_gradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(), gamma = c.input(1), mean = c.input(3), variance = c.input(4);
  const Attributes& attrs = c.node().attrs;
  const Shape channels = c.graph().value(gamma).type.shape;
  Expressions e = c.expressions();
  const ValueId zeros = e.constant(0, channels);
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_BATCH_NORM_INFERENCE, attrs, {dy, gamma, zeros, zeros, variance}));
  if (c.wants(1)) {
    // rstd is what the op makes of ones.
    const Shape row{1, channels[0]};
    const ValueId ones = e.constant(1, row);
    const ValueId factor = c.graph().add_view(c.name() + ".ones", ones, {DType::f32, channels});
    const ValueId deviations = c.add(GPUNN_OP_BATCH_NORM_INFERENCE, attrs, {ones, factor, zeros, zeros, variance});
    const ValueId rstd = c.graph().add_view(c.name() + ".rstd", deviations, {DType::f32, channels});
    const std::vector<ValueId> gradients =
        c.graph().add(GPUNN_OP_BATCH_NORM_BACKWARD, c.name(), {}, {dy, c.input(0), gamma, mean, rstd});
    c.set(1, gradients[1]);
  }
  if (c.wants(2)) c.set(2, c.add(GPUNN_OP_BIAS_BACKWARD, {}, {dy}));
}

std::vector<ValueId> batch_norm_inference_parts(Composition& c) {
  const ValueId x = c.in(0);
  const ValueId rstd = c.rsqrt(c.add(c.in(4), c.constant(c.attrs<gpunn_batch_norm_attrs>().epsilon)));
  const ValueId centred = c.sub(x, c.by_channel(c.in(3), x));
  return {c.add(c.mul(centred, c.by_channel(c.mul(rstd, c.in(1)), x)), c.by_channel(c.in(2), x))};
}

void batch_norm_inference_reference(ReferenceCall& call) {
  const double epsilon = call.attrs<gpunn_batch_norm_attrs>().epsilon;
  const ChannelView batch = channel_view(call, 5);
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2), &mean = call.in(3), &variance = call.in(4);
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const double rstd = 1 / std::sqrt(variance[c] + epsilon);
    batch.for_channel(c, batch.images,
                      [&](std::size_t i) { call.out(0)[i] = (x[i] - mean[c]) * rstd * gamma[c] + beta[c]; });
  }
}

// y = (x - mean) rstd gamma + beta, or x times a factor plus a shift.
std::vector<double> batch_norm_inference_scale(const Evaluation& e, std::size_t output) {
  const double epsilon = e.signature.attrs.as<gpunn_batch_norm_attrs>().epsilon;
  const ChannelView batch = channel_view(e, 5);
  const std::vector<double>& x = e.inputs.at(0).values;
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const double factor = e.inputs.at(1).values[c] / std::sqrt(e.inputs.at(4).values[c] + epsilon);
    batch.for_channel(c, batch.images, [&](std::size_t i) {
      scale[i] = (kRootError + 4) * std::abs(factor) * (std::abs(x[i]) + std::abs(e.inputs.at(3).values[c])) +
                 2 * std::abs(e.inputs.at(2).values[c]);
    });
  }
  return scale;
}

CaseSpec inference_case(const Shape& x, const Generator& value, const std::string& note = {}) {
  const Shape channels{x[1]};
  return {.attrs = attributes(1e-5F, 0),
          .inputs = {f32(x, value), f32(channels), f32(channels), f32(channels), f32(channels, uniform(0, 2))},
          .note = note};
}

std::vector<CaseSpec> batch_norm_inference_cases() {
  std::vector<CaseSpec> cases;
  for (const BatchCase& batch : kBatches) {
    if (batch.count < 0) cases.push_back(inference_case(batch.x, uniform(-1, 3)));
  }
  cases.push_back(inference_case({203, 11}, sometimes(kNan, 400, uniform()), "NaN in x"));
  return cases;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_BATCH_NORM,
       .gradient = batch_norm_gradient,
       .flops = flops_per_input<8>,
       .reference = batch_norm_reference,
       .tolerance = {{batch_norm_scale,
                      "the mean is a sum, the variance a sum of squares of differences from it; then a root, products "
                      "and a sum"}},
       .cases = batch_norm_cases,
       .differentiable = differentiable_batches,
       .typical = {.attrs = attributes(1e-5F, 0.1F), .inputs = typical_normalization()},
       .largest = kLargestSquared,
       .request = batch_norm_request},
      {.id = GPUNN_OP_BATCH_NORM_BACKWARD,
       .flops = flops_per_input<10>,
       .reference = batch_norm_backward_reference,
       .tolerance = {{batch_norm_backward_scale, "two sums, of dy and of its products with x"}},
       .cases = batch_norm_backward_cases,
       .typical = {.inputs = {typical_images(), typical_images(), typical_channels(), typical_channels(),
                              positive(kTypicalChannels)}},
       .request = batch_norm_backward_request},
      {.id = GPUNN_OP_BATCH_NORM_INFERENCE,
       .gradient = batch_norm_inference_gradient,
       .decompose = batch_norm_inference_parts,
       .flops = flops_per_input<2>,
       .reference = batch_norm_inference_reference,
       .tolerance = {{batch_norm_inference_scale, "a root, products and a sum, in any order"}},
       .cases = batch_norm_inference_cases,
       .typical = {.attrs = attributes(1e-5F, 0.1F), .inputs = typical_normalization()},
       .request = batch_norm_request},
  };
}

}  // namespace gpunn::ops::batch_norm
