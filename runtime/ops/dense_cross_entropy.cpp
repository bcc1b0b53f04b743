// CROSS_ENTROPY and its backward.
#include <algorithm>
#include <cmath>

#include "ops/class_scores.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::dense_cross_entropy {

namespace {

using Attrs = gpunn_cross_entropy_attrs;

Attributes attributes(int32_t ignore_index, float label_smoothing) {
  return Attributes::of(Attrs{.struct_size = 0, .ignore_index = ignore_index, .label_smoothing = label_smoothing});
}

// What a position learns: its label and the weights of the classes.
class Targets {
 public:
  // `weight` is null if there is none.
  Targets(const Attrs& attrs, int64_t classes, const Values& labels, const Values* weight)
      : attrs_(attrs), classes_(classes), labels_(labels), weight_(weight) {}

  bool ignored(int64_t i) const { return labels_[at(i)] == static_cast<double>(attrs_.ignore_index); }
  // kNoLabel where the label is outside [0, C), or ignored.
  int64_t label(int64_t i) const { return ignored(i) ? kNoLabel : label_of(labels_, i, classes_); }
  double weight(int64_t c) const { return weight_ == nullptr ? 1 : (*weight_)[at(c)]; }
  double smoothing() const { return static_cast<double>(attrs_.label_smoothing); }

 private:
  Attrs attrs_;
  int64_t classes_;
  const Values& labels_;
  const Values* weight_;
};

Targets targets_of(const ReferenceCall& call, const ClassScores& x, std::size_t label, std::size_t weight) {
  return {call.attrs<Attrs>(), x.classes, call.in(label), call.inputs() > weight ? &call.in(weight) : nullptr};
}

Targets targets_of(const Evaluation& e, const ClassScores& x, std::size_t label, std::size_t weight) {
  const Values* of_classes = e.inputs.size() > weight ? &e.inputs[weight].values : nullptr;
  return {e.signature.attrs.as<Attrs>(), x.classes, e.inputs.at(label).values, of_classes};
}

// --- CROSS_ENTROPY ---

void gradient(GradientContext& c) {
  const std::size_t inputs = c.node().inputs.size();
  if (inputs > 2 && c.wants(2)) throw Error("'" + c.node().name + "': CROSS_ENTROPY has no gradient for its weight");
  std::vector<ValueId> of{c.output_gradient(), c.input(0), c.input(1), c.output(2)};
  if (inputs > 2) of.push_back(c.input(2));
  c.set(0, c.add(GPUNN_OP_CROSS_ENTROPY_BACKWARD, c.node().attrs, std::move(of)));
}

double log_sum_of_exponentials(const Values& x, const ClassScores& shape, int64_t i) {
  double largest = x[shape.place(i, 0)], sum = 0;
  for (int64_t c = 1; c < shape.classes; ++c) largest = std::max(largest, x[shape.place(i, c)]);
  for (int64_t c = 0; c < shape.classes; ++c) sum += std::exp(x[shape.place(i, c)] - largest);
  return largest + std::log(sum);
}

void cross_entropy_reference(ReferenceCall& call) {
  const ClassScores shape(call.in_type(0).shape);
  const Targets targets = targets_of(call, shape, 1, 2);
  const Values& x = call.in(0);
  const double s = targets.smoothing();
  for (int64_t i = 0; i < shape.rows * shape.positions; ++i) {
    const double lse = log_sum_of_exponentials(x, shape, i);
    const int64_t label = targets.label(i);
    call.out(2)[at(i)] = lse;
    call.out(1)[at(i)] = label == kNoLabel ? 0 : targets.weight(label);
    if (label == kNoLabel) {
      call.out(0)[at(i)] = targets.ignored(i) ? 0 : kNan;
      continue;
    }
    double loss = (1 - s) * targets.weight(label) * (lse - x[shape.place(i, label)]);
    double all = 0;
    for (int64_t c = 0; c < shape.classes; ++c) all += targets.weight(c) * (lse - x[shape.place(i, c)]);
    if (s > 0) loss += s / static_cast<double>(shape.classes) * all;
    call.out(0)[at(i)] = loss;
  }
}

// The error of log(sum): those of the logarithm and the sum, and the roundings of the exponents x - max. The sum of
// p (max - x) is at most log(C).
double log_sum_error(const ClassScores& shape) {
  const auto classes = static_cast<double>(shape.classes);
  return kFunctionError + accumulation(classes) + std::log(classes);
}

// A sum of factor * (log(sum) - (x - max)) over the classes. No term is below 0.
std::vector<double> loss_scale(const Evaluation& e, std::size_t output) {
  const ClassScores shape(e.inputs.at(0).type.shape);
  const Targets targets = targets_of(e, shape, 1, 2);
  const Values &x = e.inputs.at(0).values, &lse = e.reference.at(2).values;
  const double s = targets.smoothing(), share = s / static_cast<double>(shape.classes);
  const double of_sum = s > 0 ? accumulation(static_cast<double>(shape.classes)) : 4;
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (int64_t i = 0; i < shape.rows * shape.positions; ++i) {
    const int64_t label = targets.label(i);
    if (label == kNoLabel) continue;
    double largest = -kInf;
    for (int64_t c = 0; c < shape.classes; ++c) largest = std::max(largest, x[shape.place(i, c)]);
    for (int64_t c = 0; c < shape.classes; ++c) {
      const double factor = std::abs((c == label ? (1 - s) * targets.weight(c) : 0) + share * targets.weight(c));
      if (factor == 0) continue;
      const double term = lse[at(i)] - x[shape.place(i, c)], distance = largest - x[shape.place(i, c)];
      scale[at(i)] += factor * (log_sum_error(shape) + 2 * distance + (2 + of_sum) * std::abs(term));
    }
  }
  return scale;
}

// max + log(sum)
std::vector<double> lse_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> scale = magnitudes(e.reference.at(output).values, 2);
  for (double& one : scale) one += log_sum_error(ClassScores(e.inputs.at(0).type.shape));
  return scale;
}

