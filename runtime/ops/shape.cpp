// PAD, SLICE, CONCAT, QUANTIZED_CONCAT and TRANSPOSE: nothing is computed, so that most are the gradient of another.
#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops::shape {

namespace {

// --- PAD ---

void pad_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_pad_attrs>();
  const Shape& x = c.input_shape(0);
  gpunn_slice_attrs slice{};
  slice.rank = a.rank;
  std::copy(a.before, a.before + a.rank, slice.start);
  std::copy(x.begin(), x.end(), slice.size);
  c.set(0, c.add(GPUNN_OP_SLICE, Attributes::of(slice), {c.output_gradient()}));
}

using Position = std::vector<int64_t>;

// Calls visit(position, index) for every element, in row-major order.
template <class Visit>
void for_each_element(const Shape& shape, Visit visit) {
  const int64_t count = element_count(shape);
  for (int64_t index = 0; index < count; ++index) {
    Position position(shape.size());
    int64_t rest = index;
    for (std::size_t i = shape.size(); i-- > 0;) {
      position[i] = rest % shape[i];
      rest /= shape[i];
    }
    visit(position, at(index));
  }
}

std::size_t index_of(const Position& position, const Shape& shape) {
  int64_t index = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + position[i];
  return at(index);
}

void pad_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_pad_attrs>();
  Values& y = call.out();
  y.assign(y.size(), 0);
  for_each_element(call.in_type(0).shape, [&](Position position, std::size_t from) {
    for (std::size_t i = 0; i < position.size(); ++i) position[i] += attrs.before[i];
    y.at(index_of(position, call.out_type().shape)) = call.in(0)[from];
  });
}

// What is moved stays as it is, to the bit: each case with ordinary numbers and with NaN and infinities.
template <class Shapes, class MakeCase>
std::vector<CaseSpec> moved_cases(const Shapes& shapes, MakeCase make) {
  const Generator extremes = listed({1.5, kNan, -2.5, kInf, 1e-30, -3e38, 0.25});
  std::vector<CaseSpec> cases;
  for (const auto& shape : shapes) {
    cases.push_back(make(shape, uniform()));
    cases.push_back(make(shape, extremes));
    cases.back().note = "NaN and infinities";
  }
  return cases;
}

struct Padding {
  Shape x, before, after;
};

const std::vector<Padding> kPaddings = {
    {{7}, {2}, {3}},
    {{7}, {0}, {0}},
    {{}, {}, {}},
    {{2, 3, 5, 7}, {0, 0, 1, 2}, {0, 0, 3, 4}},
    {{2, 3, 5, 7}, {0, 1, 0, 0}, {0, 2, 0, 0}},  // channels
    {{2, 3, 5, 7}, {1, 1, 1, 1}, {1, 1, 1, 1}},
    {{4, 6}, {0, 0}, {3, 0}},
    {{4, 6}, {0, 5}, {0, 0}},
    {{0, 3}, {2, 1}, {1, 0}},  // zeros alone
    {{3, 0, 2}, {0, 0, 0}, {1, 0, 0}},
    {{1, 1, 1, 1}, {0, 0, 16, 16}, {0, 0, 16, 16}},
    {{1, 2, 1, 2, 1, 2, 1, 2}, {1, 0, 1, 0, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0, 1, 1}},
    {{3, 64, 28, 29}, {0, 0, 1, 1}, {0, 0, 1, 1}},
};

Attributes pad_attrs(const Shape& before, const Shape& after) {
  gpunn_pad_attrs attrs{};
  attrs.rank = static_cast<int32_t>(before.size());
  std::copy(before.begin(), before.end(), attrs.before);
  std::copy(after.begin(), after.end(), attrs.after);
  return Attributes::of(attrs);
}

std::vector<CaseSpec> pad_cases() {
  return moved_cases(kPaddings, [](const Padding& p, const Generator& values) {
    return CaseSpec{.attrs = pad_attrs(p.before, p.after), .inputs = {f32(p.x, values)}};
  });
}

// A border of pad= around the last two dimensions.
Shape border_of(Written& r) {
  const std::size_t rank = r.sizes.size();
  if (rank < 2 || rank > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions with pad= if wanted");
  Shape border(rank, 0);
  border[rank - 2] = border[rank - 1] = take(r, "pad", 1);
  return border;
}

CaseSpec pad_request(Written& r) {
  const Shape border = border_of(r);
  return {.attrs = pad_attrs(border, border), .inputs = {f32(r.sizes)}};
}

// --- SLICE ---

void slice_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_slice_attrs>();
  const Shape& x = c.input_shape(0);
  gpunn_pad_attrs pad{};
  pad.rank = a.rank;
  for (std::size_t i = 0; i < x.size(); ++i) {
    pad.before[i] = a.start[i];
    pad.after[i] = x[i] - a.start[i] - a.size[i];
  }
  c.set(0, c.add(GPUNN_OP_PAD, Attributes::of(pad), {c.output_gradient()}));
}

