// SIGMOID, TANH, GELU, SILU and their backwards.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "ops/op.hpp"
#include "ops/traced.hpp"

namespace gpunn::ops::activation {

namespace {

// --- SIGMOID ---

std::vector<ValueId> sigmoid_parts(Composition& c) {
  const ValueId one = c.constant(1);
  return {c.div(one, c.add(one, c.exp(c.scaled(c.in(0), -1))))};
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

void sigmoid_reference(ReferenceCall& call) { map_elements(call, sigmoid_of); }

// scale(dy, v, reference) by element; v is x or y.
template <class Scale>
std::vector<double> by_element(const Evaluation& e, std::size_t output, Scale scale) {
  const std::vector<double>& y = e.reference.at(output).values;
  std::vector<double> result(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double first = e.inputs.at(0).values.at(i);
    const double value = scale(first, e.inputs.size() > 1 ? e.inputs.at(1).values.at(i) : first, y[i]);
    result[i] = std::isfinite(value) ? value : 0;  // infinities and NaN are exact
  }
  return result;
}

// Results below the smallest normal number may be flushed to 0: 2^-126 in units of 2^-24.
const double kFlushed = std::ldexp(1.0, -102);

std::vector<double> sigmoid_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double, double, double y) { return kFunctionError * std::abs(y) + kFlushed; });
}

// Beyond 104 e^-x leaves f32, beyond 9 tanh is 1 in it.
std::vector<double> far_out() {
  return {0.0,  -0.0,  kNan, 1e-30, -1e-30, 1e-4, -1e-4, 0.6,  -0.6,  0.7,  9.5,  -9.5,
          16.7, -16.7, 87.0, -87.0, 88.8,   -89,  103.0, -103, 150.0, -150, 3e38, -3e38};
}

std::vector<double> far_out_or_infinite() {
  std::vector<double> values = far_out();
  values.insert(values.end(), {kInf, -kInf});
  return values;
}

std::vector<CaseSpec> sigmoid_cases() {
  std::vector<CaseSpec> cases = elementwise_cases({}, uniform(-8, 8));
  cases.push_back(special_case({}, far_out_or_infinite(), "far out, and NaN"));
  return cases;
}

// --- SIGMOID_BACKWARD ---

void sigmoid_backward_reference(ReferenceCall& call) {
  map_backward(call, [](double dy, double y) { return dy * y * (1 - y); });
}

std::vector<CaseSpec> sigmoid_backward_cases() {
  std::vector<CaseSpec> cases = elementwise_backward_cases({}, uniform(0, 1));
  cases.push_back(special_backward_case({}, {0.0, 1.0, 0.5, 1e-30, kNan}, "y of 0, 1 and NaN"));
  return cases;
}

// --- TANH ---

void tanh_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return std::tanh(x); });
}

std::vector<CaseSpec> tanh_cases() {
  std::vector<CaseSpec> cases = elementwise_cases({}, uniform(-4, 4));
  cases.push_back(special_case({}, far_out_or_infinite(), "far out, and NaN"));
  return cases;
}

// --- TANH_BACKWARD ---

void tanh_backward_reference(ReferenceCall& call) {
  map_backward(call, [](double dy, double y) { return dy * (1 - y * y); });
}

// 1 - y^2 of a rounded y^2.
std::vector<double> tanh_backward_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output,
                    [](double dy, double y, double) { return std::abs(dy) * (2 * y * y + 4 * std::abs(1 - y * y)); });
}

std::vector<CaseSpec> tanh_backward_cases() {
  std::vector<CaseSpec> cases = elementwise_backward_cases({}, uniform());
  cases.push_back(special_backward_case({}, {0.0, 1.0, -1.0, 0.999999, 1e-30, kNan}, "y of 1, -1 and NaN"));
  return cases;
}

// --- GELU ---

// The P of gpunn_gelu_attrs and its derivative.
struct Gate {
  double value;
  double slope;
};

Gate tanh_gate(double x) {
  const double factor = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(factor * (x + 0.044715 * x * x * x));
  return {(1 + t) / 2, (1 - t * t) / 2 * factor * (1 + 3 * 0.044715 * x * x)};
}

