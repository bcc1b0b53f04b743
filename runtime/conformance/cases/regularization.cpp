#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<int64_t> kElementCounts = {0, 1, 7, 64, 1031, 70001};

Case clip(int64_t n, double norm, float max_norm, bool rescale, const std::string& note) {
  const gpunn_clip_norm_attrs attrs{
      .struct_size = 0, .max_norm = max_norm, .epsilon = 1e-6F, .rescale = rescale ? 1 : 0};
  return make_case({.op = GPUNN_OP_CLIP_NORM,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32({n}), f32({}, constant(norm))},
                    .note = note});
}

Case l1(int64_t n, float weight, int64_t decayed) {
  const gpunn_l1_attrs attrs{.struct_size = 0, .weight = weight, .decayed = decayed};
  return make_case({.op = GPUNN_OP_L1_GRADIENT,
                    .attrs = graph::Attributes::of(attrs),
                    .inputs = {f32({n}), f32({n}, sometimes(0, 3, uniform()))},
                    .note = std::to_string(decayed) + " decay"});
}

}  // namespace

std::vector<Case> regularization_cases() {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const int64_t n : kElementCounts) {
    cases.push_back(clip(n, 7.3, 1.5F, false, "clipped"));
    cases.push_back(clip(n, 0.3, 1.5F, false, "left as it is"));
    cases.push_back(clip(n, 0.3, 1.5F, true, "made longer"));
    cases.push_back(l1(n, 0.01F, n));
    if (n >= 3) cases.push_back(l1(n, 0.01F, n / 3));
    if (n > 0) cases.push_back(l1(n, 0.01F, 0));
  }
  cases.push_back(clip(31, 0, 1.5F, false, "norm 0"));
  for (const bool rescale : {false, true}) {
    cases.push_back(clip(31, kInf, 1.5F, rescale, "infinite norm"));
    cases.push_back(clip(31, kNan, 1.5F, rescale, "norm NaN"));
  }
  return cases;
}

}  // namespace gpunn::conformance
