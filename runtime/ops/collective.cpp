// ALL_REDUCE, REDUCE_SCATTER and ALL_GATHER. References, decompositions and cases are those of a single rank.
#include "ops/op.hpp"

namespace gpunn::ops::collective {

namespace {

// --- ALL_REDUCE ---

void all_reduce_reference(ReferenceCall& call) {
  const int64_t parts = call.in_dim(0, 0), size = call.in_dim(0, 1);
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < parts; ++p) sum += call.in(0)[at(p * size + i)];
    call.out()[at(i)] = sum;
  }
}

// Whether this rank has all parts. A step of several ranks is not made of ops of one.
bool is_alone(Composition& c) { return c.attrs<gpunn_all_reduce_attrs>().parts == c.shape(c.in(0))[0]; }

std::vector<ValueId> all_reduce_parts(Composition& c) {
  if (!is_alone(c)) return {};
  return {c.sum(c.in(0), 1, false)};
}

double all_reduce_terms(const OpSignature& s) { return static_cast<double>(s.inputs.at(0).shape.at(0)); }

double all_reduce_flops(const OpSignature& s) { return static_cast<double>(s.inputs.at(0).elements()); }

Attributes all_reduce_attrs(int64_t parts) {
  return Attributes::of(gpunn_all_reduce_attrs{.struct_size = 0, .parts = static_cast<int32_t>(parts)});
}

std::vector<CaseSpec> differentiable_sums() {
  return {{.attrs = all_reduce_attrs(1), .inputs = {f32({1, 7})}},
          {.attrs = all_reduce_attrs(3), .inputs = {f32({3, 5})}}};
}

std::vector<CaseSpec> all_reduce_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x : std::vector<Shape>{{1, 1}, {1, 1031}, {3, 7}, {12, 129}, {2, 65537}, {4, 0}}) {
    cases.push_back({.attrs = all_reduce_attrs(x[0]), .inputs = {f32(x)}});
  }
  return cases;
}

// The loss of all ranks is the sum of theirs, so what reaches x is what reaches the sums of all ranks.
void all_reduce_gradient(GradientContext& c) {
  const int64_t parts = c.node().attrs.as<gpunn_all_reduce_attrs>().parts, own = c.input_shape(0)[0];
  if (parts % own != 0) throw Error("'" + c.node().name + "': ranks with different numbers of parts have no gradient");
  graph::Expressions e = c.expressions();
  const ValueId dy = c.output_gradient();
  const ValueId sum = c.add(GPUNN_OP_ALL_REDUCE, all_reduce_attrs(parts / own), {e.view(dy, {1, c.input_shape(0)[1]})});
  c.set(0, e.expand(sum, c.input_shape(0)));
}

CaseSpec all_reduce_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "parts and their size");
  return {.attrs = all_reduce_attrs(r.sizes[0]), .inputs = {f32(r.sizes)}};
}

// --- REDUCE_SCATTER: one rank's share is everything ---

// --- ALL_GATHER ---

void all_gather_reference(ReferenceCall& call) { call.out() = call.in(0); }

std::vector<ValueId> all_gather_parts(Composition& c) {
  if (!is_alone(c)) return {};
  return {c.in(0)};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ALL_REDUCE,
       .gradient = all_reduce_gradient,
       .decompose = all_reduce_parts,
       .composite = true,
       .flops = all_reduce_flops,
       .reference = all_reduce_reference,
       .tolerance = {{sum_scale(all_reduce_terms), "a sum"}},
       .cases = all_reduce_cases,
       .differentiable = differentiable_sums,
       .typical = {.attrs = all_reduce_attrs(1), .inputs = {f32({1, 1 << 20})}},
       .request = all_reduce_request},
      {.id = GPUNN_OP_REDUCE_SCATTER,
       .decompose = all_reduce_parts,
       .composite = true,
       .flops = all_reduce_flops,
       .reference = all_reduce_reference,
       .tolerance = {{sum_scale(all_reduce_terms), "a sum"}},
       .cases = all_reduce_cases,
       .typical = {.attrs = all_reduce_attrs(1), .inputs = {f32({1, 1 << 20})}},
       .request = all_reduce_request},
      {.id = GPUNN_OP_ALL_GATHER,
       .decompose = all_gather_parts,
       .composite = true,
       .reference = all_gather_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = all_reduce_cases,
       .typical = {.attrs = all_reduce_attrs(1), .inputs = {f32({1, 1 << 20})}},
       .request = all_reduce_request},
  };
}

}  // namespace gpunn::ops::collective