Gate normal_gate(double x) {
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  return {(1 + std::erf(x / std::numbers::sqrt2)) / 2, density};
}

Gate gelu_gate(const ReferenceCall& call, double x) {
  return call.attrs<gpunn_gelu_attrs>().tanh != 0 ? tanh_gate(x) : normal_gate(x);
}

void gelu_reference(ReferenceCall& call) {
  map_elements(call, [&](double x) { return x * gelu_gate(call, x).value; });
}

// x times (1 + erf) / 2, a sum that may cancel.
std::vector<double> gelu_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double, double x, double) {
    return x < -40 ? kFlushed * (1 + std::min(-x, 1e30)) : kFunctionError * std::abs(x);
  });
}

Attributes gelu_attrs(bool tanh) { return Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = tanh ? 1 : 0}); }

std::vector<CaseSpec> gelu_cases() {
  std::vector<CaseSpec> cases;
  for (const bool tanh : {false, true}) {
    std::ranges::move(elementwise_cases(gelu_attrs(tanh), uniform(-4, 4)), std::back_inserter(cases));
    cases.push_back(special_case(gelu_attrs(tanh), far_out(), "far out, and NaN"));
  }
  return cases;
}

template <std::size_t inputs>
CaseSpec gelu_request(Written& r) {
  return {.attrs = gelu_attrs(false), .inputs = repeated(inputs, f32(r.sizes))};
}

std::vector<CaseSpec> differentiable_gelu() {
  const InputSpec x = f32({7, 9}, uniform(-3, 3));
  return {{.attrs = gelu_attrs(false), .inputs = {x}}, {.attrs = gelu_attrs(true), .inputs = {x}}};
}

// --- GELU_BACKWARD ---

void gelu_backward_reference(ReferenceCall& call) {
  map_backward(call, [&](double dy, double x) {
    const Gate gate = gelu_gate(call, x);
    return dy * (gate.value + x * gate.slope);
  });
}

// P + x P': P is off by a few units, and so is 1 - tanh^2, which the slope of tanh's argument multiplies.
std::vector<double> gelu_backward_scale(const Evaluation& e, std::size_t output) {
  const bool tanh = e.signature.attrs.as<gpunn_gelu_attrs>().tanh != 0;
  return by_element(e, output, [=](double dy, double x, double) {
    const double reach = std::min(std::abs(x), 16.0);
    const double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * reach * reach);
    return std::abs(dy) * (2 * kFunctionError + (tanh ? 2 * reach * slope : 0));
  });
}

std::vector<CaseSpec> gelu_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const bool tanh : {false, true}) {
    std::ranges::move(elementwise_backward_cases(gelu_attrs(tanh), uniform(-4, 4)), std::back_inserter(cases));
    cases.push_back(special_backward_case(gelu_attrs(tanh), far_out(), "far out, and NaN"));
  }
  return cases;
}

// --- SILU ---

void silu_reference(ReferenceCall& call) {
  map_elements(call, [](double x) { return x * sigmoid_of(x); });
}

// Where the factor of x vanishes it is flushed, and x is not.
std::vector<double> silu_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double, double x, double y) {
    return (kFunctionError + 1) * std::abs(y) + kFlushed * (1 + std::min(std::abs(x), 200.0));
  });
}

std::vector<CaseSpec> silu_cases() {
  std::vector<CaseSpec> cases = elementwise_cases({}, uniform(-8, 8));
  cases.push_back(special_case({}, far_out(), "far out, and NaN"));
  return cases;
}

// --- SILU_BACKWARD ---

void silu_backward_reference(ReferenceCall& call) {
  map_backward(call, [](double dy, double x) {
    const double s = sigmoid_of(x);
    return dy * s * (1 + x * (1 - s));
  });
}

// In 1 + x (1 - s) the two terms may cancel, and 1 - s is off by a unit.
std::vector<double> silu_backward_scale(const Evaluation& e, std::size_t output) {
  return by_element(e, output, [](double dy, double x, double) {
    const double reach = std::min(std::abs(x), 200.0);
    return std::abs(dy) * (1 + reach) * (kFunctionError * sigmoid_of(x) + kFlushed);
  });
}

