// ADVANCE, TABLE_LOAD and TABLE_STORE.
#include <algorithm>
#include <set>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::counter {

namespace {

// --- ADVANCE ---

void advance_reference(ReferenceCall& call) {
  call.out()[0] = call.in(0).at(0) + static_cast<double>(call.attrs<gpunn_advance_attrs>().increment);
}

Attributes advance_attrs(int64_t increment) {
  return Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = increment});
}

std::vector<CaseSpec> advance_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [start, increment] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {41, 1}, {5000000000, 3}, {10, -4}, {7, 0}}) {
    cases.push_back(
        {.attrs = advance_attrs(increment), .inputs = {step(start)}, .note = "from " + std::to_string(start)});
  }
  return cases;
}

CaseSpec advance_request(Written& r) {
  if (!r.sizes.empty()) bad(r, "'' or increment=");
  return {.attrs = advance_attrs(take(r, "increment", 1)), .inputs = {step(0)}};
}

// --- TABLE_LOAD ---

// The step, and one entry of the table read and written.
double entry_bytes(const OpSignature& s) {
  return static_cast<double>(s.inputs[1].bytes() + 2 * size_of(s.inputs[0].dtype));
}

void table_load_reference(ReferenceCall& call) {
  const auto step = static_cast<int64_t>(call.in(1).at(0));
  call.out()[0] = call.in(0).at(at(std::min(step, call.in_dim(0, 0) - 1)));
}

// At steps within the table and beyond it.
std::vector<CaseSpec> load_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t size : {1, 7, 10000}) {
    for (const int64_t at_step : std::set<int64_t>{0, size / 2, size - 1, size, 123457, 5000000001}) {
      cases.push_back({.inputs = {f32({size}), step(at_step)}, .note = "step " + std::to_string(at_step)});
    }
  }
  return cases;
}

CaseSpec load_request(Written& r) {
  if (r.sizes.size() != 1 || r.sizes[0] < 1) bad(r, "the length of the table");
  return {.inputs = {f32(r.sizes), step(r.sizes[0] / 2)}};
}

// --- TABLE_STORE ---

void table_store_reference(ReferenceCall& call) {
  const auto step = static_cast<int64_t>(call.in(1).at(0));
  call.out() = call.in(0);
  call.out().at(at(step % call.in_dim(0, 0))) = call.in(2).at(0);
}

std::vector<CaseSpec> store_cases() {
  std::vector<CaseSpec> cases = load_cases();
  for (CaseSpec& spec : cases) spec.inputs.push_back(f32({}));
  return cases;
}

CaseSpec store_request(Written& r) {
  CaseSpec spec = load_request(r);
  spec.inputs.push_back(f32({}));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_ADVANCE,
       .flops = no_flops,
       .reference = advance_reference,
       .tolerance = {{exact_scale, "integers"}},
       .cases = advance_cases,
       .typical = {.attrs = advance_attrs(1), .inputs = {step(0)}},
       .request = advance_request},
      {.id = GPUNN_OP_TABLE_LOAD,
       .flops = no_flops,
       .bytes = entry_bytes,
       .reference = table_load_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = load_cases,
       .typical = {.inputs = {f32({4096}), step(17)}},
       .request = load_request},
      {.id = GPUNN_OP_TABLE_STORE,
       .flops = no_flops,
       .bytes = entry_bytes,
       .reference = table_store_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = store_cases,
       .typical = {.inputs = {f32({4096}), step(17), scalar(1)}},
       .request = store_request},
  };
}

}  // namespace gpunn::ops::counter
