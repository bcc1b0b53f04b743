// MATMUL, BATCH_MATMUL and MATMUL_BIAS_ACTIVATION.
#include <utility>

#include "ops/fused_activation.hpp"
#include "ops/op.hpp"

namespace gpunn::ops::matmul {

namespace {

// --- MATMUL ---

Attributes matmul_attrs(bool transpose_a, bool transpose_b) {
  return Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = transpose_a, .transpose_b = transpose_b});
}

// Of MATMUL and BATCH_MATMUL.
void matmul_gradient(GradientContext& c) {
  const int32_t product = c.node().op;
  const auto a = c.node().attrs.as<gpunn_matmul_attrs>();
  const bool ta = a.transpose_a != 0;
  const bool tb = a.transpose_b != 0;
  const ValueId dy = c.output_gradient();
  if (c.wants(1)) {
    c.set(1, tb ? c.add(product, matmul_attrs(true, ta), {dy, c.input(0)})
                : c.add(product, matmul_attrs(!ta, false), {c.input(0), dy}));
  }
  // Last, so that what comes before the op in the graph follows at once: a plugin may run both as one.
  if (c.wants(0)) {
    c.set(0, ta ? c.add(product, matmul_attrs(tb, true), {c.input(1), dy})
                : c.add(product, matmul_attrs(false, !tb), {dy, c.input(1)}));
  }
}

double matmul_flops(const OpSignature& s) {
  const bool transpose_a = s.attrs.as<gpunn_matmul_attrs>().transpose_a != 0;  // first in both attribute structs
  const Shape& a = s.inputs[0].shape;
  const int64_t inner = a[a.size() - (transpose_a ? 2 : 1)];
  return 2.0 * static_cast<double>(s.outputs[0].elements()) * static_cast<double>(inner);
}

// y[m,n] = activation(sum over k of op(a)[m,k] op(b)[k,n] + bias[n]); bias may be nullptr.
void multiply(ReferenceCall& call, bool transpose_a, bool transpose_b, const Values* bias, int32_t activation) {
  const Values& a = call.in(0);
  const Values& b = call.in(1);
  const int64_t rows = call.in_dim(0, transpose_a ? 1 : 0);
  const int64_t inner = call.in_dim(0, transpose_a ? 0 : 1);
  const int64_t columns = call.in_dim(1, transpose_b ? 0 : 1);
  call.require(call.in_dim(1, transpose_b ? 1 : 0) == inner, "the same inner dimension in a and b");
  call.require(call.out_type().shape == Shape{rows, columns}, "y[M,N]");
  call.require(bias == nullptr || static_cast<int64_t>(bias->size()) == columns, "bias[N]");

  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const double left = transpose_a ? a[at(k * rows + m)] : a[at(m * inner + k)];
        const double right = transpose_b ? b[at(n * inner + k)] : b[at(k * columns + n)];
        sum += left * right;
      }
      if (bias != nullptr) sum += (*bias)[at(n)];
      call.out()[at(m * columns + n)] = activate(activation, sum);
    }
  }
}

void matmul_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_matmul_attrs>();
  multiply(call, attrs.transpose_a != 0, attrs.transpose_b != 0, nullptr, GPUNN_ACTIVATION_NONE);
}

double matmul_terms(const OpSignature& s) {
  const bool transpose_a = s.attrs.as<gpunn_matmul_attrs>().transpose_a != 0;
  return static_cast<double>(s.inputs.at(0).shape[transpose_a ? 0 : 1]);
}

struct Size {
  int64_t m, n, k;
};

// Vectors and single elements; primes; just under and over usual tiles; deep and flat; several cache blocks each way.
const std::vector<Size> kMatmulSizes = {{1, 1, 1},      {1, 1, 17},    {1, 13, 1},    {5, 1, 3},       {2, 3, 5},
                                        {7, 11, 13},    {16, 16, 16},  {31, 33, 29},  {64, 64, 64},    {65, 63, 66},
                                        {127, 65, 255}, {1, 129, 513}, {513, 1, 37},  {257, 129, 513}, {128, 10, 84},
                                        {10, 84, 128},  {3, 1031, 2},  {4, 5, 20011}, {0, 4, 3},       {3, 0, 4},
                                        {3, 4, 0},      {19, 23, 1}};