std::vector<CaseSpec> silu_backward_cases() {
  std::vector<CaseSpec> cases = elementwise_backward_cases({}, uniform(-8, 8));
  cases.push_back(special_backward_case({}, far_out(), "far out, and NaN"));
  return cases;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_SIGMOID,
       .gradient = gradient_from_output<GPUNN_OP_SIGMOID_BACKWARD>,
       .decompose = sigmoid_parts,
       .flops = flops_per_output<4>,
       .reference = sigmoid_reference,
       .tolerance = {{sigmoid_scale, "an exp, a sum and a quotient"}},
       .cases = sigmoid_cases,
       .differentiable =
           [] {
             return std::vector<CaseSpec>{{.inputs = {f32({7, 9}, uniform(-3, 3))}}};
           },
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
      {.id = GPUNN_OP_SIGMOID_BACKWARD,
       .decompose = formula_parts<GPUNN_OP_SIGMOID_BACKWARD>,
       .flops = flops_per_output<3>,
       .reference = sigmoid_backward_reference,
       .tolerance = {{few_roundings_scale, "a difference and two products"}},
       .cases = sigmoid_backward_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_TANH,
       .gradient = gradient_from_output<GPUNN_OP_TANH_BACKWARD>,
       .flops = flops_per_output<1>,
       .reference = tanh_reference,
       .tolerance = {{sigmoid_scale, "a tanh, to the relative error of its result"}},
       .cases = tanh_cases,
       .differentiable =
           [] {
             return std::vector<CaseSpec>{{.inputs = {f32({7, 9}, uniform(-3, 3))}}};
           },
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
      {.id = GPUNN_OP_TANH_BACKWARD,
       .decompose = formula_parts<GPUNN_OP_TANH_BACKWARD>,
       .flops = flops_per_output<3>,
       .reference = tanh_backward_reference,
       .tolerance = {{tanh_backward_scale, "the rounding of y^2, a difference and a product"}},
       .cases = tanh_backward_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_GELU,
       .gradient = gradient_from_input<GPUNN_OP_GELU_BACKWARD>,
       .decompose = formula_parts<GPUNN_OP_GELU>,
       .flops = flops_per_output<5>,
       .reference = gelu_reference,
       .tolerance = {{gelu_scale, "(1 + erf) / 2, whose terms may cancel, and a product"}},
       .cases = gelu_cases,
       .differentiable = differentiable_gelu,
       .typical = {.attrs = gelu_attrs(false), .inputs = {typical_images()}},
       .request = gelu_request<1>},
      {.id = GPUNN_OP_GELU_BACKWARD,
       .decompose = formula_parts<GPUNN_OP_GELU_BACKWARD>,
       .flops = flops_per_output<10>,
       .reference = gelu_backward_reference,
       .tolerance = {{gelu_backward_scale, "(1 + erf) / 2, whose terms may cancel, and a sum"}},
       .cases = gelu_backward_cases,
       .typical = {.attrs = gelu_attrs(false), .inputs = repeated(2, typical_images())},
       .request = gelu_request<2>},
      {.id = GPUNN_OP_SILU,
       .gradient = gradient_from_input<GPUNN_OP_SILU_BACKWARD>,
       .decompose = formula_parts<GPUNN_OP_SILU>,
       .flops = flops_per_output<5>,
       .reference = silu_reference,
       .tolerance = {{silu_scale, "an exp, a sum, a quotient and a product"}},
       .cases = silu_cases,
       .differentiable =
           [] {
             return std::vector<CaseSpec>{{.inputs = {f32({7, 9}, uniform(-3, 3))}}};
           },
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
      {.id = GPUNN_OP_SILU_BACKWARD,
       .decompose = formula_parts<GPUNN_OP_SILU_BACKWARD>,
       .flops = flops_per_output<8>,
       .reference = silu_backward_reference,
       .tolerance = {{silu_backward_scale, "1 + x (1 - s), whose terms may cancel"}},
       .cases = silu_backward_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
  };
}

}  // namespace gpunn::ops::activation
