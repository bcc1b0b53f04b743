#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<Shape> kHingeShapes = {{1, 1},    {1, 2},    {3, 10},   {128, 10}, {64, 1},
                                         {33, 129}, {7, 1000}, {1031, 3}, {0, 10}};

// Sums and differences of these are exact, and some are exactly the margin: which classes count does not hang on a
// rounding.
Generator eighths() {
  return [](Random& random, int64_t) { return static_cast<double>(random.below(65) - 32) / 8; };
}

void add_pair(std::vector<Case>& cases, const Shape& shape, float margin, int32_t power, const Generator& x,
              const std::string& note = {}) {
  const auto attrs = graph::Attributes::of(gpunn_hinge_attrs{.struct_size = 0, .margin = margin, .power = power});
  const InputSpec labels = i32({shape[0]}, integers(0, shape[1] - 1));
  cases.push_back(
      make_case({.op = GPUNN_OP_HINGE_LOSS, .attrs = attrs, .inputs = {f32(shape, x), labels}, .note = note}));
  cases.push_back(make_case({.op = GPUNN_OP_HINGE_LOSS_BACKWARD,
                             .attrs = attrs,
                             .inputs = {f32({shape[0]}), f32(shape, x), labels},
                             .note = note}));
}

}  // namespace

std::vector<Case> hinge_loss_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const Shape& shape : kHingeShapes) {
    add_pair(cases, shape, 1, 1, eighths());
    add_pair(cases, shape, 0.5F, 2, eighths());
  }
  const Shape shape{19, 23};
  for (const int32_t power : {1, 2}) {
    add_pair(cases, shape, 1, power, constant(-2), "all equal");
    add_pair(cases, shape, 0, power, eighths(), "no margin");
    add_pair(cases, shape, 1, power, integers(-9000, 9000), "far apart");
    add_pair(cases, shape, 1, power, sometimes(kNan, 50, eighths()), "NaN");
  }
  return cases;
}

}  // namespace gpunn::conformance
