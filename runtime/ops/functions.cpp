// Functions of one number: EXP, LOG, SQRT, RSQRT and ERF.
#include <cmath>
#include <numbers>

#include "ops/op.hpp"

namespace gpunn::ops::functions {

namespace {

// --- EXP ---

void exp_gradient(GradientContext& c) { c.set(0, c.expressions().mul(c.output_gradient(), c.output(0))); }

void exp_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return std::exp(x); });
}

std::vector<CaseSpec> cases_from(double low, double high) {
  std::vector<CaseSpec> cases = elementwise_cases({}, uniform(low, high));
  cases.push_back(special_case({}, kExtremes, "NaN and infinities"));
  cases.push_back({.inputs = {f32({1009}, uniform(0, 1e-6))}, .note = "near 0"});
  cases.push_back({.inputs = {f32({1009}, uniform(0.99, 1.01))}, .note = "near 1"});
  return cases;
}

std::vector<CaseSpec> exp_cases() { return cases_from(-20, 20); }

// --- LOG ---

void log_gradient(GradientContext& c) { c.set(0, c.expressions().div(c.output_gradient(), c.input(0))); }

void log_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return std::log(x); });
}

std::vector<CaseSpec> log_cases() { return cases_from(0.01, 100); }

// Roots and logarithms are of positive numbers.
CaseSpec positive_request(Written& r) { return {.inputs = {f32(r.sizes, uniform(0.5, 2))}}; }

// --- SQRT ---

void sqrt_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  c.set(0, e.scaled(e.div(c.output_gradient(), c.output(0)), 0.5));
}

void sqrt_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return std::sqrt(x); });
}

std::vector<CaseSpec> sqrt_cases() { return cases_from(0, 100); }

// --- RSQRT ---

// -dy y^3 / 2, as dy y (y y).
void rsqrt_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  const ValueId y = c.output(0);
  c.set(0, e.scaled(e.mul(e.mul(c.output_gradient(), y), e.mul(y, y)), -0.5));
}

void rsqrt_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return 1 / std::sqrt(x); });
}

std::vector<CaseSpec> rsqrt_cases() { return cases_from(0.01, 100); }

// --- ERF ---

void erf_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  const ValueId x = c.input(0);
  const ValueId bell = e.exp(e.scaled(e.mul(x, x), -1));
  c.set(0, e.scaled(e.mul(c.output_gradient(), bell), 2 * std::numbers::inv_sqrtpi));
}

void erf_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return std::erf(x); });
}

std::vector<CaseSpec> erf_cases() { return cases_from(-4, 4); }

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_EXP,
       .gradient = exp_gradient,
       .reference = exp_reference,
       .tolerance = {{function_scale, "a function of the library, off by four units in the last place at most"}},
       .cases = exp_cases,
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
      {.id = GPUNN_OP_LOG,
       .gradient = log_gradient,
       .reference = log_reference,
       .tolerance = {{function_scale, "a function of the library, off by four units in the last place at most"}},
       .cases = log_cases,
       .typical = {.inputs = {typical_images()}},
       .request = positive_request},
      {.id = GPUNN_OP_SQRT,
       .gradient = sqrt_gradient,
       .reference = sqrt_reference,
       .tolerance = {{few_roundings_scale, "a root, or an inverse root and a product"}},
       .cases = sqrt_cases,
       .typical = {.inputs = {typical_images()}},
       .request = positive_request},
      {.id = GPUNN_OP_RSQRT,
       .gradient = rsqrt_gradient,
       .reference = rsqrt_reference,
       .tolerance = {{few_roundings_scale, "a root and a quotient"}},
       .cases = rsqrt_cases,
       .typical = {.inputs = {typical_images()}},
       .request = positive_request},
      {.id = GPUNN_OP_ERF,
       .gradient = erf_gradient,
       .reference = erf_reference,
       .tolerance = {{function_scale, "a function of the library, off by four units in the last place at most"}},
       .cases = erf_cases,
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
  };
}

}  // namespace gpunn::ops::functions
