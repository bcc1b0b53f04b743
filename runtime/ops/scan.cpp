// CUMSUM and TRIL.
#include <algorithm>
#include <limits>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::scan {

namespace {

// --- CUMSUM ---

Attributes cumsum_attrs(int32_t axis, bool exclusive = false, bool reverse = false) {
  return Attributes::of(
      gpunn_cumsum_attrs{.struct_size = 0, .axis = axis, .exclusive = exclusive ? 1 : 0, .reverse = reverse ? 1 : 0});
}

// An element is a part of the sums behind it, so its gradient is the sum of theirs.
void cumsum_gradient(GradientContext& c) {
  auto attrs = c.node().attrs.as<gpunn_cumsum_attrs>();
  attrs.reverse = attrs.reverse != 0 ? 0 : 1;
  c.set(0, c.add(GPUNN_OP_CUMSUM, Attributes::of(attrs), {c.output_gradient()}));
}

// Adds to each element the sum of as many elements in front of it as were added before: log2(n) sums. (Hillis and
// Steele, 1986.) Unlike a product with ones and zeros it makes no NaN of an infinity further on.
std::vector<ValueId> cumsum_parts(Composition& c) {
  const auto attrs = c.attrs<gpunn_cumsum_attrs>();
  const auto axis = static_cast<std::size_t>(attrs.axis);
  const bool reverse = attrs.reverse != 0;
  const int64_t size = c.shape(c.in(0))[axis];
  const auto moved = [&](ValueId x, int64_t by) {
    if (by >= size) return c.converted(c.constant(0, c.shape(x)), c.dtype(x));
    gpunn_pad_attrs pad{};
    pad.rank = static_cast<int32_t>(c.rank(x));
    (reverse ? pad.after : pad.before)[axis] = by;
    return c.op(GPUNN_OP_PAD, {c.slice(x, axis, reverse ? by : 0, size - by)}, Attributes::of(pad));
  };
  ValueId sum = attrs.exclusive != 0 ? moved(c.in(0), 1) : c.in(0);
  for (int64_t step = 1; step < size; step *= 2) sum = c.add(sum, moved(sum, step));
  return {sum};
}

void cumsum_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_cumsum_attrs>();
  const Shape& shape = call.in_type(0).shape;
  const auto axis = static_cast<std::size_t>(attrs.axis);
  const int64_t size = shape[axis];
  int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (int64_t first = 0; first < static_cast<int64_t>(call.in(0).size()); ++first) {
    if (first / inner % size != 0) continue;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      const std::size_t place = at(first + (attrs.reverse != 0 ? size - 1 - i : i) * inner);
      if (attrs.exclusive != 0) call.out()[place] = sum;
      sum += call.in(0)[place];
      if (attrs.exclusive == 0) call.out()[place] = sum;
    }
  }
}

double longest_dimension(const OpSignature& signature) {
  const Shape& shape = signature.inputs.at(0).shape;
  return static_cast<double>(shape.empty() ? 1 : *std::ranges::max_element(shape));
}

struct Sums {
  Shape x;
  int32_t axis;
};

const std::vector<Sums> kSums = {{{7}, 0},           {{1}, 0},          {{129, 257}, 0},     {{129, 257}, 1},
                                 {{2, 3, 5, 7}, 0},  {{2, 3, 5, 7}, 1}, {{2, 3, 5, 7}, 2},   {{2, 3, 5, 7}, 3},
                                 {{3, 0, 4}, 1},     {{3, 0, 4}, 2},    {{65537}, 0},        {{3, 1, 40}, 1},
                                 {{4, 1031, 33}, 1}, {{70000, 3}, 1},   {{2, 2, 2, 3, 3}, 2}};

std::vector<CaseSpec> cumsum_cases() {
  std::vector<CaseSpec> cases;
  for (const Sums& one : kSums) {
    for (const int options : {0, 1, 2, 3}) {
      cases.push_back(
          {.attrs = cumsum_attrs(one.axis, (options & 1) != 0, (options & 2) != 0), .inputs = {f32(one.x)}});
    }
  }
  // An infinity must not reach the sums in front of it.
  for (const double special : {kInf, -kInf}) {
    cases.push_back({.attrs = cumsum_attrs(1),
                     .inputs = {f32({5, 300}, sometimes(special, 101, uniform()))},
                     .note = std::to_string(special)});
  }
  return cases;
}

