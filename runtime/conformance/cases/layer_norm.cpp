#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<Shape> kLayerNormShapes = {{1, 1},    {1, 17},   {129, 1},  {128, 10}, {37, 123},
                                             {1031, 7}, {3, 1021}, {2, 9000}, {64, 512}, {0, 4}};

graph::Attributes attributes(float epsilon) {
  return graph::Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = epsilon});
}

Case forward_case(const Shape& x, const Generator& value, const std::string& note = {}, float epsilon = 1e-5F) {
  const Shape columns{x[1]};
  return make_case({.op = GPUNN_OP_LAYER_NORM,
                    .attrs = attributes(epsilon),
                    .inputs = {f32(x, value), f32(columns), f32(columns)},
                    .note = note});
}

// With the statistics that the forward op saves.
Case backward_case(const Shape& x, const Generator& dy, const Generator& value, const std::string& note = {}) {
  const Shape columns{x[1]}, rows{x[0]};
  return make_case({.op = GPUNN_OP_LAYER_NORM_BACKWARD,
                    .inputs = {f32(x, dy), f32(x, value), f32(columns), f32(rows), f32(rows)},
                    .note = note,
                    .derive = [](std::vector<OracleTensor>& in) {
                      const graph::Attributes attrs = attributes(1e-5F);
                      const std::vector<OracleTensor> of_forward{in[1], in[2], in[2]};
                      in[3] = forward(GPUNN_OP_LAYER_NORM, attrs, of_forward, 1);
                      in[4] = forward(GPUNN_OP_LAYER_NORM, attrs, of_forward, 2);
                    }});
}

}  // namespace

std::vector<Case> layer_norm_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const Shape& shape : kLayerNormShapes) {
    cases.push_back(forward_case(shape, uniform(-1, 3)));
    cases.push_back(backward_case(shape, uniform(), uniform(-1, 3)));
  }
  for (const Shape& shape : {Shape{19, 301}, Shape{301, 19}}) {
    cases.push_back(forward_case(shape, uniform(1000, 1001), "a mean of a thousand deviations"));
    cases.push_back(forward_case(shape, constant(3.3), "a variance of 0"));
    cases.push_back(forward_case(shape, sometimes(1e4, 97, uniform(-1e-3, 1e-3)), "outliers"));
    cases.push_back(forward_case(shape, uniform(), "", 0.5F));
    cases.push_back(forward_case(shape, sometimes(kNan, 400, uniform()), "NaN in some rows"));
    cases.push_back(backward_case(shape, uniform(), uniform(1000, 1001), "a large mean"));
    cases.push_back(backward_case(shape, uniform(99, 100), uniform(), "a large mean of dy"));
    cases.push_back(backward_case(shape, sometimes(kNan, 400, uniform()), uniform(), "NaN in dy"));
  }
  return cases;
}

}  // namespace gpunn::conformance