// Every remainder of 16 in each dimension, and one dimension longer than 11 and 16 bits hold.
std::vector<Size> remainders_and_long() {
  std::vector<Size> sizes;
  for (int64_t i = 17; i <= 32; ++i) sizes.insert(sizes.end(), {{i, 21, 35}, {21, i, 35}, {21, 35, i}});
  for (const int64_t large : {2'053, 65'543}) sizes.insert(sizes.end(), {{large, 3, 5}, {3, large, 5}, {3, 5, large}});
  return sizes;
}

Shape matrix(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

std::vector<CaseSpec> matmul_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [m, n, k] : kMatmulSizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        cases.push_back({.attrs = matmul_attrs(ta, tb), .inputs = {f32(matrix(m, k, ta)), f32(matrix(k, n, tb))}});
      }
    }
  }
  int turn = 0;
  for (const auto& [m, n, k] : remainders_and_long()) {
    const bool ta = turn % 2 != 0, tb = turn / 2 % 2 != 0;
    ++turn;
    cases.push_back({.attrs = matmul_attrs(ta, tb), .inputs = {f32(matrix(m, k, ta)), f32(matrix(k, n, tb))}});
  }
  cases.push_back({.attrs = matmul_attrs(false, false),
                   .inputs = {f32({67, 301}, uniform(0, 1)), f32({301, 45}, uniform(0, 1))},
                   .note = "positive"});
  return cases;
}

CaseSpec matmul_request(Written& r) {
  if (r.sizes.size() == 1) r.sizes.assign(3, r.sizes[0]);
  if (r.sizes.size() != 3) bad(r, "MxNxK, or N for NxNxN, with ta=1 or tb=1 for a transposed a or b");
  const int64_t m = r.sizes[0], n = r.sizes[1], k = r.sizes[2];
  const bool ta = take(r, "ta", 0) != 0, tb = take(r, "tb", 0) != 0;
  return {.attrs = matmul_attrs(ta, tb), .inputs = {f32(matrix(m, k, ta)), f32(matrix(k, n, tb))}};
}

// --- BATCH_MATMUL ---

void batch_matmul_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_matmul_attrs>();
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  const int64_t batch = call.out_dim(0, 0), rows = call.out_dim(0, 1), columns = call.out_dim(0, 2);
  const int64_t inner = call.in_dim(0, ta ? 1 : 2);
  const Values &a = call.in(0), &b = call.in(1);
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += a[at(i * rows * inner + (ta ? k * rows + m : m * inner + k))] *
                 b[at(i * inner * columns + (tb ? n * inner + k : k * columns + n))];
        }
        call.out()[at((i * rows + m) * columns + n)] = sum;
      }
    }
  }
}

double batch_matmul_terms(const OpSignature& s) {
  const bool transpose_a = s.attrs.as<gpunn_matmul_attrs>().transpose_a != 0;
  return static_cast<double>(s.inputs.at(0).shape[transpose_a ? 1 : 2]);
}

CaseSpec batch_matmul_case(int64_t batch, const Size& size, bool ta, bool tb) {
  Shape a = matrix(size.m, size.k, ta), b = matrix(size.k, size.n, tb);
  a.insert(a.begin(), batch);
  b.insert(b.begin(), batch);
  return {.attrs = matmul_attrs(ta, tb), .inputs = {f32(a), f32(b)}};
}

// Of one product each, of many small ones, as attention has them, of few with long sums, as Gram matrices, and of none.
std::vector<CaseSpec> batch_matmul_cases() {
  const std::vector<std::pair<int64_t, Size>> batches = {
      {1, {1, 1, 1}},   {1, {33, 29, 31}}, {5, {3, 4, 7}}, {24, {17, 17, 8}}, {24, {17, 8, 17}},  {3, {65, 70, 129}},
      {301, {1, 5, 3}}, {0, {3, 4, 5}},    {4, {3, 4, 0}}, {2053, {2, 3, 2}}, {65543, {1, 2, 1}}, {4, {64, 64, 520}}};
  std::vector<CaseSpec> cases;
  for (const auto& [batch, size] : batches) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) cases.push_back(batch_matmul_case(batch, size, ta, tb));
    }
  }
  return cases;
}

CaseSpec batch_matmul_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "BxMxNxK, with ta=1 or tb=1 for a transposed a or b");
  const bool ta = take(r, "ta", 0) != 0, tb = take(r, "tb", 0) != 0;
  return batch_matmul_case(r.sizes[0], {r.sizes[1], r.sizes[2], r.sizes[3]}, ta, tb);
}

