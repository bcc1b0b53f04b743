// Arithmetic, comparison and selection with broadcasting, and EXPAND.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::arithmetic {

namespace {

// --- ADD ---

// What reaches input i, whose elements were repeated.
void set_summed(GradientContext& c, std::size_t i, ValueId gradient) {
  const Shape shape = c.input_shape(i);
  c.set(i, c.expressions().sum_to(gradient, shape));
}

void add_gradient(GradientContext& c) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants(i)) set_summed(c, i, c.output_gradient());
  }
}

// The element of input i that element `index` of the output is made of.
std::size_t source(const ReferenceCall& call, std::size_t i, int64_t index) {
  const Shape &x = call.in_type(i).shape, &y = call.out_type().shape;
  int64_t offset = 0, stride = 1;
  for (std::size_t k = 0; k < y.size(); ++k) {  // from the last dimension on
    const int64_t size = y[y.size() - 1 - k], position = index % size;
    index /= size;
    if (k >= x.size()) continue;
    const int64_t own = x[x.size() - 1 - k];
    offset += (own == 1 ? 0 : position) * stride;
    stride *= own;
  }
  return at(offset);
}

template <double (*f)(double, double)>
void of_two(ReferenceCall& call) {
  for (int64_t i = 0; i < call.out_type().elements(); ++i) {
    call.out()[at(i)] = f(call.in(0)[source(call, 0, i)], call.in(1)[source(call, 1, i)]);
  }
}

double sum(double a, double b) { return a + b; }

struct Pair {
  Shape a, b;
};

// Rows, columns, channels and single numbers repeated, on either side or on both; of images too, which are run
// channels-last as well.
const std::vector<Pair> kBroadcastPairs = {{{5, 7}, {7}},
                                           {{7}, {5, 7}},
                                           {{5, 7}, {5, 1}},
                                           {{5, 1}, {1, 7}},
                                           {{2, 3, 5, 7}, {3, 1, 1}},
                                           {{1, 3, 1, 7}, {2, 3, 5, 7}},
                                           {{2, 3, 5, 7}, {}},
                                           {{1}, {2, 3, 5, 7}},
                                           {{3, 40, 9, 11}, {1, 1, 1, 1}},
                                           {{3, 40, 9, 11}, {3, 40, 1, 1}},
                                           {{3, 1, 9, 11}, {3, 40, 9, 11}},
                                           {{2, 3, 5, 7}, {1, 3, 5, 7}},
                                           {{2, 3, 5, 7}, {3, 5, 7}},
                                           {{5, 1}, {2, 3, 5, 7}},
                                           {{4, 1, 6}, {5, 1}},
                                           {{}, {3, 4}},
                                           {{3, 4}, {}},
                                           {{1}, {1, 1, 1}},
                                           {{2, 1, 3, 1, 2}, {5, 1, 4, 1}},
                                           {{2, 1, 2, 1, 2, 1, 2, 3}, {2, 1, 2, 1, 2, 1, 1}},
                                           {{129, 257}, {257}},
                                           {{129, 1}, {129, 257}},
                                           {{64, 33, 9, 9}, {33, 1, 1}},
                                           {{262147}, {1}},
                                           {{0, 4}, {4}},
                                           {{3, 0}, {3, 1}}};

// At equal shapes and at those that broadcast.
std::vector<CaseSpec> binary_cases(const Generator& a, const Generator& b) {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) cases.push_back({.inputs = {f32(shape, a), f32(shape, b)}});
  for (const Pair& pair : kBroadcastPairs) cases.push_back({.inputs = {f32(pair.a, a), f32(pair.b, b)}});
  // Each of them with each other, 11 and 11.
  cases.push_back(
      {.inputs = {f32({11, 1}, listed(kExtremes)), f32({11}, listed(kExtremes))}, .note = "NaN and infinities"});
  return cases;
}

std::vector<CaseSpec> signed_cases() { return binary_cases(uniform(), uniform()); }

// --- SUB ---

void sub_gradient(GradientContext& c) {
  if (c.wants(0)) set_summed(c, 0, c.output_gradient());
  if (c.wants(1)) set_summed(c, 1, c.expressions().scaled(c.output_gradient(), -1));
}

double difference(double a, double b) { return a - b; }

// --- MUL ---

void mul_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants(i)) set_summed(c, i, e.mul(c.output_gradient(), c.input(1 - i)));
  }
}

double product(double a, double b) { return a * b; }

// --- DIV ---

void div_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  const ValueId share = e.div(c.output_gradient(), c.input(1));
  if (c.wants(0)) set_summed(c, 0, share);
  if (c.wants(1)) set_summed(c, 1, e.scaled(e.mul(share, c.output(0)), -1));
}