std::vector<CaseSpec> cumsum_differentiable() {
  return {{.attrs = cumsum_attrs(1), .inputs = {f32({3, 5})}},
          {.attrs = cumsum_attrs(0, true), .inputs = {f32({4, 3})}},
          {.attrs = cumsum_attrs(1, false, true), .inputs = {f32({2, 4, 3})}},
          {.attrs = cumsum_attrs(2, true, true), .inputs = {f32({2, 1, 6})}}};
}

CaseSpec cumsum_request(Written& r) {
  if (r.sizes.empty() || r.sizes.size() > GPUNN_MAX_RANK) bad(r, "1 to 8 dimensions, with axis= if it is not the last");
  const int32_t axis = take_int(r, "axis", static_cast<int32_t>(r.sizes.size()) - 1);
  return {.attrs = cumsum_attrs(axis), .inputs = {f32(r.sizes)}};
}

// --- TRIL ---

Attributes tril_attrs(int64_t diagonal, bool upper) {
  return Attributes::of(gpunn_tril_attrs{.struct_size = 0, .upper = upper ? 1 : 0, .diagonal = diagonal});
}

void tril_gradient(GradientContext& c) { c.set(0, c.add(GPUNN_OP_TRIL, c.node().attrs, {c.output_gradient()})); }

void tril_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_tril_attrs>();
  const Shape& shape = call.in_type(0).shape;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  for (int64_t i = 0; i < static_cast<int64_t>(call.in(0).size()); ++i) {
    const int64_t above = i % columns - i / columns % rows;
    const bool stays = attrs.upper != 0 ? above >= attrs.diagonal : above <= attrs.diagonal;
    call.out()[at(i)] = stays ? call.in(0)[at(i)] : 0;
  }
}

std::vector<CaseSpec> tril_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& x :
       std::vector<Shape>{{1, 1}, {7, 7}, {7, 13}, {13, 7}, {129, 257}, {2, 3, 5, 7}, {3, 0}, {0, 3}, {5, 1, 64, 65}}) {
    for (const int64_t diagonal : {int64_t{0}, int64_t{1}, int64_t{-2}, x.back() + 2, -x.back() - x[x.size() - 2] - 1,
                                   std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
      for (const bool upper : {false, true}) {
        cases.push_back({.attrs = tril_attrs(diagonal, upper), .inputs = {f32(x)}});
        cases.push_back({.attrs = tril_attrs(diagonal, upper),
                         .inputs = {f32(x, listed({1.5, kNan, -2.5, kInf, 1e-30, -3e38, 0.25}))},
                         .note = "NaN and infinities"});
      }
    }
  }
  return cases;
}

std::vector<CaseSpec> tril_differentiable() {
  return {{.attrs = tril_attrs(0, false), .inputs = {f32({4, 5})}},
          {.attrs = tril_attrs(-1, true), .inputs = {f32({2, 5, 3})}}};
}

CaseSpec tril_request(Written& r) {
  if (r.sizes.size() < 2 || r.sizes.size() > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions, with diagonal= and upper=1");
  const int64_t diagonal = take(r, "diagonal", 0);
  return {.attrs = tril_attrs(diagonal, take(r, "upper", 0) != 0), .inputs = {f32(r.sizes)}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_CUMSUM,
       .gradient = cumsum_gradient,
       .decompose = cumsum_parts,
       .flops = flops_per_input<1>,
       .reference = cumsum_reference,
       .tolerance = {{sum_scale(longest_dimension), "sums in any order"}},
       .cases = cumsum_cases,
       .differentiable = cumsum_differentiable,
       .typical = {.attrs = cumsum_attrs(1), .inputs = {f32({4096, 1024})}},
       .request = cumsum_request},
      {.id = GPUNN_OP_TRIL,
       .gradient = tril_gradient,
       .flops = no_flops,
       .reference = tril_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = tril_cases,
       .differentiable = tril_differentiable,
       .typical = {.attrs = tril_attrs(0, false), .inputs = {f32({96, 512, 512})}},
       .request = tril_request},
  };
}

}  // namespace gpunn::ops::scan
