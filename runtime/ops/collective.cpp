// ALL_REDUCE, as one rank runs it: nothing flows back, since a loss is a rank's own.
#include "ops/op.hpp"

namespace gpunn::ops::collective {

namespace {

// --- ALL_REDUCE ---

std::string describe_all_reduce(const Attributes& attrs) {
  return "of " + std::to_string(attrs.as<gpunn_all_reduce_attrs>().parts) + " parts";
}

void all_reduce_reference(ReferenceCall& call) {
  const int64_t parts = call.in_dim(0, 0), size = call.in_dim(0, 1);
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < parts; ++p) sum += call.in(0)[at(p * size + i)];
    call.out()[at(i)] = sum;
  }
}

std::vector<ValueId> all_reduce_parts(Composition& c) { return {c.sum(c.in(0), 1, false)}; }

double all_reduce_terms(const OpSignature& s) { return static_cast<double>(s.inputs.at(0).shape.at(0)); }

double all_reduce_flops(const OpSignature& s) { return static_cast<double>(s.inputs.at(0).elements()); }

Attributes all_reduce_attrs(int64_t parts) {
  return Attributes::of(gpunn_all_reduce_attrs{.struct_size = 0, .parts = static_cast<int32_t>(parts)});
}

std::vector<CaseSpec> all_reduce_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : std::vector<Shape>{{1, 1}, {1, 1031}, {3, 7}, {12, 129}, {2, 65537}, {4, 0}}) {
    cases.push_back({.attrs = all_reduce_attrs(x[0]), .inputs = {f32(x)}});
  }
  return cases;
}

CaseSpec all_reduce_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "parts and their size");
  return {.attrs = all_reduce_attrs(r.sizes[0]), .inputs = {f32(r.sizes)}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ALL_REDUCE,
       .decompose = all_reduce_parts,
       .composite = true,
       .flops = all_reduce_flops,
       .describe = describe_all_reduce,
       .reference = all_reduce_reference,
       .tolerance = {{sum_scale(all_reduce_terms), "a sum"}},
       .cases = all_reduce_cases,
       .typical = {.attrs = all_reduce_attrs(1), .inputs = {f32({1, 1 << 20})}},
       .request = all_reduce_request},
  };
}

}  // namespace gpunn::ops::collective
