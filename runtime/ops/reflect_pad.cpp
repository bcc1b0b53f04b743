// REFLECT_PAD2D and its backward.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::reflect_pad {

namespace {

Attributes padding_of(int32_t top, int32_t bottom, int32_t left, int32_t right) {
  return Attributes::of(gpunn_reflect_pad2d_attrs{.struct_size = 0, .before = {top, left}, .after = {bottom, right}});
}

double no_flops(const OpSignature&) { return 0; }

// --- REFLECT_PAD2D ---

void reflect_pad_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_REFLECT_PAD2D_BACKWARD, c.node().attrs, {c.output_gradient()}));
}

// Lines that lie as far on the other side of the first and the last.
std::vector<ValueId> reflect_pad_parts(Composition& c) {
  const auto a = c.attrs<gpunn_reflect_pad2d_attrs>();
  ValueId x = c.in(0);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::size_t dimension = 2 + axis;
    const int64_t size = c.shape(x)[dimension];
    std::vector<ValueId> lines;
    for (int64_t i = a.before[axis]; i > 0; --i) lines.push_back(c.slice(x, dimension, i, 1));
    lines.push_back(x);
    for (int64_t i = 1; i <= a.after[axis]; ++i) lines.push_back(c.slice(x, dimension, size - 1 - i, 1));
    if (lines.size() == 1) continue;
    const gpunn_concat_attrs attrs{.struct_size = 0, .axis = static_cast<int32_t>(dimension)};
    x = c.op(GPUNN_OP_CONCAT, std::move(lines), Attributes::of(attrs));
  }
  if (x == c.in(0)) return {c.op(GPUNN_OP_COPY, {x})};
  return {x};
}

// Calls visit(index in x, index in y) for every element of y and the one that it is a copy of.
template <class Visit>
void for_each_copy(const ReferenceCall& call, const Shape& x, const Shape& y, Visit visit) {
  const auto a = call.attrs<gpunn_reflect_pad2d_attrs>();
  call.require(
      x.size() == 4 && y == Shape{x[0], x[1], a.before[0] + x[2] + a.after[0], a.before[1] + x[3] + a.after[1]},
      "x[N,C,H,W], y[N,C,H+before+after,W+before+after]");
  const auto source = [](int64_t output, int64_t before, int64_t inputs) {
    const int64_t place = std::abs(output - before);
    return place >= inputs ? 2 * (inputs - 1) - place : place;
  };
  int64_t output = 0;
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q, ++output) {
        const int64_t row = source(p, a.before[0], x[2]), column = source(q, a.before[1], x[3]);
        visit(at((plane * x[2] + row) * x[3] + column), at(output));
      }
    }
  }
}

void reflect_pad_reference(ReferenceCall& call) {
  for_each_copy(call, call.in_type(0).shape, call.out_type().shape,
                [&](std::size_t from, std::size_t to) { call.out()[to] = call.in(0)[from]; });
}

struct Padding {
  Shape x;
  int32_t top, bottom, left, right;
};

const std::vector<Padding> kPaddings = {
    {{1, 1, 1, 1}, 0, 0, 0, 0}, {{2, 3, 5, 7}, 1, 1, 1, 1},  {{2, 3, 5, 7}, 4, 4, 6, 6},  // all that can be mirrored
    {{1, 2, 6, 5}, 0, 3, 0, 0}, {{1, 2, 6, 5}, 0, 0, 2, 0},  {{3, 1, 2, 2}, 1, 0, 0, 1},
    {{0, 3, 4, 4}, 1, 1, 1, 1}, {{1, 2, 3, 17}, 2, 1, 5, 0}, {{2, 32, 14, 15}, 4, 4, 4, 4},
};

