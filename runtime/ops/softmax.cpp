// SOFTMAX, LOG_SOFTMAX and their backwards.
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::softmax {

namespace {

// --- SOFTMAX ---

void softmax_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_SOFTMAX_BACKWARD, {}, {c.output_gradient(), c.output(0)}));
}

std::vector<ValueId> softmax_parts(Composition& c) {
  const ValueId x = c.in(0), powers = c.exp(c.sub(x, c.max(x, c.last(x))));
  return {c.div(powers, c.sum(powers, c.last(x)))};
}

// Maximum, difference, exponential, sum and quotient or difference: five operations an element.
double softmax_flops(const OpSignature& s) { return 5.0 * static_cast<double>(s.outputs[0].elements()); }

void log_softmax_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) log_softmax_row(call.in(0), call.out(), n, classes);
}

void softmax_reference(ReferenceCall& call) {
  log_softmax_reference(call);
  for (double& y : call.out()) y = std::exp(y);
}

// y = exp(d) / sum with d = x - max: d is off by |d| units, so y by |d| |y| units; the terms of the sum are positive.
std::vector<double> softmax_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& x = e.inputs.at(0).values;
  const std::vector<double>& y = e.reference.at(output).values;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale(y.size());
  for_each_row(type, [&](std::size_t row) {
    const double largest = row_maximum(x, row, columns(type));
    for (std::size_t i = row; i < row + columns(type); ++i) {
      const double distance = y[i] == 0 ? 0 : largest - x[i];
      scale[i] = y[i] * (kFunctionError + distance + accumulation(static_cast<double>(columns(type))));
    }
  });
  return scale;
}

const std::vector<Shape> kSoftmaxShapes = {{1, 1},  {1, 2},    {3, 10},   {128, 10}, {64, 1},
                                           {5, 17}, {33, 129}, {7, 1000}, {1031, 3}, {0, 10}};

std::vector<CaseSpec> forward_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kSoftmaxShapes) cases.push_back({.inputs = {f32(shape, uniform(-4, 4))}});
  const auto add = [&cases](const Generator& x, const std::string& note) {
    cases.push_back({.inputs = {f32({19, 23}, x)}, .note = note});
  };
  add(uniform(-80, 80), "far apart");
  add(uniform(9000, 9010), "large");
  add(uniform(-9010, -9000), "large and below 0");
  add(constant(3), "all equal");
  add(listed({1.0, 2.0, -kInf, 0.5}), "minus infinity");
  add(listed({3e38, -3e38, 0.0}), "differences that overflow");
  return cases;
}

CaseSpec softmax_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "N,C");
  return {.inputs = {f32(r.sizes)}};
}

std::vector<CaseSpec> differentiable_rows() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : {Shape{4, 7}, Shape{1, 2}, Shape{3, 21}}) {
    cases.push_back({.inputs = {f32(shape, uniform(-3, 3))}});
  }
  return cases;
}

// --- SOFTMAX_BACKWARD ---

std::vector<ValueId> softmax_backward_parts(Composition& c) {
  const ValueId dy = c.in(0), y = c.in(1);
  return {c.mul(y, c.sub(dy, c.sum(c.mul(dy, y), c.last(y))))};
}

void softmax_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += dy[at(n * classes + c)] * y[at(n * classes + c)];
    for (int64_t c = 0; c < classes; ++c) {
      call.out()[at(n * classes + c)] = y[at(n * classes + c)] * (dy[at(n * classes + c)] - sum);
    }
  }
}

// dx = y (dy - sum of dy y).
std::vector<double> softmax_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dy = e.inputs.at(0).values;
  const std::vector<double>& y = e.inputs.at(1).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) sum += std::abs(dy[i] * y[i]);
    for (std::size_t i = row; i < row + columns(type); ++i) {
      scale[i] = y[i] * (4 * std::abs(dy[i]) + sum * accumulation(static_cast<double>(columns(type))));
    }
  });
  return scale;
}

// The second input, made from logits, becomes the forward op's output.
template <int32_t forward_op>
CaseSpec backward_case(const Shape& shape, const Generator& x, const std::string& note = {}) {
  return {.inputs = {f32(shape), f32(shape, x)}, .note = note, .derive = [](std::vector<ReferenceTensor>& in) {
            in[1] = forward(forward_op, {}, {in[1]});
          }};
}

