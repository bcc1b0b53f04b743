// SCALE, AXPBY, CLAMP, COPY and FILL.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"
#include "ops/traced.hpp"

namespace gpunn::ops::elementwise {

namespace {

// --- SCALE ---

void scale_gradient(GradientContext& c) { c.set(0, c.add(GPUNN_OP_SCALE, c.node().attrs, {c.output_gradient()})); }

std::vector<ValueId> scale_parts(Composition& c) {
  return {c.mul(c.in(0), c.constant(c.attrs<gpunn_scale_attrs>().factor))};
}

void scale_reference(ReferenceCall& call) {
  const double factor = call.attrs<gpunn_scale_attrs>().factor;
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = factor * call.in(0)[i];
}

Attributes scale_attrs(float factor) { return Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = factor}); }

std::vector<CaseSpec> scale_cases() {
  std::vector<CaseSpec> cases = elementwise_cases(scale_attrs(-0.37F), uniform());
  cases.push_back({.attrs = scale_attrs(0), .inputs = {f32({5, 31})}, .note = "by 0"});
  return cases;
}

CaseSpec scale_request(Written& r) { return {.attrs = scale_attrs(1.5F), .inputs = {f32(r.sizes)}}; }

// --- AXPBY ---

void axpby_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_axpby_attrs>();
  for (std::size_t i = 0; i < 2; ++i) {
    if (!c.wants(i)) continue;
    const gpunn_scale_attrs factor{.struct_size = 0, .factor = i == 0 ? a.alpha : a.beta};
    c.set(i, c.add(GPUNN_OP_SCALE, Attributes::of(factor), {c.output_gradient()}));
  }
}

void axpby_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_axpby_attrs>();
  const double alpha = attrs.alpha, beta = attrs.beta;
  call.require(call.in(0).size() == call.in(1).size() && call.in(0).size() == call.out().size(), "three equal sizes");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = alpha * call.in(0)[i] + beta * call.in(1)[i];
}

std::vector<double> axpby_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_axpby_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const double sum = std::abs(a.alpha * e.inputs.at(0).values[i]) + std::abs(a.beta * e.inputs.at(1).values[i]);
    scale[i] = std::isfinite(sum) ? 2.5 * sum : 0;  // infinities and NaN are exact
  }
  return scale;
}

Attributes axpby_attrs(float alpha, float beta) {
  return Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = alpha, .beta = beta});
}

std::vector<CaseSpec> axpby_cases() {
  std::vector<CaseSpec> cases = elementwise_backward_cases(axpby_attrs(0.999F, -1.7F), uniform());
  cases.push_back({.attrs = axpby_attrs(0.5F, 2),
                   .inputs = {f32({5, 31}, listed(kExtremes)), f32({5, 31}, constant(1))},
                   .note = "NaN and infinities"});
  cases.push_back(
      {.attrs = axpby_attrs(1, -1), .inputs = repeated(2, f32({5, 31}, uniform(1, 2))), .note = "nearly cancelling"});
  return cases;
}

CaseSpec axpby_request(Written& r) {
  return {.attrs = axpby_attrs(0.999F, 0.001F), .inputs = repeated(2, f32(r.sizes))};
}

// --- CLAMP ---

// To what was left as it is. RELU_BACKWARD selects between the gradient and 0 without an operand that broadcasts, so
// that images may have any layout.
void clamp_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  c.set(0, e.op(GPUNN_OP_RELU_BACKWARD, {c.output_gradient(), e.equal(c.input(0), c.output(0))}));
}

std::vector<ValueId> clamp_parts(Composition& c) {
  const auto a = c.attrs<gpunn_clamp_attrs>();
  return {c.minimum(c.maximum(c.in(0), c.constant(a.low)), c.constant(a.high))};
}

void clamp_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_clamp_attrs>();
  const double low = attrs.low, high = attrs.high;
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    const double x = call.in(0)[i];
    call.out()[i] = std::isnan(x) ? x : std::min(std::max(x, low), high);
  }
}

Attributes clamp_attrs(float low, float high) {
  return Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = low, .high = high});
}

std::vector<CaseSpec> clamp_cases() {
  std::vector<CaseSpec> cases = elementwise_cases(clamp_attrs(-0.25F, 0.5F), uniform());
  cases.push_back(special_case(clamp_attrs(-1, 3e38F), kExtremes, "NaN and infinities"));
  cases.push_back({.attrs = clamp_attrs(0.5F, 0.5F), .inputs = {f32({5, 31})}, .note = "to one value"});
  return cases;
}

CaseSpec clamp_request(Written& r) { return {.attrs = clamp_attrs(-0.5F, 0.5F), .inputs = {f32(r.sizes)}}; }

// --- COPY ---

// An integer does not change with what it was made of.
void copy_gradient(GradientContext& c) {
  const DType to = c.graph().value(c.output(0)).type.dtype;
  if (is_floating(to)) c.set(0, c.output_gradient());
}

void copy_reference(ReferenceCall& call) {
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  const DType from = call.in_type(0).dtype, to = call.out_type().dtype;
  for (std::size_t i = 0; i < call.out().size(); ++i) {
    call.out()[i] = from == to ? call.in(0)[i] : convert(call.in(0)[i], to);
  }
}

CaseSpec copy_case(const InputSpec& from, DType to, const std::string& note = {}) {
  return {.inputs = {from}, .note = note, .outputs = {TensorType{to, from.type.shape}}};
}

InputSpec values_of(DType type, const Shape& shape, Generator value) {
  InputSpec spec;
  spec.type.dtype = type;
  spec.type.shape = shape;
  spec.value = std::move(value);
  return spec;
}

