// MSE_LOSS, BCE_LOGITS_LOSS, HUBER_LOSS and their backwards: means over a row of a function of each element and its
// target.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::pointwise_loss {

namespace {

// --- MSE_LOSS ---

using Term = double (*)(double x, double target, double delta);

template <Term slope>
void backward(ReferenceCall& call) {
  const int64_t rows = call.in_dim(1, 0);
  const int64_t size = rows == 0 ? 0 : static_cast<int64_t>(call.in(1).size()) / rows;
  const double delta = call.attrs<gpunn_huber_attrs>().delta;
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = n * size; i < (n + 1) * size; ++i) {
      call.out()[at(i)] =
          call.in(0)[at(n)] * slope(call.in(1)[at(i)], call.in(2)[at(i)], delta) / static_cast<double>(size);
    }
  }
}

template <int32_t backward>
void pointwise_gradient(GradientContext& c) {
  if (c.wants(1)) throw Error("'" + c.node().name + "': a loss has no gradient for its target");
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.input(0), c.input(1)}));
}

std::vector<ValueId> mse_parts(Composition& c) {
  const ValueId difference = c.sub(c.in(0), c.in(1));
  return {c.row_mean(c.mul(difference, difference))};
}

void mse_loss_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), size = row_size(call.in_type(0).shape);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double difference = call.in(0)[at(n * size + i)] - call.in(1)[at(n * size + i)];
      sum += difference * difference;
    }
    call.out()[at(n)] = sum / static_cast<double>(size);
  }
}

const std::vector<Shape> kLossRows = {{1}, {37}, {1, 1}, {5, 17}, {128, 10}, {3, 2, 5, 7}, {2, 4099}, {0, 3}};

std::vector<CaseSpec> at_mse_shapes() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kLossRows) cases.push_back({.inputs = {f32(shape), f32(shape)}});
  for (const Shape& shape : {Shape{2, 3, 64, 63}, Shape{1, 70001}}) {  // as features and images are
    cases.push_back({.inputs = {f32(shape), f32(shape)}});
  }
  return cases;
}

std::vector<CaseSpec> mse_cases() {
  std::vector<CaseSpec> cases = at_mse_shapes();
  cases.push_back({.inputs = repeated(2, f32({9, 31}, uniform(1000, 1001))), .note = "large and near each other"});
  return cases;
}

// Against a target of the same shape.
CaseSpec loss_request(Written& r) {
  if (r.sizes.empty()) bad(r, "N and further dimensions");
  return {.inputs = {f32(r.sizes), f32(r.sizes, uniform(0, 1))}};
}

// With what x and the target are drawn from.
std::vector<CaseSpec> differentiable_pairs(const Generator& x, const Generator& target, const Attributes& attrs = {}) {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : {Shape{6}, Shape{3, 5}, Shape{2, 3, 2, 2}}) {
    cases.push_back({.attrs = attrs, .inputs = {f32(shape, x), f32(shape, target)}});
  }
  return cases;
}

// --- MSE_LOSS_BACKWARD ---

std::vector<ValueId> mse_backward_parts(Composition& c) {
  const ValueId x = c.in(1);
  const ValueId factor = c.div(c.scaled(c.by_row(c.in(0), x), 2), c.constant(c.row_size(x)));
  return {c.mul(factor, c.sub(x, c.in(2)))};
}

void mse_loss_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(1, 0), size = row_size(call.in_type(1).shape);
  const Values& dloss = call.in(0);
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t i = 0; i < size; ++i) {
      const double difference = call.in(1)[at(n * size + i)] - call.in(2)[at(n * size + i)];
      call.out()[at(n * size + i)] = dloss[at(n)] * 2 * difference / static_cast<double>(size);
    }
  }
}

// The cases of a loss, with the gradient that reaches each row.
std::vector<CaseSpec> backward_cases(std::vector<CaseSpec> cases) {
  for (CaseSpec& spec : cases) spec.inputs.insert(spec.inputs.begin(), f32({spec.inputs[0].type.shape[0]}));
  return cases;
}

std::vector<CaseSpec> mse_backward_cases() { return backward_cases(at_mse_shapes()); }

CaseSpec loss_backward_request(Written& r) { return std::move(backward_cases({loss_request(r)}).front()); }

// --- BCE_LOGITS_LOSS ---

ValueId magnitude_of(Composition& c, ValueId x) { return c.maximum(x, c.scaled(x, -1)); }

std::vector<ValueId> bce_parts(Composition& c) {
  const ValueId x = c.in(0), target = c.in(1);
  const ValueId tail = c.log(c.add(c.constant(1), c.exp(c.scaled(magnitude_of(c, x), -1))));
  return {c.row_mean(c.add(c.sub(c.maximum(x, c.constant(0)), c.mul(x, target)), tail))};
}