InputSpec class_weights(int64_t classes) { return f32({classes}, uniform(0.25, 2)); }

CaseSpec spec_of(const Shape& x, const Attributes& attrs, const Generator& values, const std::string& note = {}) {
  return {.attrs = attrs, .inputs = {f32(x, values), score_labels(x, attrs.as<Attrs>().ignore_index)}, .note = note};
}

CaseSpec weighted(CaseSpec spec) {
  spec.inputs.push_back(class_weights(spec.inputs[0].type.shape.at(1)));
  return spec;
}

std::vector<CaseSpec> cross_entropy_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : kScoreShapes) {
    cases.push_back(spec_of(x, attributes(255, 0), uniform(-4, 4)));
    cases.push_back(weighted(spec_of(x, attributes(-100, 0.1F), uniform(-4, 4))));
  }
  const Shape map{2, 21, 17, 19}, rows{19, 23};
  cases.push_back(weighted(spec_of(map, attributes(255, 0), uniform(-4, 4))));
  cases.push_back(spec_of(map, attributes(255, 0.25F), uniform(-4, 4)));
  cases.push_back(weighted(spec_of(map, attributes(255, 1), uniform(-4, 4))));
  cases.push_back(weighted(spec_of({13, 1000}, attributes(-100, 0.1F), uniform(-4, 4))));
  cases.push_back(spec_of(map, attributes(3, 0), uniform(-4, 4), "a class is ignored"));
  // Enough positions that a thread of a kernel may compute several of them.
  for (const float smoothing : {0.0F, 0.1F}) {
    cases.push_back(weighted(spec_of({2, 3, 256, 256}, attributes(255, smoothing), uniform(-4, 4))));
  }
  for (const Shape& x : {map, rows}) {
    CaseSpec ignored = spec_of(x, attributes(255, 0.1F), uniform(-4, 4), "all ignored");
    ignored.inputs[1].value = constant(255);
    cases.push_back(ignored);
    for (const float smoothing : {0.0F, 0.1F}) {
      const Attributes attrs = attributes(255, smoothing);
      cases.push_back(spec_of(x, attrs, uniform(-80, 80), "far apart"));
      cases.push_back(spec_of(x, attrs, uniform(9000, 9010), "large"));
      cases.push_back(spec_of(x, attrs, constant(-2), "all equal"));
      cases.push_back(spec_of(x, attrs, sometimes(-kInf, 4, uniform(-4, 4)), "minus infinity"));
      cases.push_back(spec_of(x, attrs, constant(-kInf), "nothing but minus infinity, so that lse is NaN"));
      cases.push_back(spec_of(x, attrs, sometimes(kInf, 30, uniform(-4, 4)), "infinity, so that lse is NaN"));
      cases.push_back(spec_of(x, attrs, sometimes(kNan, 30, uniform(-4, 4)), "NaN"));
    }
  }
  return cases;
}

std::vector<CaseSpec> differentiable() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : {Shape{4, 7}, Shape{3, 21}, Shape{2, 3, 2, 4}}) {
    cases.push_back(spec_of(x, attributes(-1, 0), uniform(-3, 3)));
    cases.push_back(weighted(spec_of(x, attributes(-1, 0), uniform(-3, 3))));
    cases.push_back(weighted(spec_of(x, attributes(-1, 0.2F), uniform(-3, 3))));
  }
  return cases;
}

CaseSpec cross_entropy_request(Written& r) {
  require_scores(r);
  return spec_of(r.sizes, attributes(255, 0), uniform(-4, 4));
}

// --- CROSS_ENTROPY_BACKWARD ---