double quotient(double a, double b) { return a / b; }

std::vector<CaseSpec> div_cases() { return binary_cases(uniform(), sometimes(-0.5, 3, uniform(0.25, 4))); }

// Divisors and powers of any sign would be near 0, or NaN.
CaseSpec positive_request(Written& r) { return {.inputs = repeated(2, f32(r.sizes, uniform(0.5, 2)))}; }

// --- MAXIMUM ---

double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

// 0 in the dtype of a gradient, which stays what it is where SELECT puts zeros beside it.
ValueId nothing_beside(Expressions& e, ValueId dy) {
  const DType dtype = e.dtype(dy);
  return dtype == DType::f32 ? e.constant(0) : e.converted(e.constant(0), dtype);
}

// All of it to the operand that was chosen, to a where both are equal.
void extreme_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  const ValueId dy = c.output_gradient();
  const bool larger = c.node().op == GPUNN_OP_MAXIMUM;
  const ValueId of_b = larger ? e.less(c.input(0), c.input(1)) : e.less(c.input(1), c.input(0));
  const ValueId nothing = nothing_beside(e, dy);
  if (c.wants(0)) set_summed(c, 0, e.select(of_b, nothing, dy));
  if (c.wants(1)) set_summed(c, 1, e.select(of_b, dy, nothing));
}

// --- MINIMUM ---

double smaller(double a, double b) { return std::isnan(a) || a <= b ? a : b; }

// --- POW ---

// da = dy b a^(b-1); db = dy a^b log(a), and 0 where a is 0.
void pow_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  const ValueId dy = c.output_gradient(), a = c.input(0), b = c.input(1);
  if (c.wants(0)) set_summed(c, 0, e.mul(dy, e.mul(b, e.pow(a, e.sub(b, e.constant(1))))));
  if (c.wants(1)) {
    const ValueId none = e.constant(0);
    const ValueId logarithm = e.select(e.equal(a, none), none, e.log(a));
    set_summed(c, 1, e.mul(e.mul(dy, c.output(0)), logarithm));
  }
}

double power(double a, double b) { return std::pow(a, b); }

std::vector<CaseSpec> pow_cases() {
  std::vector<CaseSpec> cases = binary_cases(uniform(0.1, 5), uniform(-4, 4));
  cases.push_back(
      {.inputs = {f32({37, 11}, uniform(-3, 3)), f32({37, 11}, integers(-3, 4))}, .note = "of negative numbers"});
  return cases;
}

// --- EQUAL ---

double equal(double a, double b) { return a == b ? 1 : 0; }

std::vector<CaseSpec> comparison_cases() { return binary_cases(integers(-2, 2), integers(-2, 2)); }

// --- LESS ---

double less(double a, double b) { return a < b ? 1 : 0; }

// --- LESS_EQUAL ---

double less_equal(double a, double b) { return a <= b ? 1 : 0; }

// --- SELECT ---

void select_gradient(GradientContext& c) {
  Expressions e = c.expressions();
  const ValueId dy = c.output_gradient(), nothing = nothing_beside(e, dy);
  if (c.wants(1)) set_summed(c, 1, e.select(c.input(0), dy, nothing));
  if (c.wants(2)) set_summed(c, 2, e.select(c.input(0), nothing, dy));
}

void select_reference(ReferenceCall& call) {
  for (int64_t i = 0; i < call.out_type().elements(); ++i) {
    const std::size_t chosen = call.in(0)[source(call, 0, i)] != 0 ? 1 : 2;
    call.out()[at(i)] = call.in(chosen)[source(call, chosen, i)];
  }
}

CaseSpec select_case(const Shape& condition, const Shape& a, const Shape& b, const std::string& note = {},
                     const Generator& chosen = integers(0, 1), const Generator& value = uniform()) {
  return {.inputs = {f32(condition, chosen), f32(a, value), f32(b, value)}, .note = note};
}

std::vector<CaseSpec> select_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) cases.push_back(select_case(shape, shape, shape));
  for (const Pair& pair : kBroadcastPairs) {
    cases.push_back(select_case(pair.a, pair.b, {}));
    cases.push_back(select_case(pair.b, pair.a, pair.a, "one of the condition's"));
    cases.push_back(select_case({}, pair.a, pair.b, "one condition"));
  }
  cases.push_back(select_case({5, 31}, {5, 31}, {5, 31}, "any condition", listed(kExtremes)));
  cases.push_back(select_case({11, 1}, {11}, {11}, "NaN and infinities", integers(0, 1), listed(kExtremes)));
  return cases;
}

// --- EXPAND ---

