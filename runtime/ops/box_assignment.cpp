// GRID_POINTS, ASSIGN_POINTS and ASSIGN_ANCHORS.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops::box_assignment {

namespace {

// A box with its sides in f64, read from left, top, right, bottom.
struct Rectangle {
  double left, top, right, bottom;
  double area() const { return (right - left) * (bottom - top); }
};

Rectangle rectangle_at(const Values& values, int64_t first) {
  return {values[at(first)], values[at(first + 1)], values[at(first + 2)], values[at(first + 3)]};
}

// A class of 2^24 and more is none: f32 has no fractions there, and not all integers.
bool names_class(double category) { return category >= 0 && category < 16777216; }

// --- GRID_POINTS ---

void grid_points_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_grid_points_attrs>();
  const auto stride = static_cast<double>(attrs.stride);
  int64_t i = 0;
  for (int32_t row = 0; row < attrs.rows; ++row) {
    for (int32_t column = 0; column < attrs.columns; ++column) {
      call.out()[at(i++)] = (column + 0.5) * stride;
      call.out()[at(i++)] = (row + 0.5) * stride;
      call.out()[at(i++)] = stride;
    }
  }
}

Attributes grid_attrs(int32_t rows, int32_t columns, float stride) {
  return Attributes::of(gpunn_grid_points_attrs{.struct_size = 0, .rows = rows, .columns = columns, .stride = stride});
}

std::vector<CaseSpec> grid_cases() {
  std::vector<CaseSpec> cases;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 5}, {64, 64}, {1, 1025}, {257, 1}, {0, 4}}) {
    for (const float stride : {8.0F, 1.0F, 12.5F}) cases.push_back({.attrs = grid_attrs(rows, columns, stride)});
  }
  return cases;
}

CaseSpec grid_request(Written& r) {
  if (r.sizes.size() != 2) bad(r, "rows,columns with stride= if wanted");
  return {.attrs = grid_attrs(static_cast<int32_t>(r.sizes[0]), static_cast<int32_t>(r.sizes[1]),
                              static_cast<float>(take_int(r, "stride", 8)))};
}

// --- ASSIGN_POINTS ---

void assign_points_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_assign_points_attrs>();
  const int64_t points = call.in_dim(0, 0), images = call.in_dim(1, 0), boxes = call.in_dim(1, 1);
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t p = 0; p < points; ++p) {
      const double x = call.in(0)[at(3 * p)], y = call.in(0)[at(3 * p + 1)], stride = call.in(0)[at(3 * p + 2)];
      const double radius = static_cast<double>(attrs.radius) * stride;
      const double reach = static_cast<double>(attrs.reach) * stride;
      int64_t found = -1;
      double least = 0;
      for (int64_t m = 0; m < boxes; ++m) {
        const int64_t first = (n * boxes + m) * 5;
        if (!names_class(call.in(1)[at(first + 4)])) continue;
        const Rectangle box = rectangle_at(call.in(1), first);
        const double l = x - box.left, t = y - box.top, r = box.right - x, b = box.bottom - y;
        if (!(l > 0 && t > 0 && r > 0 && b > 0)) continue;
        if (!(std::abs((r - l) / 2) < radius && std::abs((b - t) / 2) < radius)) continue;
        const double far = std::max(std::max(l, r), std::max(t, b));
        if (far <= reach / 2 && stride > static_cast<double>(attrs.least_stride)) continue;
        if (far > reach && stride < static_cast<double>(attrs.most_stride)) continue;
        if (found >= 0 && !(box.area() < least)) continue;
        found = m;
        least = box.area();
      }
      const int64_t to = n * points + p, first = (n * boxes + found) * 5;
      call.out(0)[at(to)] = found < 0 ? -1 : std::floor(call.in(1)[at(first + 4)]);
      for (int64_t i = 0; i < 4; ++i) call.out(1)[at(4 * to + i)] = found < 0 ? 0 : call.in(1)[at(first + i)];
      call.out(2)[at(to)] = 0;
      if (found < 0) continue;
      const Rectangle box = rectangle_at(call.in(1), first);
      const double l = x - box.left, t = y - box.top, r = box.right - x, b = box.bottom - y;
      call.out(2)[at(to)] = std::sqrt(std::min(l, r) / std::max(l, r) * (std::min(t, b) / std::max(t, b)));
    }
  }
}

