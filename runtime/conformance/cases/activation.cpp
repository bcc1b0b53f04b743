#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

using graph::Attributes;

constexpr double kActivationNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// One element, sizes that no vector width divides, and one large enough to be shared among threads.
const std::vector<Shape> kActivationShapes = {{}, {1}, {7}, {64}, {1000}, {2, 3, 5, 7}, {1, 1, 1, 1}, {262147}, {0, 3}};
const Shape kSpecial{5, 31};

Attributes slope(float value) { return Attributes::of(gpunn_leaky_relu_attrs{.struct_size = 0, .slope = value}); }

Attributes gelu(bool tanh) { return Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = tanh ? 1 : 0}); }

// Both ways at every shape. `second` is what the backward reads beside dy.
void add_both(std::vector<Case>& cases, int32_t op, int32_t backward, const Attributes& attrs, const Generator& x,
              const Generator& second) {
  for (const Shape& shape : kActivationShapes) {
    cases.push_back(make_case({.op = op, .attrs = attrs, .inputs = {f32(shape, x)}}));
    cases.push_back(make_case({.op = backward, .attrs = attrs, .inputs = {f32(shape), f32(shape, second)}}));
  }
}

void add_at(std::vector<Case>& cases, int32_t op, const Attributes& attrs, std::vector<double> values,
            const std::string& note) {
  cases.push_back(
      make_case({.op = op, .attrs = attrs, .inputs = {f32(kSpecial, listed(std::move(values)))}, .note = note}));
}

void add_backward_at(std::vector<Case>& cases, int32_t op, const Attributes& attrs, std::vector<double> values,
                     const std::string& note) {
  cases.push_back(make_case(
      {.op = op, .attrs = attrs, .inputs = {f32(kSpecial), f32(kSpecial, listed(std::move(values)))}, .note = note}));
}

void add_relu(std::vector<Case>& cases) {
  add_both(cases, GPUNN_OP_RELU, GPUNN_OP_RELU_BACKWARD, {}, uniform(), sometimes(0, 2, uniform(0, 1)));
  const std::vector<double> extremes{0.0, -0.0, kActivationNan, kInf, -kInf, 1.5, -1.5, 3e38, -3e38, 1e-30, -1e-30};
  add_at(cases, GPUNN_OP_RELU, {}, extremes, "NaN and infinities");
  add_backward_at(cases, GPUNN_OP_RELU_BACKWARD, {}, {0.0, -0.0, 1e-30, kInf, 2.0, 0.0, 1.0},
                  "y of 0, -0 and infinity");
  cases.push_back(
      make_case({.op = GPUNN_OP_RELU_BACKWARD,
                 .inputs = {f32(kSpecial, listed({kActivationNan, 1.0, kInf})), f32(kSpecial, listed({0.0, 1.0}))},
                 .note = "dy of NaN where y is 0"}));
  for (const float value : {0.01F, 0.0F, -0.5F}) {
    add_at(cases, GPUNN_OP_LEAKY_RELU, slope(value), {0.0, -0.0, kActivationNan, kInf, 1.5, -1.5, 3e38, -3e38},
           "NaN and infinity");
    add_backward_at(cases, GPUNN_OP_LEAKY_RELU_BACKWARD, slope(value), {0.0, -0.0, 1e-30, -1e-30, kInf, -kInf, 2.0},
                    "x of 0 and infinity");
  }
  add_both(cases, GPUNN_OP_LEAKY_RELU, GPUNN_OP_LEAKY_RELU_BACKWARD, slope(0.2F), uniform(), uniform());
}

void add_saturating(std::vector<Case>& cases) {
  // Beyond 104 e^-x leaves f32, beyond 9 tanh is 1 in it.
  const std::vector<double> far{0.0,   -0.0, kActivationNan, 1e-30, -1e-30, 1e-4, -1e-4, 0.6,  -0.6,
                                0.7,   9.5,  -9.5,           16.7,  -16.7,  87.0, -87.0, 88.8, -89,
                                103.0, -103, 150.0,          -150,  3e38,   -3e38};
  std::vector<double> infinite = far;
  infinite.push_back(kInf);
  infinite.push_back(-kInf);
  add_both(cases, GPUNN_OP_SIGMOID, GPUNN_OP_SIGMOID_BACKWARD, {}, uniform(-8, 8), uniform(0, 1));
  add_at(cases, GPUNN_OP_SIGMOID, {}, infinite, "far out, and NaN");
  add_backward_at(cases, GPUNN_OP_SIGMOID_BACKWARD, {}, {0.0, 1.0, 0.5, 1e-30, kActivationNan}, "y of 0, 1 and NaN");
  add_both(cases, GPUNN_OP_TANH, GPUNN_OP_TANH_BACKWARD, {}, uniform(-4, 4), uniform());
  add_at(cases, GPUNN_OP_TANH, {}, infinite, "far out, and NaN");
  add_backward_at(cases, GPUNN_OP_TANH_BACKWARD, {}, {0.0, 1.0, -1.0, 0.999999, 1e-30, kActivationNan},
                  "y of 1, -1 and NaN");
  add_both(cases, GPUNN_OP_SILU, GPUNN_OP_SILU_BACKWARD, {}, uniform(-8, 8), uniform(-8, 8));
  add_at(cases, GPUNN_OP_SILU, {}, far, "far out, and NaN");
  add_backward_at(cases, GPUNN_OP_SILU_BACKWARD, {}, far, "far out, and NaN");
  for (const bool tanh : {false, true}) {
    add_both(cases, GPUNN_OP_GELU, GPUNN_OP_GELU_BACKWARD, gelu(tanh), uniform(-4, 4), uniform(-4, 4));
    add_at(cases, GPUNN_OP_GELU, gelu(tanh), far, "far out, and NaN");
    add_backward_at(cases, GPUNN_OP_GELU_BACKWARD, gelu(tanh), far, "far out, and NaN");
  }
}

}  // namespace

std::vector<Case> activation_cases() {
  std::vector<Case> cases;
  add_relu(cases);
  add_saturating(cases);
  return cases;
}

}  // namespace gpunn::conformance
