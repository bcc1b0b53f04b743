// NLL_LOSS, SOFTMAX_CROSS_ENTROPY, SOFT_CROSS_ENTROPY and their backwards.
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::cross_entropy {

namespace {

// --- NLL_LOSS ---

Attributes classes(int64_t count) {
  return Attributes::of(gpunn_classes_attrs{.struct_size = 0, .classes = static_cast<int32_t>(count)});
}

void nll_gradient(GradientContext& c) {
  const int64_t count = c.input_shape(0)[1];
  c.set(0, c.add(GPUNN_OP_NLL_LOSS_BACKWARD, classes(count), {c.output_gradient(), c.input(1)}));
}

// What a row has for its label; NaN where that names no class.
double labelled(const Values& x, const Values& labels, int64_t n, int64_t classes) {
  const int64_t label = label_of(labels, n, classes);
  return label == kNoLabel ? kNan : x[at(n * classes + label)];
}

void nll_loss_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) {
    call.out()[at(n)] = -labelled(call.in(0), call.in(1), n, classes);
  }
}

struct Logits {
  Shape shape;
  Generator x;
  std::string note;
};

const std::vector<Shape> kLossShapes = {{1, 1},    {1, 2},    {3, 10},   {128, 10}, {64, 1},
                                        {33, 129}, {7, 1000}, {1031, 3}, {0, 10}};

std::vector<Logits> logits() {
  std::vector<Logits> result;
  for (const Shape& shape : kLossShapes) result.push_back({shape, uniform(-4, 4), ""});
  result.push_back({{19, 23}, uniform(-80, 80), "far apart"});
  result.push_back({{19, 23}, uniform(9000, 9010), "large"});
  result.push_back({{19, 23}, constant(-2), "all equal"});
  return result;
}

InputSpec labels(const Shape& logits) { return i32({logits[0]}, integers(0, logits[1] - 1)); }

std::vector<CaseSpec> cross_entropy_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [shape, x, note] : logits()) {
    cases.push_back({.inputs = {f32(shape, x), labels(shape)}, .note = note});
  }
  return cases;
}

void to_log_probabilities(ReferenceTensor& x) { x = forward(GPUNN_OP_LOG_SOFTMAX, {}, {x}); }

// Logits become log probabilities.
std::vector<CaseSpec> nll_cases() {
  std::vector<CaseSpec> cases = cross_entropy_cases();
  for (CaseSpec& spec : cases) spec.derive = [](std::vector<ReferenceTensor>& in) { to_log_probabilities(in[0]); };
  return cases;
}

void require_rows(const Written& r) {
  if (r.sizes.size() != 2 || r.sizes[1] < 1) bad(r, "N,C");
}

// Of rows and classes, with a label a row.
CaseSpec labelled_request(Written& r) {
  require_rows(r);
  return {.inputs = {f32(r.sizes, uniform(-4, 0)), labels(r.sizes)}};
}

const std::vector<Shape> kDifferentiableShapes = {{4, 7}, {1, 2}, {3, 21}};

std::vector<CaseSpec> differentiable_labelled() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kDifferentiableShapes) {
    cases.push_back({.inputs = {f32(shape, uniform(-3, 3)), labels(shape)}});
  }
  return cases;
}

// --- NLL_LOSS_BACKWARD ---

void nll_loss_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.attrs<gpunn_classes_attrs>().classes;
  call.require(call.out_type().shape == Shape{rows, classes}, "dlogp[N,C]");
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call.in(1), n, classes);
    for (int64_t c = 0; c < classes; ++c) call.out()[at(n * classes + c)] = c == label ? -call.in(0)[at(n)] : 0;
  }
}

std::vector<CaseSpec> nll_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [shape, x, note] : logits()) {
    cases.push_back({.attrs = classes(shape[1]), .inputs = {f32({shape[0]}), labels(shape)}, .note = note});
  }
  return cases;
}

CaseSpec nll_backward_request(Written& r) {
  require_rows(r);
  return {.attrs = classes(r.sizes[1]), .inputs = {f32({r.sizes[0]}), labels(r.sizes)}};
}

// --- SOFTMAX_CROSS_ENTROPY ---