template <Term term>
void forward(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0);
  const int64_t size = rows == 0 ? 0 : static_cast<int64_t>(call.in(0).size()) / rows;
  const double delta = call.attrs<gpunn_huber_attrs>().delta;
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t i = n * size; i < (n + 1) * size; ++i) sum += term(call.in(0)[at(i)], call.in(1)[at(i)], delta);
    call.out()[at(n)] = sum / static_cast<double>(size);
  }
}

double bce(double x, double target, double /*delta*/) {
  return std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x)));
}

std::vector<double> bce_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& x = e.inputs.at(0).values;
  const std::vector<double>& target = e.inputs.at(1).values;
  const std::size_t size = at(row_size(e.inputs.at(0).type.shape));
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t n = 0; n < scale.size(); ++n) {
    double sum = 0;
    for (std::size_t i = n * size; i < (n + 1) * size; ++i) {
      sum += std::max(x[i], 0.0) + std::abs(x[i] * target[i]) + std::log1p(std::exp(-std::abs(x[i])));
    }
    scale[n] = sum / static_cast<double>(size) * (kFunctionError + accumulation(static_cast<double>(size)));
  }
  return scale;
}

const std::vector<Shape> kPointwiseShapes = {{1},      {37},         {1, 1},    {5, 17}, {128, 10},
                                             {128, 1}, {3, 2, 5, 7}, {2, 4099}, {0, 3}};

std::vector<CaseSpec> bce_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](const Shape& shape, const Generator& x, const Generator& target, const std::string& note) {
    cases.push_back({.inputs = {f32(shape, x), f32(shape, target)}, .note = note});
  };
  for (const Shape& shape : kPointwiseShapes) add(shape, uniform(-4, 4), uniform(0, 1), "");
  add({19, 23}, uniform(-200, 200), integers(0, 1), "sure of itself");
  add({19, 23}, listed({1e36, -1e36, 0.0, -0.0, 1e-30}), listed({1.0, 0.0, 0.5, 1.0, 0.0, 0.0}),
      "far beyond exp's range");
  add({19, 23}, listed({1.0, kNan, -1.0}), constant(0), "NaN");
  return cases;
}

InputSpec typical_target() {
  return f32({kTypicalRows, kTypicalClasses}, constant(1.0 / static_cast<double>(kTypicalClasses)));
}

// --- BCE_LOGITS_LOSS_BACKWARD ---

// dloss / D for each element of x[N,...], D elements a row.
ValueId share_of(Composition& c, ValueId dloss, ValueId x) {
  return c.div(c.by_row(dloss, x), c.constant(c.row_size(x)));
}

std::vector<ValueId> bce_backward_parts(Composition& c) {
  const ValueId x = c.in(1);
  return {c.mul(share_of(c, c.in(0), x), c.sub(c.op(GPUNN_OP_SIGMOID, {x}), c.in(2)))};
}

double bce_slope(double x, double target, double /*delta*/) { return 1 / (1 + std::exp(-x)) - target; }

std::vector<double> bce_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dloss = e.inputs.at(0).values;
  const std::vector<double>& x = e.inputs.at(1).values;
  const std::vector<double>& target = e.inputs.at(2).values;
  const std::size_t size = at(row_size(e.inputs.at(1).type.shape));
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const double terms = kFunctionError / (1 + std::exp(-x[i])) + 5 * std::abs(target[i]);
    scale[i] = std::abs(dloss[i / size]) / static_cast<double>(size) * terms;
  }
  return scale;
}

std::vector<CaseSpec> bce_backward_cases() { return backward_cases(bce_cases()); }

// --- HUBER_LOSS ---

std::vector<ValueId> huber_parts(Composition& c) {
  const float delta = c.attrs<gpunn_huber_attrs>().delta;
  const ValueId difference = c.sub(c.in(0), c.in(1)), distance = magnitude_of(c, difference), limit = c.constant(delta);
  const ValueId square = c.scaled(c.mul(difference, difference), 0.5);
  const ValueId straight = c.scaled(c.sub(distance, c.constant(delta / 2)), delta);
  return {c.row_mean(c.select(c.less_equal(distance, limit), square, straight))};
}

double huber(double x, double target, double delta) {
  const double d = x - target;
  return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
}

Attributes huber_attrs(float delta) { return Attributes::of(gpunn_huber_attrs{.struct_size = 0, .delta = delta}); }

