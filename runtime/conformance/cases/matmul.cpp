#include <gpunn/ops.h>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

struct Size {
  int64_t m, n, k;
};

// Vectors and single elements; primes; just under and over usual tiles; deep and flat; several cache blocks each way.
const std::vector<Size> kMatmulSizes = {{1, 1, 1},      {1, 1, 17},    {1, 13, 1},    {5, 1, 3},       {2, 3, 5},
                                        {7, 11, 13},    {16, 16, 16},  {31, 33, 29},  {64, 64, 64},    {65, 63, 66},
                                        {127, 65, 255}, {1, 129, 513}, {513, 1, 37},  {257, 129, 513}, {128, 10, 84},
                                        {10, 84, 128},  {3, 1031, 2},  {4, 5, 20011}, {0, 4, 3},       {3, 4, 0}};

Shape shape(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

graph::Attributes plain(bool ta, bool tb) {
  return graph::Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb});
}

graph::Attributes fused(bool ta, bool tb, int32_t activation) {
  return graph::Attributes::of(gpunn_matmul_bias_activation_attrs{
      .struct_size = 0, .transpose_a = ta, .transpose_b = tb, .activation = activation});
}

// Of one product each, of many small ones, as attention has them, and of none.
void add_batches(std::vector<Case>& cases) {
  const std::vector<std::pair<int64_t, Size>> batches = {{1, {1, 1, 1}},    {1, {33, 29, 31}}, {5, {3, 4, 7}},
                                                         {24, {17, 17, 8}}, {24, {17, 8, 17}}, {3, {65, 70, 129}},
                                                         {301, {1, 5, 3}},  {0, {3, 4, 5}},    {4, {3, 4, 0}}};
  for (const auto& [batch, size] : batches) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        Shape a = shape(size.m, size.k, ta), b = shape(size.k, size.n, tb);
        a.insert(a.begin(), batch);
        b.insert(b.begin(), batch);
        cases.push_back(make_case({.op = GPUNN_OP_BATCH_MATMUL, .attrs = plain(ta, tb), .inputs = {f32(a), f32(b)}}));
      }
    }
  }
}

}  // namespace

std::vector<Case> matmul_cases() {
  std::vector<Case> cases;
  for (const auto& [m, n, k] : kMatmulSizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const InputSpec a = f32(shape(m, k, ta)), b = f32(shape(k, n, tb));
        cases.push_back(make_case({.op = GPUNN_OP_MATMUL, .attrs = plain(ta, tb), .inputs = {a, b}}));
        const int32_t activation = tb ? GPUNN_ACTIVATION_RELU : GPUNN_ACTIVATION_NONE;
        cases.push_back(make_case(
            {.op = GPUNN_OP_MATMUL_BIAS_ACTIVATION, .attrs = fused(ta, tb, activation), .inputs = {a, b, f32({n})}}));
      }
    }
  }
  cases.push_back(make_case({.op = GPUNN_OP_MATMUL,
                             .attrs = plain(false, false),
                             .inputs = {f32({67, 301}, uniform(0, 1)), f32({301, 45}, uniform(0, 1))},
                             .note = "positive"}));
  cases.push_back(make_case({.op = GPUNN_OP_MATMUL_BIAS_ACTIVATION,
                             .attrs = fused(false, false, GPUNN_ACTIVATION_RELU),
                             .inputs = {f32({33, 47}), f32({47, 21}), f32({21}, uniform(-20, 20))},
                             .note = "large biases"}));
  add_batches(cases);
  return cases;
}

}  // namespace gpunn::conformance