void cross_entropy_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, {}, {c.output_gradient(), c.output(1), c.input(1)}));
}

std::vector<ValueId> cross_entropy_parts(Composition& c) {
  const ValueId logp = c.op(GPUNN_OP_LOG_SOFTMAX, {c.in(0)});
  return {c.op(GPUNN_OP_NLL_LOSS, {logp, c.in(1)}), logp};
}

double cross_entropy_flops(const OpSignature& s) { return 5.0 * static_cast<double>(s.outputs.back().elements()); }

void softmax_cross_entropy_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  Values& loss = call.out(0);
  Values& logp = call.out(1);
  for (int64_t n = 0; n < rows; ++n) {
    log_softmax_row(call.in(0), logp, n, classes);
    loss[at(n)] = -labelled(logp, call.in(1), n, classes);
  }
}

std::vector<double> cross_entropy_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> of_logp = log_softmax_scale(e, 1);
  if (output == 1) return of_logp;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale;
  for_each_row(type, [&](std::size_t row) {
    const int64_t label = label_of(e.inputs.at(1).values, static_cast<int64_t>(scale.size()), type.shape.at(1));
    scale.push_back(label == kNoLabel ? 0 : of_logp[row + at(label)]);
  });
  return scale;
}

// --- SOFTMAX_CROSS_ENTROPY_BACKWARD ---

std::vector<ValueId> cross_entropy_backward_parts(Composition& c) {
  const ValueId dlogp = c.op(GPUNN_OP_NLL_LOSS_BACKWARD, {c.in(0), c.in(2)}, classes(c.shape(c.in(1))[1]));
  return {c.op(GPUNN_OP_LOG_SOFTMAX_BACKWARD, {dlogp, c.in(1)})};
}

void softmax_cross_entropy_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  const Values& dloss = call.in(0);
  const Values& logp = call.in(1);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call.in(2), n, classes);
    for (int64_t c = 0; c < classes; ++c) {
      const double one_hot = c == label ? 1 : 0;
      const double slope = std::exp(logp[at(n * classes + c)]) - one_hot;
      call.out()[at(n * classes + c)] = label == kNoLabel ? 0 : dloss[at(n)] * slope;
    }
  }
}

// dx = dloss (exp(logp) - onehot).
std::vector<double> cross_entropy_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dloss = e.inputs.at(0).values;
  const std::vector<double>& logp = e.inputs.at(1).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  std::size_t n = 0;
  for_each_row(type, [&](std::size_t row) {
    const int64_t label = label_of(e.inputs.at(2).values, static_cast<int64_t>(n), type.shape.at(1));
    for (std::size_t i = row; i < row + columns(type); ++i) {
      const double one_hot = static_cast<int64_t>(i - row) == label ? 1 : 0;
      scale[i] = std::abs(dloss[n]) * kFunctionError * (std::exp(logp[i]) + one_hot);
    }
    ++n;
  });
  return scale;
}

std::vector<CaseSpec> cross_entropy_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [shape, x, note] : logits()) {
    cases.push_back({.inputs = {f32({shape[0]}), f32(shape, x), labels(shape)},
                     .note = note,
                     .derive = [](std::vector<ReferenceTensor>& in) { to_log_probabilities(in[1]); }});
  }
  return cases;
}

CaseSpec cross_entropy_backward_request(Written& r) {
  CaseSpec spec = labelled_request(r);
  spec.inputs.insert(spec.inputs.begin(), f32({r.sizes[0]}));
  return spec;
}

// --- SOFT_CROSS_ENTROPY ---

void soft_cross_entropy_gradient(GradientContext& c) {
  if (c.wants(1)) throw Error("'" + c.node().name + "': SOFT_CROSS_ENTROPY has no gradient for its target");
  c.set(0, c.add(GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, {}, {c.output_gradient(), c.output(1), c.input(1)}));
}

// Where a target is 0 nothing is added, whatever logp is.
std::vector<ValueId> soft_cross_entropy_parts(Composition& c) {
  const ValueId logp = c.op(GPUNN_OP_LOG_SOFTMAX, {c.in(0)}), target = c.in(1), nothing = c.constant(0);
  const ValueId terms = c.select(c.equal(target, nothing), nothing, c.mul(target, logp));
  return {c.scaled(c.row_sum(terms), -1), logp};
}

