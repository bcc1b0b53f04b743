#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<Shape> kSoftmaxShapes = {{1, 1},  {1, 2},    {3, 10},   {128, 10}, {64, 1},
                                           {5, 17}, {33, 129}, {7, 1000}, {1031, 3}, {0, 10}};

void add_forward(std::vector<Case>& cases, const Shape& shape, const Generator& x, const std::string& note) {
  for (const int32_t op : {GPUNN_OP_SOFTMAX, GPUNN_OP_LOG_SOFTMAX}) {
    cases.push_back(make_case({.op = op, .inputs = {f32(shape, x)}, .note = note}));
  }
}

// The second input, made from logits, becomes the forward op's output.
void add_backward(std::vector<Case>& cases, const Shape& shape, const Generator& x, const std::string& note) {
  for (const auto& [op, of] : {std::pair{GPUNN_OP_SOFTMAX_BACKWARD, GPUNN_OP_SOFTMAX},
                               std::pair{GPUNN_OP_LOG_SOFTMAX_BACKWARD, GPUNN_OP_LOG_SOFTMAX}}) {
    cases.push_back(
        make_case({.op = op,
                   .inputs = {f32(shape), f32(shape, x)},
                   .note = note,
                   .derive = [of = of](std::vector<OracleTensor>& in) { in[1] = forward(of, {}, {in[1]}); }}));
  }
}

}  // namespace

std::vector<Case> softmax_cases() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<Case> cases;
  for (const Shape& shape : kSoftmaxShapes) {
    add_forward(cases, shape, uniform(-4, 4), "");
    add_backward(cases, shape, uniform(-4, 4), "");
  }
  const Shape shape{19, 23};
  add_forward(cases, shape, uniform(-80, 80), "far apart");
  add_forward(cases, shape, uniform(9000, 9010), "large");
  add_forward(cases, shape, uniform(-9010, -9000), "large and below 0");
  add_forward(cases, shape, constant(3), "all equal");
  add_forward(cases, shape, listed({1.0, 2.0, -kInf, 0.5}), "minus infinity");
  add_forward(cases, shape, listed({3e38, -3e38, 0.0}), "differences that overflow");
  add_backward(cases, shape, uniform(-80, 80), "far apart");
  return cases;
}

}  // namespace gpunn::conformance
