// REDUCE, MEAN_ROWS and its backward, NORM.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::reduction {

namespace {

// --- REDUCE ---

// To each element its share: of a maximum the elements that are it share alike.
void reduce_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_reduce_attrs>();
  Expressions e = c.expressions();
  const Shape x = e.shape(c.input(0));
  Shape kept = x;
  double terms = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (((a.axes >> i) & 1U) == 0) continue;
    terms *= static_cast<double>(x[i]);
    kept[i] = 1;
  }
  const ValueId dy = e.view(c.output_gradient(), kept);
  if (a.kind == GPUNN_REDUCE_SUM) return c.set(0, e.expand(dy, x));
  if (a.kind == GPUNN_REDUCE_MEAN) return c.set(0, e.scaled(e.expand(dy, x), 1 / terms));
  const ValueId largest = e.equal(c.input(0), e.view(c.output(0), kept));
  c.set(0, e.mul(largest, e.div(dy, e.sum(largest, a.axes))));
}

void reduce_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_reduce_attrs>();
  const Shape& shape = call.in_type(0).shape;
  Values& y = call.out();
  std::vector<int64_t> count(y.size(), 0);

  for (int64_t i = 0; i < static_cast<int64_t>(call.in(0).size()); ++i) {
    // The element's index, without its reduced dimensions, is where it goes.
    int64_t rest = i, output = 0, step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const int64_t index = rest % shape[d];
      rest /= shape[d];
      if ((attrs.axes >> d & 1) == 0) {
        output += index * step;
        step *= shape[d];
      }
    }
    const double x = call.in(0)[at(i)];
    double& target = y.at(at(output));
    const bool first = count[at(output)]++ == 0;
    if (attrs.kind != GPUNN_REDUCE_MAX) {
      target = first ? x : target + x;
    } else if (first || x > target || std::isnan(x)) {
      target = x;
    }
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (attrs.kind == GPUNN_REDUCE_SUM && count[i] == 0) y[i] = 0;
    if (attrs.kind == GPUNN_REDUCE_MEAN) y[i] /= static_cast<double>(count[i]);
  }
}

double reduced_elements(const OpSignature& s) {
  const Shape& shape = s.inputs.at(0).shape;
  double terms = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if ((s.attrs.as<gpunn_reduce_attrs>().axes >> i & 1U) != 0) terms *= static_cast<double>(shape[i]);
  }
  return terms;
}

std::vector<double> reduce_scale(const Evaluation& e, std::size_t output) {
  const bool chosen = e.signature.attrs.as<gpunn_reduce_attrs>().kind == GPUNN_REDUCE_MAX;
  return chosen ? exact_scale(e, output) : sum_scale(reduced_elements)(e, output);
}

struct Reduction {
  Shape x;
  uint32_t axes;
};

const std::vector<Reduction> kReductions = {{{1}, 0b1},
                                            {{1031}, 0b1},
                                            {{7, 13}, 0b01},
                                            {{7, 13}, 0b10},
                                            {{7, 13}, 0b11},
                                            {{129, 257}, 0b01},
                                            {{129, 257}, 0b10},
                                            {{2, 3, 5, 7}, 0b0101},
                                            {{2, 3, 5, 7}, 0b1010},
                                            {{2, 3, 5, 7}, 0b1101},
                                            {{2, 3, 5, 7}, 0b0111},
                                            {{2, 3, 5, 7}, 0b1111},
                                            {{2, 3, 5, 7}, 0b0010},
                                            {{3, 40, 9, 11}, 0b1100},
                                            {{3, 40, 9, 11}, 0b1000},
                                            {{3, 40, 9, 11}, 0b0001},
                                            {{1, 5, 1}, 0b101},
                                            {{3, 4}, 0},
                                            {{65537}, 0b1},
                                            {{2, 2, 2, 2, 3, 3}, 0b010110}};

Attributes reduce_attrs(int32_t kind, uint32_t axes, bool keep_dims) {
  return Attributes::of(
      gpunn_reduce_attrs{.struct_size = 0, .kind = kind, .axes = axes, .keep_dims = keep_dims ? 1 : 0});
}

std::vector<CaseSpec> reduce_cases() {
  std::vector<CaseSpec> cases;
  for (const Reduction& r : kReductions) {
    cases.push_back({.attrs = reduce_attrs(GPUNN_REDUCE_SUM, r.axes, false), .inputs = {f32(r.x)}});
    cases.push_back({.attrs = reduce_attrs(GPUNN_REDUCE_MEAN, r.axes, true), .inputs = {f32(r.x)}});
    cases.push_back({.attrs = reduce_attrs(GPUNN_REDUCE_MAX, r.axes, false), .inputs = {f32(r.x, uniform(-2, -1))}});
  }
  cases.push_back({.attrs = reduce_attrs(GPUNN_REDUCE_SUM, 0b010U, false), .inputs = {f32({3, 0, 4})}});
  return cases;
}

// The sum over the dimensions whose bits axes= has: without it, over all but the second.
CaseSpec reduce_request(Written& r) {
  if (r.sizes.empty() || r.sizes.size() > GPUNN_MAX_RANK) {
    bad(r, "1 to 8 dimensions, with axes= (a bit a dimension), mean=1 or max=1 if wanted");
  }
  const auto all = static_cast<uint32_t>((1U << r.sizes.size()) - 1);
  const auto axes = static_cast<uint32_t>(take(r, "axes", r.sizes.size() > 1 ? all & ~2U : all));
  const bool mean = take(r, "mean", 0) != 0, largest = take(r, "max", 0) != 0;
  const int32_t kind = largest ? GPUNN_REDUCE_MAX : mean ? GPUNN_REDUCE_MEAN : GPUNN_REDUCE_SUM;
  return {.attrs = reduce_attrs(kind, axes, false), .inputs = {f32(r.sizes)}};
}