Attributes points_attrs(float radius, float reach, float least, float most) {
  return Attributes::of(gpunn_assign_points_attrs{
      .struct_size = 0, .radius = radius, .reach = reach, .least_stride = least, .most_stride = most});
}

// Points of two maps of a square image, the coarser behind the finer.
Generator points_of(int64_t points) {
  const auto side = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(std::max<int64_t>(points, 1)))));
  return [points, side](Random&, int64_t index) {
    const int64_t p = index / 3, part = index % 3;
    const double stride = p < points / 2 ? 8 : 16;
    if (part == 2) return stride;
    return (static_cast<double>(part == 0 ? p % side : p / side) + 0.5) * stride;
  };
}

// Whole corners within an image of so many pixels, and classes, of which some name none. A box's corners depend on its
// number alone, so that they go together.
Generator boxes_within(double size) {
  return [size](Random& random, int64_t index) -> double {
    const int64_t part = index % 5;
    if (part == 4) return static_cast<double>(random.below(12)) - 2;
    const double low = std::floor(static_cast<double>(random.below(1000)) / 1000 * size / 2);
    return part < 2 ? low : low + std::floor(size / 2);
  };
}

std::vector<CaseSpec> points_cases() {
  std::vector<CaseSpec> cases;
  struct Assigned {
    int64_t images, points, boxes;
  };
  for (const auto& [images, points, boxes] :
       {Assigned{1, 1, 1}, {2, 130, 7}, {3, 1025, 33}, {1, 64, 0}, {0, 9, 2}, {5, 77, 100}}) {
    const double size = 8 * std::ceil(std::sqrt(static_cast<double>(points)));
    for (const auto& attrs : {points_attrs(1.5F, 8, 8, 16), points_attrs(100, 4, 16, 8)}) {
      cases.push_back({.attrs = attrs,
                       .inputs = {f32({points, 3}, points_of(points)), f32({images, boxes, 5}, boxes_within(size))}});
    }
  }
  return cases;
}

CaseSpec points_request(Written& r) {
  if (r.sizes.size() != 3) bad(r, "N,P,M");
  return {.attrs = points_attrs(1.5F, 8, 8, 16),
          .inputs = {f32({r.sizes[1], 3}, points_of(r.sizes[1])), f32({r.sizes[0], r.sizes[2], 5}, boxes_within(512))}};
}

double pairs_of(const OpSignature& s) {
  return 20.0 * static_cast<double>(s.inputs[0].shape[0]) * static_cast<double>(s.inputs[1].elements()) / 5;
}

// --- ASSIGN_ANCHORS ---

double overlap(const Rectangle& a, const Rectangle& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double shared = width > 0 && height > 0 ? width * height : 0;
  const double all = a.area() + b.area() - shared;
  return all > 0 ? shared / all : 0;
}

