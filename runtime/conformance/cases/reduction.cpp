#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

struct Reduction {
  Shape x;
  uint32_t axes;
};

const std::vector<Reduction> kReductions = {{{1}, 0b1},
                                            {{1031}, 0b1},
                                            {{7, 13}, 0b01},
                                            {{7, 13}, 0b10},
                                            {{7, 13}, 0b11},
                                            {{129, 257}, 0b01},
                                            {{129, 257}, 0b10},
                                            {{2, 3, 5, 7}, 0b0101},
                                            {{2, 3, 5, 7}, 0b1010},
                                            {{2, 3, 5, 7}, 0b1101},
                                            {{2, 3, 5, 7}, 0b0111},
                                            {{1, 5, 1}, 0b101},
                                            {{3, 4}, 0},
                                            {{65537}, 0b1},
                                            {{2, 2, 2, 2, 3, 3}, 0b010110}};

Case norm(const Shape& shape, const Generator& x = uniform(), const std::string& note = {}) {
  return make_case({.op = GPUNN_OP_NORM, .inputs = {f32(shape, x)}, .note = note});
}

void add_norms(std::vector<Case>& cases) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& shape : std::vector<Shape>{{}, {1}, {0}, {7}, {255}, {256}, {257}, {1031}, {3, 5, 7}, {70001}}) {
    cases.push_back(norm(shape));
  }
  cases.push_back(norm({1048583}));
  cases.push_back(norm({1031}, constant(0), "zeros"));
  cases.push_back(norm({1031}, uniform(1e15, 1e16), "large"));
  cases.push_back(norm({1031}, uniform(-1e-14, 1e-14), "small"));
  cases.push_back(norm({70001}, sometimes(1e6, 9973, uniform()), "a few that outweigh the others"));
  cases.push_back(norm({1031}, sometimes(-kInf, 100, uniform()), "infinite"));
  cases.push_back(norm({1031}, sometimes(kNan, 100, uniform()), "NaN"));
}

Case reduce(const Reduction& r, int32_t kind, bool keep_dims, const Generator& x = uniform()) {
  const gpunn_reduce_attrs attrs{.struct_size = 0, .kind = kind, .axes = r.axes, .keep_dims = keep_dims};
  return make_case({.op = GPUNN_OP_REDUCE, .attrs = graph::Attributes::of(attrs), .inputs = {f32(r.x, x)}});
}

}  // namespace

std::vector<Case> reduction_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  add_norms(cases);
  for (const Reduction& r : kReductions) {
    cases.push_back(reduce(r, GPUNN_REDUCE_SUM, false));
    cases.push_back(reduce(r, GPUNN_REDUCE_MEAN, true));
    cases.push_back(reduce(r, GPUNN_REDUCE_MAX, false, uniform(-2, -1)));
  }
  for (const auto& [rows, count] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 0}, {7, 7}, {7, 3}, {128, 128}, {128, 96}, {1031, 1030}, {100003, 99991}, {5, 0}}) {
    const InputSpec counted = i32({}, constant(static_cast<double>(count)));
    const std::string note = "count " + std::to_string(count);
    // What lies behind the count must not be looked at.
    const Generator tail = [n = count](Random& random, int64_t i) { return i < n ? random.uniform(-1, 1) : kNan; };
    cases.push_back(make_case({.op = GPUNN_OP_MEAN_ROWS, .inputs = {f32({rows}, tail), counted}, .note = note}));
    cases.push_back(
        make_case({.op = GPUNN_OP_MEAN_ROWS_BACKWARD,
                   .attrs = graph::Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                   .inputs = {f32({}), counted},
                   .note = note}));
  }
  return cases;
}

}  // namespace gpunn::conformance
