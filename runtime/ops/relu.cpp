// RELU, LEAKY_RELU and their backwards.
#include <algorithm>
#include <iterator>

#include "ops/op.hpp"
#include "ops/traced.hpp"

namespace gpunn::ops::relu {

namespace {

// --- RELU ---

std::vector<ValueId> relu_parts(Composition& c) { return {c.maximum(c.in(0), c.constant(0))}; }

void relu_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return activate(GPUNN_ACTIVATION_RELU, x); });
}

std::vector<CaseSpec> relu_cases() {
  std::vector<CaseSpec> cases = elementwise_cases({}, uniform());
  cases.push_back(special_case({}, kExtremes, "NaN and infinities"));
  return cases;
}

// --- RELU_BACKWARD ---

void relu_backward_reference(ReferenceCall& call) {
  map_backward(call, [](double dy, double y) { return y > 0 ? dy : 0; });
}

std::vector<CaseSpec> relu_backward_cases() {
  std::vector<CaseSpec> cases = elementwise_backward_cases({}, sometimes(0, 2, uniform(0, 1)));
  cases.push_back(special_backward_case({}, {0.0, -0.0, 1e-30, kInf, 2.0, 0.0, 1.0}, "y of 0, -0 and infinity"));
  cases.push_back({.inputs = {f32({5, 31}, listed({kNan, 1.0, kInf})), f32({5, 31}, listed({0.0, 1.0}))},
                   .note = "dy of NaN where y is 0"});
  return cases;
}

// --- LEAKY_RELU ---

Attributes slope(float value) { return Attributes::of(gpunn_leaky_relu_attrs{.struct_size = 0, .slope = value}); }

void leaky_relu_reference(ReferenceCall& call) {
  const double slope = call.attrs<gpunn_leaky_relu_attrs>().slope;
  map_elements(call, [=](double x) { return x > 0 ? x : slope * x; });
}

std::vector<CaseSpec> leaky_relu_cases() {
  std::vector<CaseSpec> cases;
  for (const float value : {0.01F, 0.0F, -0.5F}) {
    cases.push_back(special_case(slope(value), {0.0, -0.0, kNan, kInf, 1.5, -1.5, 3e38, -3e38}, "NaN and infinity"));
  }
  std::ranges::move(elementwise_cases(slope(0.2F), uniform()), std::back_inserter(cases));
  return cases;
}

template <std::size_t inputs>
CaseSpec leaky_relu_request(Written& r) {
  return {.attrs = slope(0.01F), .inputs = repeated(inputs, f32(r.sizes))};
}

// --- LEAKY_RELU_BACKWARD ---

void leaky_relu_backward_reference(ReferenceCall& call) {
  const double slope = call.attrs<gpunn_leaky_relu_attrs>().slope;
  map_backward(call, [=](double dy, double x) { return x > 0 ? dy : slope * dy; });
}

std::vector<CaseSpec> leaky_relu_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const float value : {0.01F, 0.0F, -0.5F}) {
    cases.push_back(
        special_backward_case(slope(value), {0.0, -0.0, 1e-30, -1e-30, kInf, -kInf, 2.0}, "x of 0 and infinity"));
  }
  std::ranges::move(elementwise_backward_cases(slope(0.2F), uniform()), std::back_inserter(cases));
  return cases;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_RELU,
       .gradient = gradient_from_output<GPUNN_OP_RELU_BACKWARD>,
       .decompose = relu_parts,
       .flops = flops_per_output<1>,
       .reference = relu_reference,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = relu_cases,
       .differentiable =
           [] {
             return std::vector<CaseSpec>{{.inputs = {f32({7, 9}, apart())}}};
           },
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
      {.id = GPUNN_OP_RELU_BACKWARD,
       .decompose = formula_parts<GPUNN_OP_RELU_BACKWARD>,
       .flops = flops_per_output<1>,
       .reference = relu_backward_reference,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = relu_backward_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_LEAKY_RELU,
       .gradient = gradient_from_input<GPUNN_OP_LEAKY_RELU_BACKWARD>,
       .decompose = formula_parts<GPUNN_OP_LEAKY_RELU>,
       .flops = flops_per_output<2>,
       .reference = leaky_relu_reference,
       .tolerance = {{one_rounding_scale, "one product, rounded once"}},
       .cases = leaky_relu_cases,
       .differentiable =
           [] {
             return std::vector<CaseSpec>{{.attrs = slope(0.2F), .inputs = {f32({7, 9}, apart())}}};
           },
       .typical = {.attrs = slope(0.01F), .inputs = {typical_images()}},
       .request = leaky_relu_request<1>},
      {.id = GPUNN_OP_LEAKY_RELU_BACKWARD,
       .decompose = formula_parts<GPUNN_OP_LEAKY_RELU_BACKWARD>,
       .flops = flops_per_output<2>,
       .reference = leaky_relu_backward_reference,
       .tolerance = {{one_rounding_scale, "one product, rounded once"}},
       .cases = leaky_relu_backward_cases,
       .typical = {.attrs = slope(0.01F), .inputs = repeated(2, typical_images())},
       .request = leaky_relu_request<2>},
  };
}

}  // namespace gpunn::ops::relu