// Only the box is read.
double slice_bytes(const OpSignature& s) { return 2.0 * static_cast<double>(s.outputs[0].bytes()); }

void slice_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_slice_attrs>();
  for_each_element(call.out_type().shape, [&](Position position, std::size_t to) {
    for (std::size_t i = 0; i < position.size(); ++i) position[i] += attrs.start[i];
    call.out()[to] = call.in(0).at(index_of(position, call.in_type(0).shape));
  });
}

struct Slice {
  Shape x, start, size;
};

const std::vector<Slice> kSlices = {
    {{7}, {2}, {3}},
    {{7}, {0}, {7}},
    {{7}, {6}, {1}},
    {{}, {}, {}},
    {{2, 3, 9, 11}, {0, 0, 1, 2}, {2, 3, 5, 6}},
    {{2, 13, 5, 3}, {0, 4, 0, 0}, {2, 7, 5, 3}},  // channels
    {{4, 5, 6}, {1, 1, 1}, {2, 3, 4}},
    {{4, 5}, {4, 0}, {0, 5}},  // nothing, from the end
    {{0, 5}, {0, 1}, {0, 2}},
    {{2, 3, 2, 3, 2, 3, 2, 3}, {0, 1, 0, 2, 1, 0, 0, 1}, {2, 2, 1, 1, 1, 3, 2, 2}},
    {{3, 96, 28, 29}, {0, 32, 0, 0}, {3, 64, 28, 29}},
};

Attributes slice_attrs(const Shape& start, const Shape& size) {
  gpunn_slice_attrs attrs{};
  attrs.rank = static_cast<int32_t>(start.size());
  std::copy(start.begin(), start.end(), attrs.start);
  std::copy(size.begin(), size.end(), attrs.size);
  return Attributes::of(attrs);
}

std::vector<CaseSpec> slice_cases() {
  return moved_cases(kSlices, [](const Slice& s, const Generator& values) {
    return CaseSpec{.attrs = slice_attrs(s.start, s.size), .inputs = {f32(s.x, values)}};
  });
}

CaseSpec slice_request(Written& r) {
  const Shape border = border_of(r);
  Shape size = r.sizes;
  for (std::size_t i = 0; i < size.size(); ++i) size[i] -= 2 * border[i];
  return {.attrs = slice_attrs(border, size), .inputs = {f32(r.sizes)}};
}

// --- CONCAT ---

void concat_gradient(GradientContext& c) {
  const auto axis = static_cast<std::size_t>(c.node().attrs.as<gpunn_concat_attrs>().axis);
  Expressions e = c.expressions();
  int64_t start = 0;
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) {
    const int64_t size = c.input_shape(i)[axis];
    if (c.wants(i)) c.set(i, e.slice(c.output_gradient(), axis, start, size));
    start += size;
  }
}

void concat_reference(ReferenceCall& call) {
  const auto axis = at(call.attrs<gpunn_concat_attrs>().axis);
  int64_t start = 0;
  for (std::size_t part = 0; part < call.inputs(); ++part) {
    for_each_element(call.in_type(part).shape, [&](Position position, std::size_t from) {
      position[axis] += start;
      call.out().at(index_of(position, call.out_type().shape)) = call.in(part)[from];
    });
    start += call.in_dim(part, axis);
  }
  call.require(start == call.out_dim(0, axis), "y as long as all inputs together");
}

struct Concat {
  std::vector<Shape> parts;
  int32_t axis;
};

const std::vector<Concat> kConcats = {
    {{{3}, {4}}, 0},
    {{{2, 3, 5, 7}, {2, 4, 5, 7}}, 1},
    {{{2, 3, 5, 7}, {2, 3, 1, 7}, {2, 3, 4, 7}}, 2},
    {{{2, 3, 5}, {2, 3, 1}}, 2},
    {{{2, 3}, {5, 3}}, 0},
    {{{2, 0, 3}, {2, 4, 3}, {2, 0, 3}}, 1},  // empty parts
    {{{0, 3}, {0, 5}}, 1},
    {{{1, 1}, {1, 1}}, 1},
    {std::vector<Shape>(16, Shape{3, 2, 5}), 1},
    {{{2, 64, 28, 29}, {2, 96, 28, 29}, {2, 16, 28, 29}}, 1},
};

Attributes concat_attrs(int32_t axis) { return Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = axis}); }

std::vector<CaseSpec> concat_cases() {
  return moved_cases(kConcats, [](const Concat& c, const Generator& values) {
    CaseSpec spec{.attrs = concat_attrs(c.axis)};
    for (const Shape& part : c.parts) spec.inputs.push_back(f32(part, values));
    return spec;
  });
}

// Along the channels.
CaseSpec concat_request(Written& r) {
  const int64_t parts = take(r, "parts", 2), most = kMostParts;
  if (r.sizes.size() < 2 || parts < 2 || parts > most) {
    bad(r, "N,C and further dimensions of each part, with parts= from 2 to 16 if wanted");
  }
  return {.attrs = concat_attrs(1), .inputs = repeated(static_cast<std::size_t>(parts), f32(r.sizes))};
}