template <int32_t forward_op>
std::vector<CaseSpec> backward_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kSoftmaxShapes) cases.push_back(backward_case<forward_op>(shape, uniform(-4, 4)));
  cases.push_back(backward_case<forward_op>({19, 23}, uniform(-80, 80), "far apart"));
  return cases;
}

CaseSpec softmax_backward_request(Written& r) {
  CaseSpec spec = softmax_request(r);
  spec.inputs.push_back(f32(r.sizes, uniform(0, 1)));
  return spec;
}

// --- LOG_SOFTMAX ---

void log_softmax_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_LOG_SOFTMAX_BACKWARD, {}, {c.output_gradient(), c.output(0)}));
}

std::vector<ValueId> log_softmax_parts(Composition& c) {
  const ValueId x = c.in(0), below = c.sub(x, c.max(x, c.last(x)));
  return {c.sub(below, c.log(c.sum(c.exp(below), c.last(x))))};
}

// --- LOG_SOFTMAX_BACKWARD ---

std::vector<ValueId> log_softmax_backward_parts(Composition& c) {
  const ValueId dy = c.in(0), y = c.in(1);
  return {c.sub(dy, c.mul(c.exp(y), c.sum(dy, c.last(y))))};
}

void log_softmax_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += dy[at(n * classes + c)];
    for (int64_t c = 0; c < classes; ++c) {
      call.out()[at(n * classes + c)] = dy[at(n * classes + c)] - std::exp(y[at(n * classes + c)]) * sum;
    }
  }
}

// dx = dy - exp(y) (sum of dy).
std::vector<double> log_softmax_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dy = e.inputs.at(0).values;
  const std::vector<double>& y = e.inputs.at(1).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) sum += std::abs(dy[i]);
    for (std::size_t i = row; i < row + columns(type); ++i) {
      scale[i] = 2 * std::abs(dy[i]) +
                 std::exp(y[i]) * sum * (kFunctionError + accumulation(static_cast<double>(columns(type))));
    }
  });
  return scale;
}

CaseSpec log_softmax_backward_request(Written& r) {
  CaseSpec spec = softmax_request(r);
  spec.inputs.push_back(f32(r.sizes, uniform(-4, 0)));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_SOFTMAX,
       .gradient = softmax_gradient,
       .decompose = softmax_parts,
       .flops = softmax_flops,
       .reference = softmax_reference,
       .tolerance = {{softmax_scale, "the rounding of x - max is magnified by exp, then a sum and a quotient"}},
       .cases = forward_cases,
       .differentiable = differentiable_rows,
       .typical = {.inputs = repeated(1, typical_logits())},
       .request = softmax_request},
      {.id = GPUNN_OP_SOFTMAX_BACKWARD,
       .decompose = softmax_backward_parts,
       .flops = softmax_flops,
       .reference = softmax_backward_reference,
       .tolerance = {{softmax_backward_scale, "a sum of C products, a difference and a product"}},
       .cases = backward_cases<GPUNN_OP_SOFTMAX>,
       .typical = {.inputs = repeated(2, typical_logits())},
       .request = softmax_backward_request},
      {.id = GPUNN_OP_LOG_SOFTMAX,
       .gradient = log_softmax_gradient,
       .decompose = log_softmax_parts,
       .flops = softmax_flops,
       .reference = log_softmax_reference,
       .tolerance = {{log_softmax_scale, "the roundings of x - max, of the sum inside log and of log"}},
       .cases = forward_cases,
       .differentiable = differentiable_rows,
       .typical = {.inputs = repeated(1, typical_logits())},
       .request = softmax_request},
      {.id = GPUNN_OP_LOG_SOFTMAX_BACKWARD,
       .decompose = log_softmax_backward_parts,
       .flops = softmax_flops,
       .reference = log_softmax_backward_reference,
       .tolerance = {{log_softmax_backward_scale, "a sum of C terms, an exp and a difference"}},
       .cases = backward_cases<GPUNN_OP_LOG_SOFTMAX>,
       .typical = {.inputs = repeated(2, typical_logits())},
       .request = log_softmax_backward_request},
  };
}

}  // namespace gpunn::ops::softmax
