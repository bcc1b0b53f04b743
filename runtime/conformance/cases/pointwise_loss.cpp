#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<Shape> kPointwiseShapes = {{1},      {37},         {1, 1},    {5, 17}, {128, 10},
                                             {128, 1}, {3, 2, 5, 7}, {2, 4099}, {0, 3}};

graph::Attributes huber(float delta) {
  return graph::Attributes::of(gpunn_huber_attrs{.struct_size = 0, .delta = delta});
}

// A loss and its backward.
void add_pair(std::vector<Case>& cases, int32_t op, const graph::Attributes& attrs, const Shape& shape,
              const Generator& x, const Generator& target, const std::string& note) {
  cases.push_back(make_case({.op = op, .attrs = attrs, .inputs = {f32(shape, x), f32(shape, target)}, .note = note}));
  cases.push_back(make_case(
      {.op = op + 1, .attrs = attrs, .inputs = {f32({shape[0]}), f32(shape, x), f32(shape, target)}, .note = note}));
}

}  // namespace

std::vector<Case> pointwise_loss_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const Shape& shape : kPointwiseShapes) {
    add_pair(cases, GPUNN_OP_BCE_LOGITS_LOSS, {}, shape, uniform(-4, 4), uniform(0, 1), "");
    add_pair(cases, GPUNN_OP_HUBER_LOSS, huber(0.75F), shape, uniform(-2, 2), uniform(-1, 1), "");
  }
  const Shape shape{19, 23};
  add_pair(cases, GPUNN_OP_BCE_LOGITS_LOSS, {}, shape, uniform(-200, 200), integers(0, 1), "sure of itself");
  add_pair(cases, GPUNN_OP_BCE_LOGITS_LOSS, {}, shape, listed({1e36, -1e36, 0.0, -0.0, 1e-30}),
           listed({1.0, 0.0, 0.5, 1.0, 0.0, 0.0}), "far beyond exp's range");
  add_pair(cases, GPUNN_OP_BCE_LOGITS_LOSS, {}, shape, listed({1.0, kNan, -1.0}), constant(0), "NaN");
  add_pair(cases, GPUNN_OP_HUBER_LOSS, huber(1), shape, listed({1.0, -1.0, 2.0, -2.0, 0.0}), constant(0), "at delta");
  add_pair(cases, GPUNN_OP_HUBER_LOSS, huber(1e-3F), shape, uniform(-900, 900), uniform(), "all far away");
  add_pair(cases, GPUNN_OP_HUBER_LOSS, huber(1e3F), shape, uniform(), uniform(), "all near");
  add_pair(cases, GPUNN_OP_HUBER_LOSS, huber(1), shape, listed({1.0, kNan, -1.0}), uniform(), "NaN");
  return cases;
}

}  // namespace gpunn::conformance
