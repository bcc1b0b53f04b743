// FOCAL_LOSS and its backward.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::focal_loss {

namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// The term of a class, and its slope: L = share * q^gamma * softplus(z) with q = sigmoid(z), where z is x, or -x of the
// label's class, and softplus(z) = -log(1 - q).
struct Term {
  double share, z, gamma;
  double loss() const { return share * std::pow(sigmoid_of(z), gamma) * softplus_of(z); }
  double slope() const {
    const double q = sigmoid_of(z);
    return share * std::pow(q, gamma) * (gamma * sigmoid_of(-z) * softplus_of(z) + q);
  }
};

Term term_of(const gpunn_focal_attrs& attrs, double x, bool own) {
  const auto alpha = static_cast<double>(attrs.alpha);
  return {own ? alpha : 1 - alpha, own ? -x : x, static_cast<double>(attrs.gamma)};
}

bool counts(double label, int64_t classes) { return label >= -1 && label < static_cast<double>(classes); }

void focal_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_FOCAL_LOSS_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0), c.input(1)}));
}

void focal_loss_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_focal_attrs>();
  const int64_t rows = call.in_dim(0, 0), classes = call.in_dim(0, 1);
  for (int64_t row = 0; row < rows; ++row) {
    const double label = call.in(1)[at(row)];
    double sum = 0;
    for (int64_t c = 0; c < classes && counts(label, classes); ++c) {
      sum += term_of(attrs, call.in(0)[at(row * classes + c)], static_cast<double>(c) == label).loss();
    }
    call.out()[at(row)] = sum;
  }
}

void focal_loss_backward_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_focal_attrs>();
  const int64_t rows = call.in_dim(1, 0), classes = call.in_dim(1, 1);
  for (int64_t row = 0; row < rows; ++row) {
    const double label = call.in(2)[at(row)];
    for (int64_t c = 0; c < classes; ++c) {
      const bool own = static_cast<double>(c) == label;
      double dx = 0;
      if (counts(label, classes)) {
        dx = call.in(0)[at(row)] * term_of(attrs, call.in(1)[at(row * classes + c)], own).slope() * (own ? -1 : 1);
      }
      call.out()[at(row * classes + c)] = dx;
    }
  }
}

// Each factor has the roundings of a function; those of the sigmoid count gamma times.
double term_error(const Attributes& attrs) {
  return kFunctionError * (3 + static_cast<double>(attrs.as<gpunn_focal_attrs>().gamma));
}

std::vector<double> focal_scale(const Evaluation& e, std::size_t output) {
  const auto classes = static_cast<double>(e.inputs.at(0).type.shape.at(1));
  return magnitudes(e.reference.at(output).values, term_error(e.signature.attrs) + accumulation(classes));
}

std::vector<double> focal_backward_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(e.reference.at(output).values, term_error(e.signature.attrs));
}

Attributes focal_attrs(float alpha, float gamma) {
  return Attributes::of(gpunn_focal_attrs{.struct_size = 0, .alpha = alpha, .gamma = gamma});
}

const std::vector<Shape> kFocalShapes = {{1, 1}, {1, 3}, {3, 20}, {129, 7}, {2049, 3}, {64, 80}, {0, 4}};

// Classes, none of them, and what is to be ignored on either side.
InputSpec focal_labels(const Shape& shape) { return i32({shape[0]}, integers(-2, shape[1])); }

std::vector<CaseSpec> focal_cases() {
  std::vector<CaseSpec> cases;
  const auto add = [&cases](const Shape& shape, float alpha, float gamma, const Generator& x,
                            const std::string& note = {}) {
    cases.push_back({.attrs = focal_attrs(alpha, gamma), .inputs = {f32(shape, x), focal_labels(shape)}, .note = note});
  };
  for (const Shape& shape : kFocalShapes) {
    add(shape, 0.25F, 2, uniform(-4, 4));
    add(shape, 0.5F, 1.5F, uniform(-4, 4));
  }
  add({19, 23}, 0.25F, 0, uniform(-4, 4), "cross-entropy");
  add({19, 23}, 0.25F, 2, uniform(-30, 30), "far from 0");
  return cases;
}

std::vector<CaseSpec> focal_backward_cases() {
  std::vector<CaseSpec> cases = focal_cases();
  for (CaseSpec& spec : cases) spec.inputs.insert(spec.inputs.begin(), f32({spec.inputs[0].type.shape[0]}));
  return cases;
}

std::vector<CaseSpec> differentiable_focal() {
  return {
      {.attrs = focal_attrs(0.25F, 2), .inputs = {f32({5, 4}, uniform(-2, 2)), i32({5}, listed({-1, 0, 3, -2, 1}))}}};
}

CaseSpec focal_request(Written& r) {
  if (r.sizes.size() != 2 || r.sizes[1] < 1) bad(r, "R,C");
  return {.attrs = focal_attrs(0.25F, 2), .inputs = {f32(r.sizes, uniform(-4, 4)), focal_labels(r.sizes)}};
}

CaseSpec focal_backward_request(Written& r) {
  CaseSpec spec = focal_request(r);
  spec.inputs.insert(spec.inputs.begin(), f32({r.sizes[0]}));
  return spec;
}

// A function: other files ask for the rows before their constants are made.
Shape typical_points() { return {16 * 5456, 20}; }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_FOCAL_LOSS,
       .gradient = focal_gradient,
       .flops = flops_per_input<12>,
       .reference = focal_loss_reference,
       .tolerance = {{focal_scale, "a power of the sigmoid and a logarithm, and their sum in any order"}},
       .cases = focal_cases,
       .differentiable = differentiable_focal,
       .typical = {.attrs = focal_attrs(0.25F, 2),
                   .inputs = {f32(typical_points(), uniform(-4, 0)), focal_labels(typical_points())}},
       .request = focal_request},
      {.id = GPUNN_OP_FOCAL_LOSS_BACKWARD,
       .flops = flops_per_input<16, 1>,
       .reference = focal_loss_backward_reference,
       .tolerance = {{focal_backward_scale, "a power of the sigmoid times a sum of terms above 0"}},
       .cases = focal_backward_cases,
       .typical = {.attrs = focal_attrs(0.25F, 2),
                   .inputs = {f32({typical_points()[0]}), f32(typical_points(), uniform(-4, 0)),
                              focal_labels(typical_points())}},
       .request = focal_backward_request},
  };
}

}  // namespace gpunn::ops::focal_loss
