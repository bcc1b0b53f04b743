// LAYER_NORM and its backward.
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::layer_norm {

namespace {

// --- LAYER_NORM ---

void layer_norm_gradient(GradientContext& c) {
  const std::vector<ValueId> gradients =
      c.graph().add(GPUNN_OP_LAYER_NORM_BACKWARD, c.name(), {},
                    {c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

std::vector<ValueId> layer_norm_parts(Composition& c) {
  const ValueId x = c.in(0), gamma = c.in(1), beta = c.in(2), mean = c.row_mean(x);
  const ValueId centred = c.sub(x, c.by_row(mean, x));
  const ValueId variance = c.row_mean(c.mul(centred, centred));
  const ValueId rstd = c.rsqrt(c.add(variance, c.constant(c.attrs<gpunn_layer_norm_attrs>().epsilon)));
  return {c.add(c.mul(c.mul(centred, c.by_row(rstd, x)), gamma), beta), mean, rstd};
}

void layer_norm_reference(ReferenceCall& call) {
  const double epsilon = call.attrs<gpunn_layer_norm_attrs>().epsilon;
  const int64_t rows = call.in_dim(0, 0), columns = call.in_dim(0, 1);
  const Values &x = call.in(0), &gamma = call.in(1), &beta = call.in(2);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0, squares = 0;
    for (int64_t d = 0; d < columns; ++d) sum += x[at(n * columns + d)];
    const double mean = sum / static_cast<double>(columns);
    for (int64_t d = 0; d < columns; ++d) squares += std::pow(x[at(n * columns + d)] - mean, 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (int64_t d = 0; d < columns; ++d) {
      call.out(0)[at(n * columns + d)] = (x[at(n * columns + d)] - mean) * rstd * gamma[at(d)] + beta[at(d)];
    }
    call.out(1)[at(n)] = mean;
    call.out(2)[at(n)] = rstd;
  }
}

// The rows of x[N,D] as channels of one image each.
ChannelView rows_of(const Evaluation& e, std::size_t x) {
  const Shape& shape = e.inputs.at(x).type.shape;
  return {1, static_cast<std::size_t>(shape.at(0)), static_cast<std::size_t>(shape.at(1)), 1};
}

std::vector<double> layer_norm_scale(const Evaluation& e, std::size_t output) {
  const double epsilon = e.signature.attrs.as<gpunn_layer_norm_attrs>().epsilon;
  const ChannelView rows = rows_of(e, 0);
  return normalization_scale(e, output, rows, epsilon, [&](std::size_t i) { return i % rows.inner; });
}

const std::vector<Shape> kLayerNormShapes = {{1, 1},    {1, 17},   {129, 1},  {128, 10}, {37, 123},  {1031, 7},
                                             {3, 1021}, {2, 9000}, {64, 512}, {0, 4},    {2, 33013}, {3, 50000}};

Attributes attributes(float epsilon) {
  return Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = epsilon});
}

CaseSpec forward_case(const Shape& x, const Generator& value, const std::string& note = {}, float epsilon = 1e-5F) {
  const Shape columns{x[1]};
  return {.attrs = attributes(epsilon), .inputs = {f32(x, value), f32(columns), f32(columns)}, .note = note};
}

const std::vector<Shape> kAwkwardShapes = {{19, 301}, {301, 19}};

std::vector<CaseSpec> layer_norm_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kLayerNormShapes) cases.push_back(forward_case(shape, uniform(-1, 3)));
  for (const Shape& shape : kAwkwardShapes) {
    cases.push_back(forward_case(shape, uniform(1000, 1001), "a mean of a thousand deviations"));
    cases.push_back(forward_case(shape, constant(3.3), "a variance of 0"));
    cases.push_back(forward_case(shape, sometimes(1e4, 97, uniform(-1e-3, 1e-3)), "outliers"));
    cases.push_back(forward_case(shape, uniform(), "", 0.5F));
    cases.push_back(forward_case(shape, sometimes(kNan, 400, uniform()), "NaN in some rows"));
  }
  return cases;
}

InputSpec typical_rows() { return f32({kTypicalRows, kTypicalClasses}); }

CaseSpec layer_norm_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "N,D");
  const InputSpec columns = f32({r.sizes[1]});
  return {.attrs = attributes(1e-5F), .inputs = {f32(r.sizes), columns, columns}};
}

std::vector<CaseSpec> differentiable_rows() {
  return {forward_case({3, 7}, uniform(-1, 3), "", 1e-2F), forward_case({1, 12}, uniform(-1, 3), "", 1e-2F)};
}

// --- LAYER_NORM_BACKWARD ---

// With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)), means by row.
std::vector<ValueId> layer_norm_backward_parts(Composition& c) {
  const ValueId dy = c.in(0), x = c.in(1), rstd = c.by_row(c.in(4), x);
  const ValueId h = c.mul(c.sub(x, c.by_row(c.in(3), x)), rstd), g = c.mul(dy, c.in(2));
  const ValueId along = c.mul(h, c.mean(c.mul(g, h), 2));
  return {c.mul(rstd, c.sub(c.sub(g, c.mean(g, 2)), along)), c.channel_sum(c.mul(dy, h)), c.channel_sum(dy)};
}