// --- QUANTIZED_CONCAT ---

std::vector<CaseSpec> quantized_concat_cases() {
  std::vector<CaseSpec> cases;
  for (const Concat& c : kConcats) {
    CaseSpec spec{.attrs = concat_attrs(c.axis)};
    for (const Shape& part : c.parts) spec.inputs.push_back(u8(part));
    cases.push_back(std::move(spec));
  }
  return cases;
}

CaseSpec quantized_concat_request(Written& r) {
  CaseSpec spec = concat_request(r);
  for (InputSpec& input : spec.inputs) input = u8(r.sizes);
  return spec;
}

// --- TRANSPOSE ---

void transpose_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_transpose_attrs>();
  gpunn_transpose_attrs inverse{};
  inverse.rank = a.rank;
  for (int32_t i = 0; i < a.rank; ++i) inverse.permutation[a.permutation[i]] = i;
  c.set(0, c.add(GPUNN_OP_TRANSPOSE, Attributes::of(inverse), {c.output_gradient()}));
}

void transpose_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_transpose_attrs>();
  for_each_element(call.out_type().shape, [&](const Position& position, std::size_t to) {
    Position from(position.size());
    for (std::size_t i = 0; i < position.size(); ++i) from.at(at(attrs.permutation[i])) = position[i];
    call.out()[to] = call.in(0).at(index_of(from, call.in_type(0).shape));
  });
}

struct Transpose {
  Shape x;
  std::vector<int32_t> permutation;
};

const std::vector<Transpose> kTransposes = {
    {{}, {}},
    {{7}, {0}},
    {{3, 5}, {1, 0}},
    {{3, 5}, {0, 1}},
    {{129, 131}, {1, 0}},
    {{2, 3, 5}, {2, 0, 1}},
    {{2, 3, 5, 7}, {0, 2, 3, 1}},  // channels last
    {{2, 3, 5, 7}, {0, 3, 1, 2}},
    {{2, 3, 5, 7}, {3, 2, 1, 0}},
    {{0, 3, 2}, {2, 1, 0}},
    {{2, 4, 2, 3, 5, 7}, {0, 1, 4, 2, 5, 3}},  // of a pixel shuffle
    {{2, 1, 3, 2, 1, 2, 3, 2}, {7, 0, 6, 1, 5, 2, 4, 3}},
    {{4, 64, 28, 29}, {0, 2, 3, 1}},
};

Attributes transpose_attrs(const std::vector<int32_t>& permutation) {
  gpunn_transpose_attrs attrs{};
  attrs.rank = static_cast<int32_t>(permutation.size());
  std::copy(permutation.begin(), permutation.end(), attrs.permutation);
  return Attributes::of(attrs);
}

std::vector<CaseSpec> transpose_cases() {
  return moved_cases(kTransposes, [](const Transpose& t, const Generator& values) {
    return CaseSpec{.attrs = transpose_attrs(t.permutation), .inputs = {f32(t.x, values)}};
  });
}

// The last two dimensions change places.
CaseSpec transpose_request(Written& r) {
  const std::size_t rank = r.sizes.size();
  if (rank < 2 || rank > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions, of which the last two change places");
  std::vector<int32_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return {.attrs = transpose_attrs(permutation), .inputs = {f32(r.sizes)}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_PAD,
       .gradient = pad_gradient,
       .flops = no_flops,
       .reference = pad_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = pad_cases,
       .typical = {.attrs = pad_attrs({0, 0, 2, 2}, {0, 0, 2, 2}), .inputs = {typical_images()}},
       .request = pad_request},
      {.id = GPUNN_OP_SLICE,
       .gradient = slice_gradient,
       .flops = no_flops,
       .bytes = slice_bytes,
       .reference = slice_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = slice_cases,
       .typical = {.attrs = slice_attrs({0, kTypicalChannels / 2, 0, 0}, {64, kTypicalChannels / 2, 28, 28}),
                   .inputs = {typical_images()}},
       .request = slice_request},
      {.id = GPUNN_OP_CONCAT,
       .gradient = concat_gradient,
       .flops = no_flops,
       .reference = concat_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = concat_cases,
       .typical = {.attrs = concat_attrs(1), .inputs = repeated(2, typical_images())},
       .request = concat_request},
      {.id = GPUNN_OP_QUANTIZED_CONCAT,
       .flops = no_flops,
       .reference = concat_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = quantized_concat_cases,
       .typical = {.attrs = concat_attrs(1), .inputs = repeated(2, u8({64, 64, 28, 28}))},
       .request = quantized_concat_request},
      {.id = GPUNN_OP_TRANSPOSE,
       .gradient = transpose_gradient,
       .flops = no_flops,
       .reference = transpose_reference,
       .tolerance = {{exact_scale, "a copy"}},
       .cases = transpose_cases,
       .typical = {.attrs = transpose_attrs({0, 2, 3, 1}), .inputs = {typical_images()}},
       .request = transpose_request},
  };
}

}  // namespace gpunn::ops::shape