void expand_gradient(GradientContext& c) { set_summed(c, 0, c.output_gradient()); }

void expand_reference(ReferenceCall& call) {
  for (int64_t i = 0; i < call.out_type().elements(); ++i) call.out()[at(i)] = call.in(0)[source(call, 0, i)];
}

const std::vector<Pair> kExpansions = {{{}, {}},
                                       {{}, {3, 4}},
                                       {{1}, {262147}},
                                       {{7}, {5, 7}},
                                       {{5, 1}, {5, 7}},
                                       {{5, 7}, {5, 7}},
                                       {{3, 1, 1}, {2, 3, 5, 7}},
                                       {{}, {3, 40, 9, 11}},
                                       {{3, 40, 1, 1}, {3, 40, 9, 11}},
                                       {{1, 3, 5, 7}, {2, 3, 5, 7}},
                                       {{129, 1}, {129, 257}},
                                       {{2, 1, 3, 1, 2}, {2, 5, 3, 4, 2}},
                                       {{0, 1}, {0, 4}},
                                       {{1, 4}, {0, 4}}};

Attributes to_shape(const Shape& shape) {
  gpunn_expand_attrs attrs{};
  attrs.rank = static_cast<int32_t>(shape.size());
  std::ranges::copy(shape, attrs.dim);
  return Attributes::of(attrs);
}

std::vector<CaseSpec> expand_cases() {
  std::vector<CaseSpec> cases;
  for (const Pair& pair : kExpansions) cases.push_back({.attrs = to_shape(pair.b), .inputs = {f32(pair.a)}});
  return cases;
}

// Of a number for each channel, or for each row of a matrix.
CaseSpec expand_request(Written& r) {
  if (r.sizes.empty() || r.sizes.size() > GPUNN_MAX_RANK) bad(r, "1 to 8 dimensions");
  Shape x(r.sizes.size(), 1);
  const std::size_t kept = r.sizes.size() > 2 ? 1 : 0;
  x[kept] = r.sizes[kept];
  return {.attrs = to_shape(r.sizes), .inputs = {f32(x)}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ADD,
       .gradient = add_gradient,
       .reference = of_two<sum>,
       .tolerance = {{one_rounding_scale, "one addition, rounded once"}},
       .cases = signed_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_SUB,
       .gradient = sub_gradient,
       .reference = of_two<difference>,
       .tolerance = {{one_rounding_scale, "one subtraction, rounded once"}},
       .cases = signed_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_MUL,
       .gradient = mul_gradient,
       .reference = of_two<product>,
       .tolerance = {{one_rounding_scale, "one product, rounded once"}},
       .cases = signed_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_DIV,
       .gradient = div_gradient,
       .reference = of_two<quotient>,
       .tolerance = {{few_roundings_scale, "a reciprocal and a product at worst"}},
       .cases = div_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = positive_request},
      {.id = GPUNN_OP_MAXIMUM,
       .gradient = extreme_gradient,
       .reference = of_two<larger>,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = signed_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_MINIMUM,
       .gradient = extreme_gradient,
       .reference = of_two<smaller>,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = signed_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_POW,
       .gradient = pow_gradient,
       .reference = of_two<power>,
       .tolerance = {{function_scale, "a function of the library, off by four units in the last place at most"}},
       .cases = pow_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = positive_request},
      {.id = GPUNN_OP_EQUAL,
       .steps = true,
       .reference = of_two<equal>,
       .tolerance = {{exact_scale, "0 or 1"}},
       .cases = comparison_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_LESS,
       .steps = true,
       .reference = of_two<less>,
       .tolerance = {{exact_scale, "0 or 1"}},
       .cases = comparison_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_LESS_EQUAL,
       .steps = true,
       .reference = of_two<less_equal>,
       .tolerance = {{exact_scale, "0 or 1"}},
       .cases = comparison_cases,
       .typical = {.inputs = repeated(2, typical_images())},
       .request = same_shape<2>},
      {.id = GPUNN_OP_SELECT,
       .gradient = select_gradient,
       .reference = select_reference,
       .tolerance = {{exact_scale, "chooses, computes nothing"}},
       .cases = select_cases,
       .typical = {.inputs = repeated(3, typical_images())},
       .request = same_shape<3>},
      {.id = GPUNN_OP_EXPAND,
       .gradient = expand_gradient,
       .flops = no_flops,
       .reference = expand_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = expand_cases,
       .typical = {.attrs = to_shape({64, kTypicalChannels, 28, 28}), .inputs = {f32({kTypicalChannels, 1, 1})}},
       .request = expand_request},
  };
}

}  // namespace gpunn::ops::arithmetic
