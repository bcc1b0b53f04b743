#include <gpunn/ops.h>

#include <algorithm>
#include <limits>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

using graph::Attributes;

Attributes pad(const Shape& before, const Shape& after) {
  gpunn_pad_attrs attrs{};
  attrs.rank = static_cast<int32_t>(before.size());
  std::copy(before.begin(), before.end(), attrs.before);
  std::copy(after.begin(), after.end(), attrs.after);
  return Attributes::of(attrs);
}

Attributes slice(const Shape& start, const Shape& size) {
  gpunn_slice_attrs attrs{};
  attrs.rank = static_cast<int32_t>(start.size());
  std::copy(start.begin(), start.end(), attrs.start);
  std::copy(size.begin(), size.end(), attrs.size);
  return Attributes::of(attrs);
}

Attributes transpose(const std::vector<int32_t>& permutation) {
  gpunn_transpose_attrs attrs{};
  attrs.rank = static_cast<int32_t>(permutation.size());
  std::copy(permutation.begin(), permutation.end(), attrs.permutation);
  return Attributes::of(attrs);
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

}  // namespace

std::vector<Case> shape_cases() {
  // What is moved stays as it is, to the bit.
  const Generator extremes = listed({1.5, std::numeric_limits<double>::quiet_NaN(), -2.5,
                                     std::numeric_limits<double>::infinity(), 1e-30, -3e38, 0.25});
  std::vector<Case> cases;
  for (const auto& [values, note] :
       std::vector<std::pair<Generator, std::string>>{{uniform(), ""}, {extremes, "NaN and infinities"}}) {
    for (const Padding& p : kPaddings) {
      cases.push_back(
          make_case({.op = GPUNN_OP_PAD, .attrs = pad(p.before, p.after), .inputs = {f32(p.x, values)}, .note = note}));
    }
    for (const Slice& s : kSlices) {
      cases.push_back(make_case(
          {.op = GPUNN_OP_SLICE, .attrs = slice(s.start, s.size), .inputs = {f32(s.x, values)}, .note = note}));
    }
    for (const Concat& c : kConcats) {
      std::vector<InputSpec> parts;
      for (const Shape& part : c.parts) parts.push_back(f32(part, values));
      cases.push_back(make_case({.op = GPUNN_OP_CONCAT,
                                 .attrs = Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = c.axis}),
                                 .inputs = std::move(parts),
                                 .note = note}));
    }
    for (const Transpose& t : kTransposes) {
      cases.push_back(make_case(
          {.op = GPUNN_OP_TRANSPOSE, .attrs = transpose(t.permutation), .inputs = {f32(t.x, values)}, .note = note}));
    }
  }
  return cases;
}

}  // namespace gpunn::conformance
