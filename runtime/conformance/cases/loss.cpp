#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<Shape> kLossShapes = {{1, 1},    {1, 2},    {3, 10},   {128, 10}, {64, 1},
                                        {33, 129}, {7, 1000}, {1031, 3}, {0, 10}};
const std::vector<Shape> kLossRows = {{1}, {37}, {1, 1}, {5, 17}, {128, 10}, {3, 2, 5, 7}, {2, 4099}, {0, 3}};

InputSpec labels(const Shape& logits) { return i32({logits[0]}, integers(0, logits[1] - 1)); }

void to_log_probabilities(OracleTensor& x) { x = forward(GPUNN_OP_LOG_SOFTMAX, {}, {x}); }

void add_classification(std::vector<Case>& cases, const Shape& shape, const Generator& x, const std::string& note) {
  const Shape rows{shape[0]};
  const auto classes =
      graph::Attributes::of(gpunn_classes_attrs{.struct_size = 0, .classes = static_cast<int32_t>(shape[1])});
  cases.push_back(make_case({.op = GPUNN_OP_NLL_LOSS,
                             .inputs = {f32(shape, x), labels(shape)},
                             .note = note,
                             .derive = [](std::vector<OracleTensor>& in) { to_log_probabilities(in[0]); }}));
  cases.push_back(make_case(
      {.op = GPUNN_OP_NLL_LOSS_BACKWARD, .attrs = classes, .inputs = {f32(rows), labels(shape)}, .note = note}));
  cases.push_back(
      make_case({.op = GPUNN_OP_SOFTMAX_CROSS_ENTROPY, .inputs = {f32(shape, x), labels(shape)}, .note = note}));
  cases.push_back(make_case({.op = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                             .inputs = {f32(rows), f32(shape, x), labels(shape)},
                             .note = note,
                             .derive = [](std::vector<OracleTensor>& in) { to_log_probabilities(in[1]); }}));
}

void add_soft(std::vector<Case>& cases, const Shape& shape, const Generator& x, const Generator& target,
              const std::string& note) {
  cases.push_back(
      make_case({.op = GPUNN_OP_SOFT_CROSS_ENTROPY, .inputs = {f32(shape, x), f32(shape, target)}, .note = note}));
  cases.push_back(make_case({.op = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD,
                             .inputs = {f32({shape[0]}), f32(shape, x), f32(shape, target)},
                             .note = note,
                             .derive = [](std::vector<OracleTensor>& in) { to_log_probabilities(in[1]); }}));
}

// Targets are shares of a row; that they sum to 1 is not asked for.
void add_soft_targets(std::vector<Case>& cases) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& shape : kLossShapes) add_soft(cases, shape, uniform(-4, 4), uniform(0, 1), "");
  const Shape shape{19, 23};
  add_soft(cases, shape, uniform(-80, 80), sometimes(0, 2, uniform(0, 1)), "far apart");
  add_soft(cases, shape, uniform(9000, 9010), uniform(0, 1), "large");
  add_soft(cases, shape, constant(-2), uniform(0, 1), "all equal");
  add_soft(cases, shape, uniform(-4, 4), uniform(-3, 3), "targets below 0");
  add_soft(cases, shape, uniform(-4, 4), constant(0), "no target");
  // Every fourth class is impossible and not aimed at.
  add_soft(cases, {5, 8}, listed({1.0, 2.0, -kInf, 0.5}), listed({0.25, 0.5, 0.0, 0.125}), "minus infinity");
  add_soft(cases, {5, 8}, listed({1.0, 2.0, 0.5}), listed({0.0, kNan, 0.5}), "NaN targets");
}

}  // namespace

std::vector<Case> loss_cases() {
  std::vector<Case> cases;
  add_soft_targets(cases);
  for (const Shape& shape : kLossShapes) add_classification(cases, shape, uniform(-4, 4), "");
  add_classification(cases, {19, 23}, uniform(-80, 80), "far apart");
  add_classification(cases, {19, 23}, uniform(9000, 9010), "large");
  add_classification(cases, {19, 23}, constant(-2), "all equal");
  for (const Shape& shape : kLossRows) {
    cases.push_back(make_case({.op = GPUNN_OP_MSE_LOSS, .inputs = {f32(shape), f32(shape)}}));
    cases.push_back(make_case({.op = GPUNN_OP_MSE_LOSS_BACKWARD, .inputs = {f32({shape[0]}), f32(shape), f32(shape)}}));
  }
  cases.push_back(make_case({.op = GPUNN_OP_MSE_LOSS,
                             .inputs = {f32({9, 31}, uniform(1000, 1001)), f32({9, 31}, uniform(1000, 1001))},
                             .note = "large and near each other"}));
  return cases;
}

}  // namespace gpunn::conformance