void cross_entropy_backward_reference(ReferenceCall& call) {
  const ClassScores shape(call.in_type(1).shape);
  const Targets targets = targets_of(call, shape, 2, 4);
  const Values &dloss = call.in(0), &x = call.in(1), &lse = call.in(3);
  const double s = targets.smoothing();
  double weights = 0;
  for (int64_t c = 0; c < shape.classes; ++c) weights += targets.weight(c);
  for (int64_t i = 0; i < shape.rows * shape.positions; ++i) {
    const int64_t label = targets.label(i);
    for (int64_t c = 0; c < shape.classes; ++c) {
      double& dx = call.out()[shape.place(i, c)];
      dx = 0;
      if (label == kNoLabel) continue;
      const double p = std::exp(x[shape.place(i, c)] - lse[at(i)]), one_hot = c == label ? 1 : 0;
      double slope = (1 - s) * targets.weight(label) * (p - one_hot);
      if (s > 0) slope += s / static_cast<double>(shape.classes) * (p * weights - targets.weight(c));
      dx = dloss[at(i)] * slope;
    }
  }
}

// p is off by the error of exp, and by the roundings of its exponent and of what exp makes of it. The sum of the
// weights has C terms.
std::vector<double> backward_scale(const Evaluation& e, std::size_t output) {
  const ClassScores shape(e.inputs.at(1).type.shape);
  const Targets targets = targets_of(e, shape, 2, 4);
  const Values &dloss = e.inputs.at(0).values, &x = e.inputs.at(1).values, &lse = e.inputs.at(3).values;
  const auto classes = static_cast<double>(shape.classes);
  const double s = targets.smoothing();
  double weights = 0;
  for (int64_t c = 0; c < shape.classes; ++c) weights += std::abs(targets.weight(c));
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (int64_t i = 0; i < shape.rows * shape.positions; ++i) {
    const int64_t label = targets.label(i);
    if (label == kNoLabel) continue;
    for (int64_t c = 0; c < shape.classes; ++c) {
      const double exponent = x[shape.place(i, c)] - lse[at(i)], p = std::exp(exponent), one_hot = c == label ? 1 : 0;
      const double of_p = p > 0 ? p * (kFunctionError + 2 * std::abs(exponent)) : 0;
      double of_slope = (1 - s) * std::abs(targets.weight(label)) * (of_p + kFunctionError * one_hot);
      if (s > 0) {
        of_slope += s / classes * ((of_p + p * accumulation(classes)) * weights + 4 * std::abs(targets.weight(c)));
      }
      scale[shape.place(i, c)] = std::abs(dloss[at(i)]) * of_slope;
    }
  }
  return scale;
}

// The first input is dloss, and after the labels comes lse as the forward op gives it.
CaseSpec backward_of(const CaseSpec& forward_spec) {
  CaseSpec spec = forward_spec;
  const Shape positions = spec.inputs[1].type.shape;
  spec.inputs.insert(spec.inputs.begin() + 2, f32(positions));
  spec.inputs.insert(spec.inputs.begin(), f32(positions));
  spec.derive = [attrs = spec.attrs](std::vector<ReferenceTensor>& in) {
    std::vector<ReferenceTensor> of_forward{in[1], in[2]};
    if (in.size() > 4) of_forward.push_back(in[4]);
    in[3] = forward(GPUNN_OP_CROSS_ENTROPY, attrs, of_forward, 2);
  };
  return spec;
}

std::vector<CaseSpec> backward_cases() {
  std::vector<CaseSpec> cases;
  for (const CaseSpec& spec : cross_entropy_cases()) cases.push_back(backward_of(spec));
  return cases;
}

CaseSpec backward_request(Written& r) {
  CaseSpec spec = backward_of(cross_entropy_request(r));
  spec.inputs[3].value = constant(std::log(static_cast<double>(r.sizes[1])));
  spec.derive = {};
  return spec;
}

CaseSpec typical() { return spec_of(typical_scores(), attributes(255, 0), uniform(-4, 4)); }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_CROSS_ENTROPY,
       .gradient = gradient,
       .flops = flops_per_input<5>,
       .reference = cross_entropy_reference,
       .tolerance = {{loss_scale, "as LOG_SOFTMAX, then a product, or with smoothing a sum of C products"},
                     {exact_scale, "a weight"},
                     {lse_scale, "the exponents x - max, a sum of C exponentials, its logarithm and a sum with max"}},
       .cases = cross_entropy_cases,
       .differentiable = differentiable,
       .typical = typical(),
       .request = cross_entropy_request},
      {.id = GPUNN_OP_CROSS_ENTROPY_BACKWARD,
       .flops = flops_per_input<6, 1>,
       .reference = cross_entropy_backward_reference,
       .tolerance = {{backward_scale, "an exp of a difference, and products; with smoothing a sum of C weights"}},
       .cases = backward_cases,
       .typical = backward_of(typical()),
       .request = backward_request},
  };
}

}  // namespace gpunn::ops::dense_cross_entropy