void assign_anchors_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_assign_anchors_attrs>();
  const int64_t anchors = call.in_dim(0, 0), images = call.in_dim(1, 0), boxes = call.in_dim(1, 1);
  for (int64_t n = 0; n < images; ++n) {
    const auto box_at = [&](int64_t m) { return rectangle_at(call.in(1), (n * boxes + m) * 5); };
    std::vector<int64_t> learns(at(anchors), -1);
    std::vector<double> best(at(anchors), 0);
    std::vector<int64_t> takes(at(boxes), -1);
    for (int64_t m = 0; m < boxes; ++m) {
      if (!names_class(call.in(1)[at((n * boxes + m) * 5 + 4)])) continue;
      double most = 0;
      for (int64_t a = 0; a < anchors; ++a) {
        const double shared = overlap(rectangle_at(call.in(0), 4 * a), box_at(m));
        if (shared > best[at(a)]) {
          best[at(a)] = shared;
          learns[at(a)] = m;
        }
        if (shared > most) {
          most = shared;
          takes[at(m)] = a;
        }
      }
    }
    for (int64_t a = 0; a < anchors; ++a) {
      if (best[at(a)] >= static_cast<double>(attrs.positive)) continue;
      learns[at(a)] = best[at(a)] < static_cast<double>(attrs.negative) ? -1 : -2;
    }
    for (int64_t m = 0; m < boxes; ++m) {
      if (takes[at(m)] >= 0) learns[at(takes[at(m)])] = m;
    }
    for (int64_t a = 0; a < anchors; ++a) {
      const int64_t m = learns[at(a)], to = n * anchors + a, first = (n * boxes + m) * 5;
      call.out(0)[at(to)] = m < 0 ? static_cast<double>(m) : std::floor(call.in(1)[at(first + 4)]);
      for (int64_t i = 0; i < 4; ++i) call.out(1)[at(4 * to + i)] = m < 0 ? 0 : call.in(1)[at(first + i)];
    }
  }
}

Attributes anchors_attrs(float positive, float negative) {
  return Attributes::of(gpunn_assign_anchors_attrs{.struct_size = 0, .positive = positive, .negative = negative});
}

// Corners likewise.
Generator anchors_within(double size) {
  return [size](Random& random, int64_t index) {
    const double low = std::floor(static_cast<double>(random.below(1000)) / 1000 * size / 2);
    return index % 4 < 2 ? low : low + std::floor(size / 2);
  };
}

std::vector<CaseSpec> anchors_cases() {
  std::vector<CaseSpec> cases;
  struct Assigned {
    int64_t images, anchors, boxes;
  };
  for (const auto& [images, anchors, boxes] :
       {Assigned{1, 1, 1}, {2, 130, 7}, {3, 1025, 33}, {1, 64, 0}, {0, 9, 2}, {2, 5, 100}}) {
    for (const auto& attrs : {anchors_attrs(0.5003F, 0.5003F), anchors_attrs(0.7001F, 0.3002F)}) {
      cases.push_back({.attrs = attrs,
                       .inputs = {f32({anchors, 4}, anchors_within(200)), f32({images, boxes, 5}, boxes_within(200))}});
    }
  }
  return cases;
}

CaseSpec anchors_request(Written& r) {
  if (r.sizes.size() != 3) bad(r, "N,A,M");
  return {.attrs = anchors_attrs(0.5F, 0.5F),
          .inputs = {f32({r.sizes[1], 4}, anchors_within(300)), f32({r.sizes[0], r.sizes[2], 5}, boxes_within(300))}};
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_GRID_POINTS,
       .reference = grid_points_reference,
       .tolerance = {{one_rounding_scale, "a product"}},
       .cases = grid_cases,
       .typical = {.attrs = grid_attrs(64, 64, 8)},
       .request = grid_request},
      {.id = GPUNN_OP_ASSIGN_POINTS,
       .flops = pairs_of,
       .reference = assign_points_reference,
       .tolerance = {{exact_scale, "a class"},
                     {exact_scale, "a copy"},
                     {few_roundings_scale, "quotients of f64 and a root, rounded once"}},
       .cases = points_cases,
       .typical = {.attrs = points_attrs(1.5F, 8, 8, 16),
                   .inputs = {f32({5456, 3}, points_of(5456)), f32({16, 64, 5}, boxes_within(512))}},
       .largest = kLargestSquared,
       .request = points_request},
      {.id = GPUNN_OP_ASSIGN_ANCHORS,
       .flops = pairs_of,
       .reference = assign_anchors_reference,
       .tolerance = {{exact_scale, "a class"}, {exact_scale, "a copy"}},
       .cases = anchors_cases,
       .typical = {.attrs = anchors_attrs(0.5F, 0.5F),
                   .inputs = {f32({8732, 4}, anchors_within(300)), f32({16, 64, 5}, boxes_within(300))}},
       .largest = kLargestSquared,
       .request = anchors_request},
  };
}

}  // namespace gpunn::ops::box_assignment
