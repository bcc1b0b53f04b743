// HINGE_LOSS and its backward.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::hinge_loss {

namespace {

// --- HINGE_LOSS ---

void hinge_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_HINGE_LOSS_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0), c.input(1)}));
}

// By how much class c of row n comes too near its label's score; below 0 where it does not.
double shortfall(const ReferenceCall& call, const Values& x, int64_t row, int64_t label, int64_t c) {
  return static_cast<double>(call.attrs<gpunn_hinge_attrs>().margin) - x[at(row + label)] + x[at(row + c)];
}

void hinge_loss_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_hinge_attrs>();
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call.in(1), n, classes);
    double sum = label == kNoLabel ? kNan : 0;
    for (int64_t c = 0; label != kNoLabel && c < classes; ++c) {
      const double short_by = shortfall(call, call.in(0), n * classes, label, c);
      if (c != label && !(short_by <= 0)) sum += attrs.power == 2 ? short_by * short_by : short_by;
    }
    call.out()[at(n)] = sum / static_cast<double>(classes);
  }
}

// A hinge's x[N,C] and labels as an op has them, with its margin.
struct Hinge {
  Hinge(const Evaluation& e, std::size_t x_input)
      : x(e.inputs.at(x_input).values),
        label(e.inputs.at(x_input + 1).values),
        attrs(e.signature.attrs.as<gpunn_hinge_attrs>()),
        classes(static_cast<std::size_t>(e.inputs.at(x_input).type.shape.at(1))) {}

  // Of a row without one, whose outputs are exact, that of the first class.
  std::size_t label_at(std::size_t n) const {
    const int64_t own = label_of(label, static_cast<int64_t>(n), static_cast<int64_t>(classes));
    return n * classes + at(std::max<int64_t>(own, 0));
  }
  double shortfall(std::size_t n, std::size_t c) const {
    return std::max(0.0, static_cast<double>(attrs.margin) - x[label_at(n)] + x[n * classes + c]);
  }
  // What cancels in a shortfall: its error is of this, whether the class counts or only nearly does.
  double magnitude(std::size_t n, std::size_t c) const {
    return std::abs(static_cast<double>(attrs.margin)) + std::abs(x[label_at(n)]) + std::abs(x[n * classes + c]);
  }

  const std::vector<double>& x;
  const std::vector<double>& label;
  gpunn_hinge_attrs attrs;
  std::size_t classes;
};

std::vector<double> hinge_scale(const Evaluation& e, std::size_t output) {
  const Hinge h(e, 0);
  const double sum_error = accumulation(static_cast<double>(h.classes));
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t n = 0; n < scale.size(); ++n) {
    double sum = 0;
    for (std::size_t c = 0; c < h.classes; ++c) {
      const double short_by = h.shortfall(n, c), error = 3 * h.magnitude(n, c);
      // (s + e)^2 = s^2 + 2 s e and e^2, which is of the second order.
      sum += h.attrs.power == 2 ? short_by * short_by * sum_error + 2 * short_by * error + 1e-6 * error * error
                                : short_by * sum_error + error;
    }
    scale[n] = sum / static_cast<double>(h.classes);
  }
  return scale;
}

Attributes hinge_attrs(float margin, int32_t power) {
  return Attributes::of(gpunn_hinge_attrs{.struct_size = 0, .margin = margin, .power = power});
}

const std::vector<Shape> kHingeShapes = {{1, 1},    {1, 2},    {3, 10},   {128, 10}, {64, 1},
                                         {33, 129}, {7, 1000}, {1031, 3}, {0, 10}};

// Sums and differences of these are exact, and some are exactly the margin: which classes count does not hang on a
// rounding.
Generator eighths() {
  return [](Random& random, int64_t) { return static_cast<double>(random.below(65) - 32) / 8; };
}

std::vector<CaseSpec> hinge_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](const Shape& shape, float margin, int32_t power, const Generator& x,
                            const std::string& note = {}) {
    cases.push_back({.attrs = hinge_attrs(margin, power),
                     .inputs = {f32(shape, x), i32({shape[0]}, integers(0, shape[1] - 1))},
                     .note = note});
  };
  for (const Shape& shape : kHingeShapes) {
    add(shape, 1, 1, eighths());
    add(shape, 0.5F, 2, eighths());
  }
  for (const int32_t power : {1, 2}) {
    add({19, 23}, 1, power, constant(-2), "all equal");
    add({19, 23}, 0, power, eighths(), "no margin");
    add({19, 23}, 1, power, integers(-9000, 9000), "far apart");
    add({19, 23}, 1, power, sometimes(kNan, 50, eighths()), "NaN");
  }
  return cases;
}