// --- MEAN_ROWS ---

void mean_rows_gradient(GradientContext& c) {
  const int64_t rows = c.input_shape(0)[0];
  c.set(0, c.add(GPUNN_OP_MEAN_ROWS_BACKWARD,
                 Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                 {c.output_gradient(), c.input(1)}));
}

void mean_rows_reference(ReferenceCall& call) {
  const auto count = static_cast<int64_t>(call.in(1).at(0));
  call.require(count >= 0 && count <= call.in_dim(0, 0), "a count of at most N");
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += call.in(0)[at(i)];
  call.out()[0] = count == 0 ? 0 : sum / static_cast<double>(count);
}

struct CountedRows {
  int64_t rows, counted;
};

const std::vector<CountedRows> kCountedRows = {{1, 1},    {1, 0},       {7, 7},          {7, 3}, {128, 128},
                                               {128, 96}, {1031, 1030}, {100003, 99991}, {5, 0}};

std::vector<CaseSpec> mean_rows_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [rows, counted] : kCountedRows) {
    // What lies behind the count must not be looked at.
    const Generator tail = [n = counted](Random& random, int64_t i) { return i < n ? random.uniform(-1, 1) : kNan; };
    cases.push_back({.inputs = {f32({rows}, tail), count(counted)}, .note = "count " + std::to_string(counted)});
  }
  return cases;
}

// All rows count.
CaseSpec mean_rows_request(Written& r) {
  if (r.sizes.size() != 1) bad(r, "the number of rows");
  return {.inputs = {f32(r.sizes), count(r.sizes[0])}};
}

// --- MEAN_ROWS_BACKWARD ---

void mean_rows_backward_reference(ReferenceCall& call) {
  const auto count = static_cast<int64_t>(call.in(1).at(0));
  for (int64_t i = 0; i < call.out_dim(0, 0); ++i) {
    call.out()[at(i)] = i < count ? call.in(0).at(0) / static_cast<double>(count) : 0;
  }
}

Attributes rows_attrs(int64_t rows) {
  return Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows});
}

std::vector<CaseSpec> mean_rows_backward_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [rows, counted] : kCountedRows) {
    cases.push_back(
        {.attrs = rows_attrs(rows), .inputs = {f32({}), count(counted)}, .note = "count " + std::to_string(counted)});
  }
  return cases;
}

CaseSpec mean_rows_backward_request(Written& r) {
  CaseSpec spec = mean_rows_request(r);
  spec.attrs = rows_attrs(r.sizes[0]);
  spec.inputs[0] = f32({});
  return spec;
}

// --- NORM ---

std::vector<ValueId> norm_parts(Composition& c) {
  const ValueId x = c.in(0);
  return {c.sqrt(c.sum(c.mul(x, x), c.all(x), false))};
}

void norm_reference(ReferenceCall& call) {
  double sum = 0;
  for (const double x : call.in(0)) sum += x * x;
  call.out().at(0) = std::sqrt(sum);
}

std::vector<double> norm_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(e.reference.at(output).values, 2 + accumulation(all_terms(e.signature)) / 2);
}

std::vector<CaseSpec> norm_cases() {
  std::vector<CaseSpec> cases;
  for (const Shape& shape :
       std::vector<Shape>{{}, {1}, {0}, {7}, {255}, {256}, {257}, {1031}, {3, 5, 7}, {70001}, {1048583}}) {
    cases.push_back({.inputs = {f32(shape)}});
  }
  const auto add = [&cases](int64_t n, const Generator& x, const std::string& note) {
    cases.push_back({.inputs = {f32({n}, x)}, .note = note});
  };
  add(1031, constant(0), "zeros");
  add(1031, uniform(1e15, 1e16), "large");
  add(1031, uniform(-1e-14, 1e-14), "small");
  add(70001, sometimes(1e6, 9973, uniform()), "a few that outweigh the others");
  add(1031, sometimes(-kInf, 100, uniform()), "infinite");
  add(1031, sometimes(kNan, 100, uniform()), "NaN");
  return cases;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_REDUCE,
       .gradient = reduce_gradient,
       .flops = flops_per_input<1>,
       .reference = reduce_reference,
       .tolerance = {{reduce_scale, "a sum in any order; a maximum is exact"}},
       .cases = reduce_cases,
       .typical = {.attrs = reduce_attrs(GPUNN_REDUCE_MEAN, 0b1101U, false), .inputs = {typical_images()}},
       .request = reduce_request},
      {.id = GPUNN_OP_MEAN_ROWS,
       .gradient = mean_rows_gradient,
       .flops = flops_per_input<1>,
       .reference = mean_rows_reference,
       .tolerance = {{sum_scale(all_terms), "a sum in any order and a quotient"}},
       .cases = mean_rows_cases,
       .typical = {.inputs = {typical_losses(), count(kTypicalRows)}},
       .request = mean_rows_request},
      {.id = GPUNN_OP_MEAN_ROWS_BACKWARD,
       .reference = mean_rows_backward_reference,
       .tolerance = {{few_roundings_scale, "one quotient"}},
       .cases = mean_rows_backward_cases,
       .typical = {.attrs = rows_attrs(kTypicalRows), .inputs = {scalar(1), count(kTypicalRows)}},
       .request = mean_rows_backward_request},
      {.id = GPUNN_OP_NORM,
       .decompose = norm_parts,
       .flops = flops_per_input<2>,
       .reference = norm_reference,
       .tolerance = {{norm_scale, "half the error of a sum of squares in any order, and a root"}},
       .cases = norm_cases,
       .typical = {.inputs = {typical_parameters()}},
       .request = same_shape<1>},
  };
}

}  // namespace gpunn::ops::reduction
