// Arithmetic with broadcasting, and functions of one number.
#include <gpunn/ops.h>

#include <algorithm>
#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

// One element, sizes that no vector width divides, one large enough to be shared among threads, and nothing.
const std::vector<Shape> kArithmeticShapes = {{}, {1}, {7}, {64}, {1000}, {2, 3, 5, 7}, {1, 1, 1, 1}, {262147}, {0, 3}};

struct Pair {
  Shape a, b;
};

// Rows, columns, channels and single numbers repeated, on either side or on both.
const std::vector<Pair> kBroadcastPairs = {{{5, 7}, {7}},
                                           {{7}, {5, 7}},
                                           {{5, 7}, {5, 1}},
                                           {{5, 1}, {1, 7}},
                                           {{2, 3, 5, 7}, {3, 1, 1}},
                                           {{1, 3, 1, 7}, {2, 3, 5, 7}},
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

constexpr double kInfinite = std::numeric_limits<double>::infinity();
const std::vector<double> kExtremes = {
    0.0, -0.0, std::numeric_limits<double>::quiet_NaN(), kInfinite, -kInfinite, 1.5, -1.5, 3e38, -3e38, 1e-30, -1e-30};

struct Operands {
  int32_t op;
  Generator a, b;
};

Case of_two(const Operands& of, const Shape& a, const Shape& b, const std::string& note = {}) {
  return make_case({.op = of.op, .inputs = {f32(a, of.a), f32(b, of.b)}, .note = note});
}

void add_binary(std::vector<Case>& cases, const Operands& of) {
  for (const Shape& shape : kArithmeticShapes) cases.push_back(of_two(of, shape, shape));
  for (const Pair& pair : kBroadcastPairs) cases.push_back(of_two(of, pair.a, pair.b));
  // Each of them with each other, 11 and 11.
  const Operands extreme{of.op, listed(kExtremes), listed(kExtremes)};
  cases.push_back(of_two(extreme, {11, 1}, {11}, "NaN and infinities"));
}

Case select(const Shape& condition, const Shape& a, const Shape& b, const std::string& note = {},
            const Generator& chosen = integers(0, 1), const Generator& value = uniform()) {
  return make_case(
      {.op = GPUNN_OP_SELECT, .inputs = {f32(condition, chosen), f32(a, value), f32(b, value)}, .note = note});
}

void add_selects(std::vector<Case>& cases) {
  for (const Shape& shape : kArithmeticShapes) cases.push_back(select(shape, shape, shape));
  for (const Pair& pair : kBroadcastPairs) {
    cases.push_back(select(pair.a, pair.b, {}));
    cases.push_back(select(pair.b, pair.a, pair.a, "one of the condition's"));
    cases.push_back(select({}, pair.a, pair.b, "one condition"));
  }
  cases.push_back(select({5, 31}, {5, 31}, {5, 31}, "any condition", listed(kExtremes)));
  cases.push_back(select({11, 1}, {11}, {11}, "NaN and infinities", integers(0, 1), listed(kExtremes)));
}

Case expand(const Shape& x, const Shape& y) {
  gpunn_expand_attrs attrs{};
  attrs.rank = static_cast<int32_t>(y.size());
  std::copy(y.begin(), y.end(), attrs.dim);
  return make_case({.op = GPUNN_OP_EXPAND, .attrs = graph::Attributes::of(attrs), .inputs = {f32(x)}});
}

void add_unary(std::vector<Case>& cases, int32_t op, double low, double high) {
  for (const Shape& shape : kArithmeticShapes) {
    cases.push_back(make_case({.op = op, .inputs = {f32(shape, uniform(low, high))}}));
  }
  cases.push_back(make_case({.op = op, .inputs = {f32({5, 31}, listed(kExtremes))}, .note = "NaN and infinities"}));
  cases.push_back(make_case({.op = op, .inputs = {f32({1009}, uniform(0, 1e-6))}, .note = "near 0"}));
  cases.push_back(make_case({.op = op, .inputs = {f32({1009}, uniform(0.99, 1.01))}, .note = "near 1"}));
}

}  // namespace

std::vector<Case> arithmetic_cases() {
  std::vector<Case> cases;
  for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SUB, GPUNN_OP_MUL, GPUNN_OP_MAXIMUM, GPUNN_OP_MINIMUM}) {
    add_binary(cases, {op, uniform(), uniform()});
  }
  add_binary(cases, {GPUNN_OP_DIV, uniform(), sometimes(-0.5, 3, uniform(0.25, 4))});
  add_binary(cases, {GPUNN_OP_POW, uniform(0.1, 5), uniform(-4, 4)});
  cases.push_back(of_two({GPUNN_OP_POW, uniform(-3, 3), integers(-3, 4)}, {37, 11}, {37, 11}, "of negative numbers"));
  for (const int32_t op : {GPUNN_OP_EQUAL, GPUNN_OP_LESS, GPUNN_OP_LESS_EQUAL}) {
    add_binary(cases, {op, integers(-2, 2), integers(-2, 2)});
  }
  add_selects(cases);
  const std::vector<Pair> expansions = {{{}, {}},
                                        {{}, {3, 4}},
                                        {{1}, {262147}},
                                        {{7}, {5, 7}},
                                        {{5, 1}, {5, 7}},
                                        {{5, 7}, {5, 7}},
                                        {{3, 1, 1}, {2, 3, 5, 7}},
                                        {{129, 1}, {129, 257}},
                                        {{2, 1, 3, 1, 2}, {2, 5, 3, 4, 2}},
                                        {{0, 1}, {0, 4}},
                                        {{1, 4}, {0, 4}}};
  for (const Pair& pair : expansions) {
    cases.push_back(expand(pair.a, pair.b));
  }
  add_unary(cases, GPUNN_OP_EXP, -20, 20);
  add_unary(cases, GPUNN_OP_LOG, 0.01, 100);
  add_unary(cases, GPUNN_OP_SQRT, 0, 100);
  add_unary(cases, GPUNN_OP_RSQRT, 0.01, 100);
  add_unary(cases, GPUNN_OP_ERF, -4, 4);
  return cases;
}

}  // namespace gpunn::conformance