double soft_cross_entropy_flops(const OpSignature& s) { return 7.0 * static_cast<double>(s.outputs.back().elements()); }

void soft_cross_entropy_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  const Values& target = call.in(1);
  Values& logp = call.out(1);
  for (int64_t n = 0; n < rows; ++n) {
    log_softmax_row(call.in(0), logp, n, classes);
    double sum = 0;
    for (int64_t i = n * classes; i < (n + 1) * classes; ++i) {
      if (target[at(i)] != 0) sum += target[at(i)] * logp[at(i)];  // 0 * -inf would be NaN
    }
    call.out(0)[at(n)] = -sum;
  }
}

// loss = -(sum of target logp): each term is off by the error of its logp, and what the sum rounds.
std::vector<double> soft_cross_entropy_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> of_logp = log_softmax_scale(e, 1);
  if (output == 1) return of_logp;
  const std::vector<double>& target = e.inputs.at(1).values;
  const std::vector<double>& logp = e.reference.at(1).values;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale;
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) {
      if (target[i] == 0) continue;
      sum += std::abs(target[i]) * (of_logp[i] + std::abs(logp[i]) * accumulation(static_cast<double>(columns(type))));
    }
    scale.push_back(sum);
  });
  return scale;
}

// Targets are shares of a row; that they sum to 1 is not asked for.
std::vector<CaseSpec> soft_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](const Shape& shape, const Generator& x, const Generator& target, const std::string& note) {
    cases.push_back({.inputs = {f32(shape, x), f32(shape, target)}, .note = note});
  };
  for (const Shape& shape : kLossShapes) add(shape, uniform(-4, 4), uniform(0, 1), "");
  const Shape shape{19, 23};
  add(shape, uniform(-80, 80), sometimes(0, 2, uniform(0, 1)), "far apart");
  add(shape, uniform(9000, 9010), uniform(0, 1), "large");
  add(shape, constant(-2), uniform(0, 1), "all equal");
  add(shape, uniform(-4, 4), uniform(-3, 3), "targets below 0");
  add(shape, uniform(-4, 4), constant(0), "no target");
  // Every fourth class is impossible and not aimed at.
  add({5, 8}, listed({1.0, 2.0, -kInf, 0.5}), listed({0.25, 0.5, 0.0, 0.125}), "minus infinity");
  add({5, 8}, listed({1.0, 2.0, 0.5}), listed({0.0, kNan, 0.5}), "NaN targets");
  return cases;
}

InputSpec typical_target() {
  return f32({kTypicalRows, kTypicalClasses}, constant(1.0 / static_cast<double>(kTypicalClasses)));
}

// Against a target of the same shape.
CaseSpec targeted_request(Written& r) {
  if (r.sizes.empty()) bad(r, "N and further dimensions");
  return {.inputs = {f32(r.sizes), f32(r.sizes, uniform(0, 1))}};
}

std::vector<CaseSpec> differentiable_soft() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kDifferentiableShapes) {
    cases.push_back({.inputs = {f32(shape, uniform(-3, 3)), f32(shape, uniform(0, 1))}});
  }
  return cases;
}

// --- SOFT_CROSS_ENTROPY_BACKWARD ---

std::vector<ValueId> soft_cross_entropy_backward_parts(Composition& c) {
  const ValueId dloss = c.in(0), logp = c.in(1), target = c.in(2);
  const ValueId expected = c.mul(c.exp(logp), c.sum(target, c.last(target)));
  return {c.mul(c.by_row(dloss, logp), c.sub(expected, target))};
}

void soft_cross_entropy_backward_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  const Values& dloss = call.in(0);
  const Values& logp = call.in(1);
  const Values& target = call.in(2);
  for (int64_t n = 0; n < rows; ++n) {
    double sum = 0;
    for (int64_t i = n * classes; i < (n + 1) * classes; ++i) sum += target[at(i)];
    for (int64_t i = n * classes; i < (n + 1) * classes; ++i) {
      call.out()[at(i)] = dloss[at(n)] * (std::exp(logp[at(i)]) * sum - target[at(i)]);
    }
  }
}