// --- MATMUL_BIAS_ACTIVATION ---

std::vector<ValueId> matmul_bias_activation_parts(Composition& c) {
  const auto a = c.attrs<gpunn_matmul_bias_activation_attrs>();
  const ValueId product =
      c.op(GPUNN_OP_MATMUL, {c.in(0), c.in(1)}, matmul_attrs(a.transpose_a != 0, a.transpose_b != 0));
  return {bias_and_activation(c, product, c.in(2), a.activation)};
}

void matmul_bias_activation_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_matmul_bias_activation_attrs>();
  multiply(call, attrs.transpose_a != 0, attrs.transpose_b != 0, &call.in(2), attrs.activation);
}

double matmul_bias_activation_terms(const OpSignature& s) { return matmul_terms(s) + 1; }

Attributes fused_attrs(bool ta, bool tb, int32_t activation) {
  return Attributes::of(gpunn_matmul_bias_activation_attrs{
      .struct_size = 0, .transpose_a = ta, .transpose_b = tb, .activation = activation});
}

std::vector<CaseSpec> fused_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [m, n, k] : kMatmulSizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const int32_t activation = tb ? GPUNN_ACTIVATION_RELU : GPUNN_ACTIVATION_NONE;
        cases.push_back({.attrs = fused_attrs(ta, tb, activation),
                         .inputs = {f32(matrix(m, k, ta)), f32(matrix(k, n, tb)), f32({n})}});
      }
    }
  }
  int turn = 0;
  for (const auto& [m, n, k] : remainders_and_long()) {
    const bool ta = turn % 2 != 0, tb = turn / 2 % 2 != 0;
    const int32_t activation = turn % 4 == 1 ? GPUNN_ACTIVATION_NONE : GPUNN_ACTIVATION_RELU;
    ++turn;
    cases.push_back(
        {.attrs = fused_attrs(ta, tb, activation), .inputs = {f32(matrix(m, k, ta)), f32(matrix(k, n, tb)), f32({n})}});
  }
  cases.push_back({.attrs = fused_attrs(false, false, GPUNN_ACTIVATION_RELU),
                   .inputs = {f32({33, 47}), f32({47, 21}), f32({21}, uniform(-20, 20))},
                   .note = "large biases"});
  return cases;
}

CaseSpec fused_request(Written& r) {
  CaseSpec spec = matmul_request(r);
  const auto a = spec.attrs.as<gpunn_matmul_attrs>();
  spec.attrs = fused_attrs(a.transpose_a != 0, a.transpose_b != 0, GPUNN_ACTIVATION_RELU);
  spec.inputs.push_back(f32({r.sizes[1]}));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_MATMUL,
       .gradient = matmul_gradient,
       .flops = matmul_flops,
       .reference = matmul_reference,
       .tolerance = {{sum_scale(matmul_terms), "a sum of K products in any order", true}},
       .cases = matmul_cases,
       .typical = {.attrs = matmul_attrs(false, false), .inputs = repeated(2, f32({1024, 1024}))},
       .request = matmul_request},
      {.id = GPUNN_OP_BATCH_MATMUL,
       .gradient = matmul_gradient,
       .flops = matmul_flops,
       .reference = batch_matmul_reference,
       .tolerance = {{sum_scale(batch_matmul_terms), "a sum of K products in any order", true}},
       .cases = batch_matmul_cases,
       .typical = {.attrs = matmul_attrs(false, true), .inputs = repeated(2, f32({192, 197, 64}))},
       .request = batch_matmul_request},
      {.id = GPUNN_OP_MATMUL_BIAS_ACTIVATION,
       .decompose = matmul_bias_activation_parts,
       .composite = true,
       .flops = matmul_flops,
       .reference = matmul_bias_activation_reference,
       .tolerance = {{sum_scale(matmul_bias_activation_terms), "a sum of K products and the bias; ReLU adds no error",
                      true}},
       .cases = fused_cases,
       .typical = {.attrs = fused_attrs(false, true, GPUNN_ACTIVATION_RELU),
                   .inputs = {f32({1024, 1024}), f32({1024, 1024}), f32({1024})}},
       .request = fused_request},
  };
}

}  // namespace gpunn::ops::matmul