CaseSpec hinge_request(Written& r) {
  if (r.sizes.size() != 2 || r.sizes[1] < 1) bad(r, "N,C");
  return {.attrs = hinge_attrs(1, 2),
          .inputs = {f32(r.sizes, uniform(-4, 0)), i32({r.sizes[0]}, integers(0, r.sizes[1] - 1))}};
}

// No two scores are a margin apart, where the hinge has its kink.
std::vector<CaseSpec> differentiable_hinge() {
  const std::vector<InputSpec> inputs{f32({5, 7}, apart(0.02)), i32({5}, integers(0, 6))};
  return {{.attrs = hinge_attrs(20.01F, 1), .inputs = inputs}, {.attrs = hinge_attrs(20.01F, 2), .inputs = inputs}};
}

// --- HINGE_LOSS_BACKWARD ---

void hinge_loss_backward_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_hinge_attrs>();
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t label = label_of(call.in(2), n, classes);
    if (label == kNoLabel) {
      for (int64_t c = 0; c < classes; ++c) call.out()[at(n * classes + c)] = 0;
      continue;
    }
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (c == label) continue;
      const double short_by = shortfall(call, call.in(1), n * classes, label, c);
      double slope = 0;  // where the class keeps its distance, whatever dloss is
      if (!(short_by <= 0)) {
        slope = call.in(0)[at(n)] * (attrs.power == 2 ? 2 * short_by : 1) / static_cast<double>(classes);
      }
      call.out()[at(n * classes + c)] = slope;
      sum += slope;
    }
    call.out()[at(n * classes + label)] = -sum;
  }
}

std::vector<double> hinge_backward_scale(const Evaluation& e, std::size_t output) {
  const Hinge h(e, 1);
  const double sum_error = accumulation(static_cast<double>(h.classes));
  const std::vector<double>& y = e.reference.at(output).values;
  std::vector<double> scale(y.size());
  for (std::size_t n = 0; n < h.label.size(); ++n) {
    const double share = 2 * std::abs(e.inputs.at(0).values[n]) / static_cast<double>(h.classes);
    double sum = 0;  // of the errors of shortfalls; with power 1 slopes have none
    for (std::size_t c = 0; c < h.classes; ++c) {
      const double error = h.attrs.power == 2 ? 3 * share * h.magnitude(n, c) : 0;
      scale[n * h.classes + c] = error + 5 * std::abs(y[n * h.classes + c]);
      sum += error;
    }
    scale[h.label_at(n)] = sum + (5 + sum_error) * std::abs(y[h.label_at(n)]);
  }
  return scale;
}

std::vector<CaseSpec> hinge_backward_cases() {
  std::vector<CaseSpec> cases = hinge_cases();
  for (CaseSpec& spec : cases) spec.inputs.insert(spec.inputs.begin(), f32({spec.inputs[0].type.shape[0]}));
  return cases;
}

CaseSpec hinge_backward_request(Written& r) {
  CaseSpec spec = hinge_request(r);
  spec.inputs.insert(spec.inputs.begin(), f32({r.sizes[0]}));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_HINGE_LOSS,
       .gradient = hinge_gradient,
       .flops = flops_per_input<3>,
       .reference = hinge_loss_reference,
       .tolerance = {{hinge_scale, "differences from the label's score, and their sum in any order"}},
       .cases = hinge_cases,
       .differentiable = differentiable_hinge,
       .typical = {.attrs = hinge_attrs(1, 2), .inputs = {typical_logits(), typical_labels()}},
       .request = hinge_request},
      {.id = GPUNN_OP_HINGE_LOSS_BACKWARD,
       .flops = flops_per_input<3, 1>,
       .reference = hinge_loss_backward_reference,
       .tolerance = {{hinge_backward_scale, "differences, and for the label their sum"}},
       .cases = hinge_backward_cases,
       .typical = {.attrs = hinge_attrs(1, 2), .inputs = {typical_losses(), typical_logits(), typical_labels()}},
       .request = hinge_backward_request},
  };
}

}  // namespace gpunn::ops::hinge_loss