// With h = (x - mean) rstd, g = dy gamma and means over a row, dx = rstd (g - mean(g) - h mean(g h)).
void layer_norm_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), columns = call.in_dim(0, 1);
  const Values &dy = call.in(0), &x = call.in(1), &gamma = call.in(2), &mean = call.in(3), &rstd = call.in(4);
  Values &dgamma = call.out(1), &dbeta = call.out(2);
  dgamma.assign(dgamma.size(), 0);
  dbeta.assign(dbeta.size(), 0);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0, product = 0;
    for (int64_t d = 0; d < columns; ++d) {
      const std::size_t i = at(n * columns + d);
      const double h = (x[i] - mean[at(n)]) * rstd[at(n)];
      sum += dy[i] * gamma[at(d)];
      product += dy[i] * gamma[at(d)] * h;
      dgamma[at(d)] += dy[i] * h;
      dbeta[at(d)] += dy[i];
    }
    for (int64_t d = 0; d < columns; ++d) {
      const std::size_t i = at(n * columns + d);
      const double h = (x[i] - mean[at(n)]) * rstd[at(n)];
      call.out(0)[i] = rstd[at(n)] * (dy[i] * gamma[at(d)] - (sum + h * product) / static_cast<double>(columns));
    }
  }
}

// dx = rstd (g - (sum of g + h sum of g h) / D), h = (x - mean) rstd and g = dy gamma; dgamma and dbeta are sums
// over the rows.
std::vector<double> layer_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const ChannelView rows = rows_of(e, 1);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values, &gamma = e.inputs.at(2).values,
        &mean = e.inputs.at(3).values, &rstd = e.inputs.at(4).values;
  const auto columns = static_cast<double>(rows.inner);
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (std::size_t n = 0; n < rows.channels; ++n) {
    const auto h = [&](std::size_t i) { return std::abs((x[i] - mean[n]) * rstd[n]); };
    double size = 0, product = 0;
    rows.for_channel(n, 1, [&](std::size_t i) {
      const std::size_t d = i - n * rows.inner;
      size += std::abs(dy[i] * gamma[d]);
      product += std::abs(dy[i] * gamma[d]) * h(i);
      if (output == 1) scale[d] += std::abs(dy[i]) * h(i);
      if (output == 2) scale[d] += std::abs(dy[i]);
    });
    if (output != 0) continue;
    rows.for_channel(n, 1, [&](std::size_t i) {
      const std::size_t d = i - n * rows.inner;
      scale[i] = std::abs(rstd[n]) *
                 (4 * std::abs(dy[i] * gamma[d]) + (accumulation(columns) + 4) * (size + h(i) * product) / columns);
    });
  }
  if (output == 0) return scale;
  for (double& sum : scale) sum *= accumulation(static_cast<double>(rows.channels));
  return scale;
}

// With the statistics that the forward op saves.
CaseSpec backward_case(const Shape& x, const Generator& dy, const Generator& value, const std::string& note = {}) {
  const Shape columns{x[1]}, rows{x[0]};
  return {.inputs = {f32(x, dy), f32(x, value), f32(columns), f32(rows), f32(rows)},
          .note = note,
          .derive = [](std::vector<ReferenceTensor>& in) {
            const Attributes attrs = attributes(1e-5F);
            const std::vector<ReferenceTensor> of_forward{in[1], in[2], in[2]};
            in[3] = forward(GPUNN_OP_LAYER_NORM, attrs, of_forward, 1);
            in[4] = forward(GPUNN_OP_LAYER_NORM, attrs, of_forward, 2);
          }};
}

std::vector<CaseSpec> layer_norm_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kLayerNormShapes) cases.push_back(backward_case(shape, uniform(), uniform(-1, 3)));
  for (const Shape& shape : kAwkwardShapes) {
    cases.push_back(backward_case(shape, uniform(), uniform(1000, 1001), "a large mean"));
    cases.push_back(backward_case(shape, uniform(99, 100), uniform(), "a large mean of dy"));
    cases.push_back(backward_case(shape, sometimes(kNan, 400, uniform()), uniform(), "NaN in dy"));
  }
  return cases;
}

InputSpec positive(int64_t rows) { return f32({rows}, uniform(0.5, 2)); }

CaseSpec layer_norm_backward_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "N,D");
  return {.inputs = {f32(r.sizes), f32(r.sizes), f32({r.sizes[1]}), f32({r.sizes[0]}), positive(r.sizes[0])}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_LAYER_NORM,
       .gradient = layer_norm_gradient,
       .decompose = layer_norm_parts,
       .flops = flops_per_input<8>,
       .reference = layer_norm_reference,
       .tolerance = {{layer_norm_scale, "as BATCH_NORM, by row"}},
       .cases = layer_norm_cases,
       .differentiable = differentiable_rows,
       .typical = {.attrs = attributes(1e-5F),
                   .inputs = {typical_rows(), f32({kTypicalClasses}), f32({kTypicalClasses})}},
       .largest = kLargestSquared,
       .request = layer_norm_request},
      {.id = GPUNN_OP_LAYER_NORM_BACKWARD,
       .decompose = layer_norm_backward_parts,
       .flops = flops_per_input<13>,
       .reference = layer_norm_backward_reference,
       .tolerance = {{layer_norm_backward_scale, "two sums by row, and two by column"}},
       .cases = layer_norm_backward_cases,
       .typical = {.inputs = {typical_rows(), typical_rows(), f32({kTypicalClasses}), positive(kTypicalRows),
                              positive(kTypicalRows)}},
       .request = layer_norm_backward_request},
  };
}

}  // namespace gpunn::ops::layer_norm