// Of x, or of its gradient.
std::vector<CaseSpec> cases_of(bool backward) {
  std::vector<CaseSpec> cases;
  for (const Padding& p : kPaddings) {
    const Shape y{p.x[0], p.x[1], p.x[2] + p.top + p.bottom, p.x[3] + p.left + p.right};
    const auto add = [&](const Generator& values, const std::string& note) {
      cases.push_back({.attrs = padding_of(p.top, p.bottom, p.left, p.right),
                       .inputs = {f32(backward ? y : p.x, values)},
                       .note = note});
    };
    add(uniform(), "");
    add(uniform(2, 3), "all above 0, so that nothing cancels");
    add(sometimes(kNan, 13, uniform()), "NaN stays where it is mirrored");
  }
  return cases;
}

std::vector<CaseSpec> reflect_pad_cases() { return cases_of(false); }

CaseSpec reflect_pad_request(Written& r) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with pad= on each side");
  const int32_t pad = take_int(r, "pad", 1);
  return {.attrs = padding_of(pad, pad, pad, pad), .inputs = {f32(r.sizes)}};
}

// --- REFLECT_PAD2D_BACKWARD ---

double backward_flops(const OpSignature& s) { return static_cast<double>(s.inputs[0].elements()); }

// What lies around the middle is added to the lines that it mirrors.
std::vector<ValueId> reflect_pad_backward_parts(Composition& c) {
  const auto a = c.attrs<gpunn_reflect_pad2d_attrs>();
  ValueId dy = c.in(0);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::size_t dimension = 2 + axis;
    const int64_t before = a.before[axis], size = c.shape(dy)[dimension] - before - a.after[axis];
    ValueId sum = c.slice(dy, dimension, before, size);
    const auto add_line = [&](int64_t from, int64_t to) {
      gpunn_pad_attrs attrs{};
      attrs.rank = 4;
      attrs.before[dimension] = to;
      attrs.after[dimension] = size - 1 - to;
      sum = c.add(sum, c.op(GPUNN_OP_PAD, {c.slice(dy, dimension, from, 1)}, Attributes::of(attrs)));
    };
    for (int64_t i = 1; i <= before; ++i) add_line(before - i, i);
    for (int64_t i = 1; i <= a.after[axis]; ++i) add_line(before + size - 1 + i, size - 1 - i);
    dy = sum;
  }
  return {dy};
}

void reflect_pad_backward_reference(ReferenceCall& call) {
  Values& dx = call.out();
  dx.assign(dx.size(), 0);
  for_each_copy(call, call.out_type().shape, call.in_type(0).shape,
                [&](std::size_t to, std::size_t from) { dx[to] += call.in(0)[from]; });
}

// Rows and columns that are mirrored at both ends have three copies each.
double backward_terms(const OpSignature&) { return 9; }

std::vector<CaseSpec> reflect_pad_backward_cases() { return cases_of(true); }

CaseSpec reflect_pad_backward_request(Written& r) {
  CaseSpec spec = reflect_pad_request(r);
  spec.inputs = {f32(output_shape(GPUNN_OP_REFLECT_PAD2D, spec.attrs, {spec.inputs[0].type}))};
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_REFLECT_PAD2D,
       .gradient = reflect_pad_gradient,
       .decompose = reflect_pad_parts,
       .flops = no_flops,
       .reference = reflect_pad_reference,
       .tolerance = {{exact_scale, "copies"}},
       .cases = reflect_pad_cases,
       .typical = {.attrs = padding_of(1, 1, 1, 1), .inputs = {typical_images()}},
       .request = reflect_pad_request},
      {.id = GPUNN_OP_REFLECT_PAD2D_BACKWARD,
       .decompose = reflect_pad_backward_parts,
       .flops = backward_flops,
       .reference = reflect_pad_backward_reference,
       .tolerance = {{sum_scale(backward_terms), "a sum over the copies of an element, in any order"}},
       .cases = reflect_pad_backward_cases,
       .typical = {.attrs = padding_of(1, 1, 1, 1), .inputs = {typical_images()}},
       .request = reflect_pad_backward_request},
  };
}

}  // namespace gpunn::ops::reflect_pad
