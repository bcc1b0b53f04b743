#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

struct Upsampling {
  Shape x;
  int32_t factor[2];
};

const std::vector<Upsampling> kUpsamplings = {
    {{1, 1, 1, 1}, {1, 1}}, {{2, 3, 1, 1}, {7, 7}},  // all of y is one element
    {{2, 3, 5, 7}, {2, 2}}, {{2, 3, 5, 7}, {3, 3}},    {{1, 2, 6, 5}, {1, 4}},   {{1, 2, 6, 5}, {5, 1}},
    {{3, 1, 2, 1}, {2, 6}}, {{1, 2, 1, 17}, {3, 2}},   {{1, 1, 129, 3}, {2, 3}},  // far from the start
    {{0, 3, 4, 4}, {2, 2}}, {{2, 32, 14, 15}, {2, 2}}, {{1, 1, 3, 2}, {16, 31}},
};

}  // namespace

std::vector<Case> upsampling_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const Upsampling& u : kUpsamplings) {
    for (const int32_t mode : {GPUNN_UPSAMPLE_NEAREST, GPUNN_UPSAMPLE_BILINEAR}) {
      const auto attrs = graph::Attributes::of(
          gpunn_upsample2d_attrs{.struct_size = 0, .factor = {u.factor[0], u.factor[1]}, .mode = mode});
      const Shape y{u.x[0], u.x[1], u.x[2] * u.factor[0], u.x[3] * u.factor[1]};
      const auto add = [&](const Generator& values, const std::string& note) {
        cases.push_back(
            make_case({.op = GPUNN_OP_UPSAMPLE2D, .attrs = attrs, .inputs = {f32(u.x, values)}, .note = note}));
        cases.push_back(
            make_case({.op = GPUNN_OP_UPSAMPLE2D_BACKWARD, .attrs = attrs, .inputs = {f32(y, values)}, .note = note}));
      };
      add(uniform(), "");
      add(uniform(2, 3), "all above 0, so that nothing cancels");
      add(sometimes(kNan, 13, uniform()), "NaN stays among its neighbours");
    }
  }
  return cases;
}

}  // namespace gpunn::conformance