std::vector<CaseSpec> copy_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) cases.push_back(copy_case(f32(shape), DType::f32));
  const Shape odd{3, 67};
  // Between every two types, with values that both can hold.
  for (const DType to : {DType::f32, DType::i32, DType::i64, DType::u8}) {
    const bool byte = to == DType::u8;
    cases.push_back(copy_case(f32(odd, byte ? uniform(0, 255.9) : uniform(-1e6, 1e6)), to, "fractions cut"));
    cases.push_back(copy_case(i32(odd, byte ? integers(0, 255) : integers(-2000000000, 2000000000)), to));
    cases.push_back(copy_case(i64(odd, byte ? integers(0, 255) : integers(-2000000000, 2000000000)), to));
    cases.push_back(copy_case(u8(odd), to));
  }
  cases.push_back(copy_case(i32(odd, integers(-100000, 100000)), DType::u8, "modulo 256"));
  for (const DType half : {DType::bf16, DType::f16}) {
    // Tensors of half precision are converted around kernels without it.
    for (const Shape& shape : kElementwiseShapes) {
      cases.push_back(copy_case(f32(shape), half));
      cases.push_back(copy_case(values_of(half, shape, uniform()), DType::f32));
    }
    const double tie = 1 + unit_roundoff(half), past_tie = 1 + 3 * unit_roundoff(half);
    cases.push_back(
        copy_case(f32(odd, listed({tie, past_tie, -tie, -past_tie, std::nextafter(tie, 2)})), half, "ties"));
    cases.push_back(copy_case(f32(odd, listed({1e-7, 3e-5, -6e-8, 5e-8, 1e-39, -1e-40})), half, "subnormal numbers"));
    cases.push_back(
        copy_case(f32(odd, listed({65519, 65520, -65520, 1e5, 3.39e38, -3.4e38})), half, "beyond the largest"));
    cases.push_back(copy_case(f32(odd, listed(kExtremes)), half, "NaN and infinities"));
    cases.push_back(copy_case(values_of(half, odd, listed(kExtremes)), DType::f32, "NaN and infinities"));
    cases.push_back(copy_case(values_of(half, odd, uniform()), half));
    cases.push_back(copy_case(i32(odd, integers(-60000, 60000)), half));
    cases.push_back(copy_case(values_of(half, odd, uniform(-1000, 1000)), DType::i32, "fractions cut"));
  }
  cases.push_back(copy_case(values_of(DType::bf16, odd, uniform()), DType::f16));
  return cases;
}

// --- FILL ---

void fill_reference(ReferenceCall& call) {
  const double value = convert(call.attrs<gpunn_fill_attrs>().value, call.out_type().dtype);
  for (double& y : call.out()) y = value;
}

Attributes fill_attrs(DType type, const Shape& shape, double value) {
  gpunn_fill_attrs attrs{};
  attrs.dtype = static_cast<int32_t>(type);
  attrs.rank = static_cast<int32_t>(shape.size());
  std::ranges::copy(shape, attrs.dim);
  attrs.value = value;
  return Attributes::of(attrs);
}

std::vector<CaseSpec> fill_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) cases.push_back({.attrs = fill_attrs(DType::f32, shape, 0.1)});
  for (const DType type : {DType::i32, DType::i64, DType::u8, DType::f64}) {
    cases.push_back({.attrs = fill_attrs(type, {3, 17}, 113)});
  }
  return cases;
}

CaseSpec fill_request(Written& r) {
  if (r.sizes.size() > GPUNN_MAX_RANK) bad(r, "at most 8 dimensions");
  return {.attrs = fill_attrs(DType::f32, r.sizes, 0.5)};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_SCALE,
       .gradient = scale_gradient,
       .decompose = scale_parts,
       .reference = scale_reference,
       .tolerance = {{one_rounding_scale, "one product, rounded once"}},
       .cases = scale_cases,
       .typical = {.attrs = scale_attrs(1.5F), .inputs = {typical_images()}},
       .request = scale_request},
      {.id = GPUNN_OP_AXPBY,
       .gradient = axpby_gradient,
       .decompose = formula_parts<GPUNN_OP_AXPBY>,
       .flops = flops_per_output<3>,
       .reference = axpby_reference,
       .tolerance = {{axpby_scale, "two products and an addition, fused or not"}},
       .cases = axpby_cases,
       .typical = {.attrs = axpby_attrs(0.999F, 0.001F), .inputs = repeated(2, typical_images())},
       .request = axpby_request},
      {.id = GPUNN_OP_CLAMP,
       .gradient = clamp_gradient,
       .decompose = clamp_parts,
       .reference = clamp_reference,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = clamp_cases,
       .typical = {.attrs = clamp_attrs(-0.5F, 0.5F), .inputs = {typical_images()}},
       .request = clamp_request},
      {.id = GPUNN_OP_COPY,
       .gradient = copy_gradient,
       .flops = no_flops,
       .reference = copy_reference,
       .tolerance = {{exact_scale, "a conversion is defined to the bit"}},
       .cases = copy_cases,
       .typical = {.inputs = {typical_images()}},
       .request = same_shape<1>},
      {.id = GPUNN_OP_FILL,
       .flops = no_flops,
       .reference = fill_reference,
       .tolerance = {{exact_scale, "a constant"}},
       .cases = fill_cases,
       .typical = {.attrs = fill_attrs(DType::f32, {element_count(typical_images().type.shape)}, 0)},
       .request = fill_request},
  };
}

}  // namespace gpunn::ops::elementwise