std::vector<CaseSpec> huber_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](float delta, const Shape& shape, const Generator& x, const Generator& target,
                            const std::string& note) {
    cases.push_back({.attrs = huber_attrs(delta), .inputs = {f32(shape, x), f32(shape, target)}, .note = note});
  };
  for (const Shape& shape : kPointwiseShapes) add(0.75F, shape, uniform(-2, 2), uniform(-1, 1), "");
  add(1, {19, 23}, listed({1.0, -1.0, 2.0, -2.0, 0.0}), constant(0), "at delta");
  add(1e-3F, {19, 23}, uniform(-900, 900), uniform(), "all far away");
  add(1e3F, {19, 23}, uniform(), uniform(), "all near");
  add(1, {19, 23}, listed({1.0, kNan, -1.0}), uniform(), "NaN");
  return cases;
}

CaseSpec huber_request(Written& r) {
  CaseSpec spec = loss_request(r);
  spec.attrs = huber_attrs(0.5F);
  return spec;
}

// Some distances are below this delta and some above, none near it.
std::vector<CaseSpec> differentiable_huber() { return differentiable_pairs(apart(0.02), constant(0), huber_attrs(30)); }

// --- HUBER_LOSS_BACKWARD ---

std::vector<ValueId> huber_backward_parts(Composition& c) {
  const float delta = c.attrs<gpunn_huber_attrs>().delta;
  const ValueId x = c.in(1), difference = c.sub(x, c.in(2));
  const ValueId slope = c.minimum(c.maximum(difference, c.constant(-delta)), c.constant(delta));
  return {c.mul(share_of(c, c.in(0), x), slope)};
}

double huber_slope(double x, double target, double delta) { return std::clamp(x - target, -delta, delta); }

std::vector<CaseSpec> huber_backward_cases() { return backward_cases(huber_cases()); }

CaseSpec huber_backward_request(Written& r) { return std::move(backward_cases({huber_request(r)}).front()); }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_MSE_LOSS,
       .gradient = pointwise_gradient<GPUNN_OP_MSE_LOSS_BACKWARD>,
       .decompose = mse_parts,
       .flops = flops_per_input<3>,
       .reference = mse_loss_reference,
       .tolerance = {{squares_scale, "a sum of squares and a quotient"}},
       .cases = mse_cases,
       .differentiable = [] { return differentiable_pairs(uniform(), uniform()); },
       .typical = {.inputs = repeated(2, typical_logits())},
       .request = loss_request},
      {.id = GPUNN_OP_MSE_LOSS_BACKWARD,
       .decompose = mse_backward_parts,
       .flops = flops_per_input<3, 1>,
       .reference = mse_loss_backward_reference,
       .tolerance = {{few_roundings_scale, "a difference, two products and a quotient"}},
       .cases = mse_backward_cases,
       .typical = {.inputs = {typical_losses(), typical_logits(), typical_logits()}},
       .request = loss_backward_request},
      {.id = GPUNN_OP_BCE_LOGITS_LOSS,
       .gradient = pointwise_gradient<GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD>,
       .decompose = bce_parts,
       .flops = flops_per_input<6>,
       .reference = forward<bce>,
       .tolerance = {{bce_scale, "a sum of terms of a product, an exp and a logarithm, and a quotient"}},
       .cases = bce_cases,
       .differentiable = [] { return differentiable_pairs(uniform(-3, 3), uniform(0, 1)); },
       .typical = {.inputs = {typical_logits(), typical_target()}},
       .request = loss_request},
      {.id = GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD,
       .decompose = bce_backward_parts,
       .flops = flops_per_input<6, 1>,
       .reference = backward<bce_slope>,
       .tolerance = {{bce_backward_scale, "an exp, a quotient, a difference, two products"}},
       .cases = bce_backward_cases,
       .typical = {.inputs = {typical_losses(), typical_logits(), typical_target()}},
       .request = loss_backward_request},
      {.id = GPUNN_OP_HUBER_LOSS,
       .gradient = pointwise_gradient<GPUNN_OP_HUBER_LOSS_BACKWARD>,
       .decompose = huber_parts,
       .flops = flops_per_input<4>,
       .reference = forward<huber>,
       .tolerance = {{squares_scale, "a sum of squares or distances, and a quotient"}},
       .cases = huber_cases,
       .differentiable = differentiable_huber,
       .typical = {.attrs = huber_attrs(1), .inputs = {typical_logits(), typical_target()}},
       .request = huber_request},
      {.id = GPUNN_OP_HUBER_LOSS_BACKWARD,
       .decompose = huber_backward_parts,
       .flops = flops_per_input<4, 1>,
       .reference = backward<huber_slope>,
       .tolerance = {{few_roundings_scale, "a difference, a product and a quotient"}},
       .cases = huber_backward_cases,
       .typical = {.attrs = huber_attrs(1), .inputs = {typical_losses(), typical_logits(), typical_target()}},
       .request = huber_backward_request},
  };
}

}  // namespace gpunn::ops::pointwise_loss
