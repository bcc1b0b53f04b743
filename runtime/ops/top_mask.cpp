// TOP_MASK: the largest elements of each row.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::top_mask {

namespace {

void top_mask_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0), size = call.in_dim(0, 1);
  for (int64_t n = 0; n < rows; ++n) {
    const double* const x = call.in(0).data() + n * size;
    const double count = call.in(1)[at(n)];
    std::vector<int64_t> order;
    for (int64_t i = 0; i < size; ++i) {
      if (!std::isnan(x[i])) order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return x[a] > x[b]; });
    for (int64_t i = 0; i < size; ++i) call.out()[at(n * size + i)] = 0;
    for (int64_t rank = 0; rank < std::ssize(order) && static_cast<double>(rank) < count; ++rank) {
      call.out()[at(n * size + order[at(rank)])] = 1;
    }
  }
}

CaseSpec masked(const Shape& shape, const Generator& x, const Generator& count, const std::string& note = {}) {
  return {.inputs = {f32(shape, x), f32({shape[0]}, count)}, .note = note};
}

std::vector<CaseSpec> top_mask_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : {Shape{1, 1}, {3, 17}, {2, 1025}, {5, 8732}, {33, 4}, {0, 5}, {2, 0}}) {
    const auto size = static_cast<double>(shape[1]);
    cases.push_back(masked(shape, uniform(-1, 1), uniform(0, size)));
    cases.push_back(masked(shape, integers(-1, 1), uniform(0, size), "equal values"));
  }
  cases.push_back(masked({2, 9}, uniform(-1, 1), constant(-3), "none"));
  cases.push_back(masked({2, 9}, uniform(-1, 1), constant(1e30), "all"));
  cases.push_back(masked({2, 9}, uniform(-1, 1), constant(kNan), "so many as a NaN"));
  cases.push_back(masked({1, 7}, listed({0, -0.0, kInf, -kInf, kNan, 0, -kInf}), constant(5), "special values"));
  return cases;
}

CaseSpec top_mask_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "N,P with count= if wanted");
  return masked(r.sizes, uniform(0, 1), constant(static_cast<double>(take_int(r, "count", 100))));
}

}  // namespace

std::vector<OpInfo> rows() {
  return {{.id = GPUNN_OP_TOP_MASK,
           .steps = true,
           .reference = top_mask_reference,
           .tolerance = {{exact_scale, "0 or 1"}},
           .cases = top_mask_cases,
           .typical = masked({32, 8732}, uniform(0, 8), constant(60)),
           .request = top_mask_request}};
}

}  // namespace gpunn::ops::top_mask