// dx = dloss (exp(logp) (sum of target) - target).
std::vector<double> soft_cross_entropy_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dloss = e.inputs.at(0).values;
  const std::vector<double>& logp = e.inputs.at(1).values;
  const std::vector<double>& target = e.inputs.at(2).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  std::size_t n = 0;
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) sum += std::abs(target[i]);
    for (std::size_t i = row; i < row + columns(type); ++i) {
      scale[i] = std::abs(dloss[n]) *
                 (std::exp(logp[i]) * sum * (kFunctionError + accumulation(static_cast<double>(columns(type)))) +
                  4 * std::abs(target[i]));
    }
    ++n;
  });
  return scale;
}

std::vector<CaseSpec> soft_backward_cases() {
  std::vector<CaseSpec> cases = soft_cases();
  for (CaseSpec& spec : cases) {
    spec.inputs.insert(spec.inputs.begin(), f32({spec.inputs[0].type.shape[0]}));
    spec.derive = [](std::vector<ReferenceTensor>& in) { to_log_probabilities(in[1]); };
  }
  return cases;
}

CaseSpec soft_backward_request(Written& r) {
  CaseSpec spec = targeted_request(r);
  return {.inputs = {f32({r.sizes[0]}), f32(r.sizes, uniform(-4, 0)), spec.inputs[1]}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_NLL_LOSS,
       .gradient = nll_gradient,
       .reference = nll_loss_reference,
       .tolerance = {{exact_scale, "a change of sign"}},
       .cases = nll_cases,
       .differentiable = differentiable_labelled,
       .typical = {.inputs = {typical_logits(), typical_labels()}},
       .request = labelled_request},
      {.id = GPUNN_OP_NLL_LOSS_BACKWARD,
       .reference = nll_loss_backward_reference,
       .tolerance = {{exact_scale, "a change of sign"}},
       .cases = nll_backward_cases,
       .typical = {.attrs = classes(kTypicalClasses), .inputs = {typical_losses(), typical_labels()}},
       .request = nll_backward_request},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY,
       .gradient = cross_entropy_gradient,
       .decompose = cross_entropy_parts,
       .composite = true,
       .flops = cross_entropy_flops,
       .reference = softmax_cross_entropy_reference,
       .tolerance = {{cross_entropy_scale, "as LOG_SOFTMAX"}},
       .cases = cross_entropy_cases,
       .differentiable = differentiable_labelled,
       .typical = {.inputs = {typical_logits(), typical_labels()}},
       .request = labelled_request},
      {.id = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
       .decompose = cross_entropy_backward_parts,
       .composite = true,
       .flops = cross_entropy_flops,
       .reference = softmax_cross_entropy_backward_reference,
       .tolerance = {{cross_entropy_backward_scale, "an exp, a difference, a product"}},
       .cases = cross_entropy_backward_cases,
       .typical = {.inputs = {typical_losses(), typical_logits(), typical_labels()}},
       .request = cross_entropy_backward_request},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY,
       .gradient = soft_cross_entropy_gradient,
       .decompose = soft_cross_entropy_parts,
       .flops = soft_cross_entropy_flops,
       .reference = soft_cross_entropy_reference,
       .tolerance = {{soft_cross_entropy_scale, "as LOG_SOFTMAX, then a sum of C products"}},
       .cases = soft_cases,
       .differentiable = differentiable_soft,
       .typical = {.inputs = {typical_logits(), typical_target()}},
       .request = targeted_request},
      {.id = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD,
       .decompose = soft_cross_entropy_backward_parts,
       .flops = soft_cross_entropy_flops,
       .reference = soft_cross_entropy_backward_reference,
       .tolerance = {{soft_cross_entropy_backward_scale, "a sum of C terms, an exp, a product and a difference"}},
       .cases = soft_backward_cases,
       .typical = {.inputs = {typical_losses(), typical_logits(), typical_target()}},
       .request = soft_backward_request},
  };
}

}  // namespace gpunn::ops::cross_entropy
