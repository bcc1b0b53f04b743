#include <gpunn/ops.h>

#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

struct Response {
  Shape x;
  int32_t size;
};

// Fewer channels than neighbours, as many, more; even sizes, which reach further back; one neighbour; nothing.
const std::vector<Response> kResponses = {
    {{1, 1}, 1},          {{1, 1, 1, 1}, 5},  {{2, 3, 5, 7}, 5},    {{2, 3, 5, 7}, 2},
    {{16, 6, 13, 13}, 5}, {{128, 10}, 3},     {{37, 123}, 4},       {{4, 5, 11}, 5},
    {{3, 4, 9}, 9},       {{2, 33, 1, 3}, 7}, {{1, 17, 40, 41}, 5}, {{5, 96, 4, 4}, 5},
    {{3, 7, 2, 2}, 1},    {{0, 4, 3}, 5},     {{2, 3, 0}, 3},       {{2, 11, 6}, 100'000}};

graph::Attributes attributes(int32_t size, float alpha, float beta, float k) {
  return graph::Attributes::of(
      gpunn_local_response_norm_attrs{.struct_size = 0, .size = size, .alpha = alpha, .beta = beta, .k = k});
}

void add(std::vector<Case>& cases, const Response& r, const graph::Attributes& attrs, const Generator& x,
         const std::string& note = {}) {
  cases.push_back(
      make_case({.op = GPUNN_OP_LOCAL_RESPONSE_NORM, .attrs = attrs, .inputs = {f32(r.x, x)}, .note = note}));
  cases.push_back(make_case(
      {.op = GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, .attrs = attrs, .inputs = {f32(r.x), f32(r.x, x)}, .note = note}));
}

}  // namespace

std::vector<Case> local_response_norm_cases() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases;
  for (const Response& r : kResponses) add(cases, r, attributes(r.size, 1, 0.75F, 1), uniform(-3, 3));
  const Response images{{3, 13, 5, 6}, 5};
  add(cases, images, attributes(5, 1e-4F, 0.75F, 2), uniform(-100, 100), "Krizhevsky's");
  add(cases, images, attributes(5, 2, 1.5F, 0.25F), uniform());
  add(cases, images, attributes(5, 0, 0.75F, 2), uniform());
  add(cases, images, attributes(5, 1, 0, 1), uniform());
  add(cases, images, attributes(5, 1, -1, 1), uniform());
  add(cases, images, attributes(5, 1, 0.75F, 1e-3F), sometimes(0, 2, uniform(-1e3, 1e3)), "zeros and large values");
  add(cases, images, attributes(5, 1, 0.75F, 1), sometimes(kNan, 300, uniform()), "NaN in the neighbourhood");
  return cases;
}

}  // namespace gpunn::conformance
