// MIX_ROWS. Nothing flows back.
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::mix_rows {

namespace {

// --- MIX_ROWS ---

void mix_rows_reference(ReferenceCall& call) {
  const int64_t rows = call.in_dim(0, 0);
  const auto count = static_cast<int64_t>(call.in(2).at(0));
  call.require(count >= 0 && count <= rows, "a count of rows");
  const int64_t size = rows > 0 ? call.in_type(0).elements() / rows : 0;
  const Values& x = call.in(0);
  const double share = call.in(1).at(0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      call.out()[at(i * size + j)] = i < count
                                         ? share * x[at(i * size + j)] + (1 - share) * x[at((count - 1 - i) * size + j)]
                                         : x[at(i * size + j)];
    }
  }
}

std::vector<double> mix_scale(const Evaluation& e, std::size_t output) {
  std::vector<ReferenceTensor> inputs = e.inputs;
  for (double& value : inputs.at(0).values) value = std::abs(value);
  std::vector<double> scale = e.on(inputs).at(output).values;
  for (double& value : scale) value *= 4;
  return scale;
}

CaseSpec mix_case(const Shape& x, double share, int64_t counted) {
  return {.inputs = {f32(x), scalar(share), count(counted)},
          .note = "share " + std::to_string(share) + ", count " + std::to_string(counted)};
}

std::vector<CaseSpec> mix_cases() {
  std::vector<CaseSpec> cases;
  for (const double share : {0.0, 0.3, 1.0}) {
    for (const int64_t counted : {0, 1, 4, 5}) cases.push_back(mix_case({5, 3, 7, 11}, share, counted));
    cases.push_back(mix_case({1}, share, 1));
    cases.push_back(mix_case({1031}, share, 1031));
    cases.push_back(mix_case({33, 10}, share, 17));
    cases.push_back(mix_case({0, 4}, share, 0));
    cases.push_back(mix_case({4, 0}, share, 4));
  }
  return cases;
}

CaseSpec mix_request(Written& r) {
  if (r.sizes.empty()) bad(r, "N and further dimensions");
  return {.inputs = {f32(r.sizes), scalar(0.3), count(r.sizes[0])}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_MIX_ROWS,
       .flops = flops_per_output<3>,
       .reference = mix_rows_reference,
       .tolerance = {{mix_scale, "a difference, two products and a sum"}},
       .cases = mix_cases,
       .typical = {.inputs = {typical_images(), scalar(0.3), count(64)}},
       .request = mix_request},
  };
}

}  // namespace gpunn::ops::mix_rows
