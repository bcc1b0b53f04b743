// The computations on boxes that detection kernels share: the assignment of boxes to points and anchors, overlaps, the
// generalised overlap (GIoU) and its gradient. They use f64, since the sides of a box are differences of corners.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct Corners {
  double left = 0, top = 0, right = 0, bottom = 0;

  static constexpr Corners of(const float* box) { return {box[0], box[1], box[2], box[3]}; }
  constexpr double width() const { return right - left; }
  constexpr double height() const { return bottom - top; }
  constexpr double area() const { return width() * height(); }
};

constexpr double smaller(double a, double b) { return a < b ? a : b; }
constexpr double larger(double a, double b) { return a > b ? a : b; }

// The area of the intersection of two boxes.
constexpr double shared_area(const Corners& a, const Corners& b) {
  const double width = smaller(a.right, b.right) - larger(a.left, b.left);
  const double height = smaller(a.bottom, b.bottom) - larger(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0.0;
}

// The intersection over union; 0 if neither box has an area.
constexpr double overlap_of(const Corners& a, const Corners& b) {
  const double shared = shared_area(a, b), all = a.area() + b.area() - shared;
  return all > 0 ? shared / all : 0.0;
}

// The class of a box (left, top, right, bottom, class); -1 if it is not a valid class.
constexpr int32_t class_of_box(const float* box) {
  constexpr float kMost = 16777216;  // 2^24
  return box[4] >= 0.0F && box[4] < kMost ? static_cast<int32_t>(box[4]) : -1;
}

// --- Points ---

struct GridPoints {
  int64_t rows = 0, columns = 0;
  float stride = 1;

  // Part 0 to 2 of a point: x, y, the stride.
  constexpr float value(int64_t point, int64_t part) const {
    if (part == 2) return stride;
    const int64_t place = part == 0 ? point % columns : point / columns;
    return (static_cast<float>(place) + 0.5F) * stride;
  }
};

inline GridPoints grid_points_of(const OpDesc& desc) {
  const auto a = desc.attrs<gpunn_grid_points_attrs>();
  return {.rows = a.rows, .columns = a.columns, .stride = a.stride};
}

// Distances from a point to the sides of a box.
struct Sides {
  double left = 0, top = 0, right = 0, bottom = 0;

  constexpr bool within() const { return left > 0 && top > 0 && right > 0 && bottom > 0; }
  constexpr double farthest() const { return larger(larger(left, right), larger(top, bottom)); }
  // The square of the centerness.
  constexpr double balance() const {
    return smaller(left, right) / larger(left, right) * (smaller(top, bottom) / larger(top, bottom));
  }
};

struct AssignPoints {
  int64_t images = 0, boxes = 0, points = 0;
  gpunn_assign_points_attrs attrs{};

  static constexpr Sides sides(const float* point, const float* box) {
    const double x = point[0], y = point[1];
    return {x - box[0], y - box[1], box[2] - x, box[3] - y};
  }
  // Whether the point may learn the box, whose class must be valid.
  constexpr bool learns(const float* point, const float* box) const {
    const Sides s = sides(point, box);
    const double stride = point[2], reach = stride * attrs.reach, radius = stride * attrs.radius;
    const double x = (s.right - s.left) / 2, y = (s.bottom - s.top) / 2;
    const double far = s.farthest();
    const bool near = x < radius && x > -radius && y < radius && y > -radius;
    return s.within() && near && (far > reach / 2 || stride <= attrs.least_stride) &&
           (far <= reach || stride >= attrs.most_stride);
  }
  // The index of the box that the point learns, among the boxes of its image; -1: none.
  constexpr int64_t box_of(const float* point, const float* image) const {
    int64_t found = -1;
    double least = 0;
    for (int64_t m = 0; m < boxes; ++m) {
      const float* const box = image + m * 5;
      if (class_of_box(box) < 0 || !learns(point, box)) continue;
      const double area = Corners::of(box).area();
      if (found >= 0 && !(area < least)) continue;
      found = m;
      least = area;
    }
    return found;
  }
};

inline AssignPoints assign_points_of(const OpDesc& desc) {
  return {.images = desc.input(1).dim[0],
          .boxes = desc.input(1).dim[1],
          .points = desc.input(0).dim[0],
          .attrs = desc.attrs<gpunn_assign_points_attrs>()};
}

// --- Anchors ---

// The workspace holds for each box the anchor assigned to it; -1: none.
struct AssignAnchors {
  int64_t images = 0, boxes = 0, anchors = 0;
  gpunn_assign_anchors_attrs attrs{};
  uint64_t workspace_bytes = 0;

  // What the anchor learns: the index of a box; -1: background; -2: ignored.
  constexpr int64_t box_of(const float* anchor, const float* image, const int32_t* taken, int64_t number) const {
    const Corners own = Corners::of(anchor);
    double best = 0;
    int64_t found = -1, taken_by = -1;
    for (int64_t m = 0; m < boxes; ++m) {
      if (class_of_box(image + m * 5) < 0) continue;
      if (taken[m] == number) taken_by = m;
      const double overlap = overlap_of(own, Corners::of(image + m * 5));
      if (!(overlap > best)) continue;
      best = overlap;
      found = m;
    }
    if (taken_by >= 0) return taken_by;
    if (best >= attrs.positive) return found;
    return best < attrs.negative ? -1 : -2;
  }
};

inline AssignAnchors assign_anchors_of(const OpDesc& desc) {
  AssignAnchors plan{.images = desc.input(1).dim[0],
                     .boxes = desc.input(1).dim[1],
                     .anchors = desc.input(0).dim[0],
                     .attrs = desc.attrs<gpunn_assign_anchors_attrs>()};
  plan.workspace_bytes = static_cast<uint64_t>(plan.images * plan.boxes) * sizeof(int32_t);
  return plan;
}

// --- Losses ---

struct Focal {
  int64_t rows = 0, classes = 0;
  gpunn_focal_attrs attrs{};

  // Label -1 is the background. Any other label outside [0, classes) gives no loss.
  constexpr bool counts(int32_t label) const { return label >= -1 && label < classes; }
};

inline Focal focal_of(const OpDesc& desc) {
  return {.rows = desc.input(0).dim[0], .classes = desc.input(0).dim[1], .attrs = desc.attrs<gpunn_focal_attrs>()};
}
inline Focal focal_backward_of(const OpDesc& desc) {
  return {.rows = desc.input(1).dim[0], .classes = desc.input(1).dim[1], .attrs = desc.attrs<gpunn_focal_attrs>()};
}

// The generalised overlap of box a with another: the areas, and their derivatives by the corners of a.
struct Giou {
  static constexpr double kEpsilon = 1e-7;

  Corners a, b;
  double inner_width, inner_height, outer_width, outer_height, shared, all, around;

  constexpr Giou(const float* box, const float* other)
      : a(Corners::of(box)),
        b(Corners::of(other)),
        inner_width(smaller(a.right, b.right) - larger(a.left, b.left)),
        inner_height(smaller(a.bottom, b.bottom) - larger(a.top, b.top)),
        outer_width(larger(a.right, b.right) - smaller(a.left, b.left)),
        outer_height(larger(a.bottom, b.bottom) - smaller(a.top, b.top)),
        shared(inner_width > 0 && inner_height > 0 ? inner_width * inner_height : 0.0),
        all(a.area() + b.area() - shared),
        around(outer_width * outer_height) {}

  constexpr double loss() const { return 1.0 - shared / (all + kEpsilon) + (around - all) / (around + kEpsilon); }

  // Applies the quotient rule: takes the derivatives of the three areas by a corner.
  constexpr double slope(double of_area, double of_shared, double of_around) const {
    const double of_all = of_area - of_shared;
    const double u = all + kEpsilon, h = around + kEpsilon;
    return -(of_shared * u - shared * of_all) / (u * u) +
           ((of_around - of_all) * h - (around - all) * of_around) / (h * h);
  }
  // The gradient by corner 0 to 3 of a.
  constexpr double gradient(int corner) const {
    const bool meets = inner_width > 0 && inner_height > 0;
    switch (corner) {
      case 0:
        return slope(-a.height(), meets && a.left > b.left ? -inner_height : 0.0,
                     a.left < b.left ? -outer_height : 0.0);
      case 1:
        return slope(-a.width(), meets && a.top > b.top ? -inner_width : 0.0, a.top < b.top ? -outer_width : 0.0);
      case 2:
        return slope(a.height(), meets && a.right < b.right ? inner_height : 0.0,
                     a.right > b.right ? outer_height : 0.0);
      default:
        return slope(a.width(), meets && a.bottom < b.bottom ? inner_width : 0.0,
                     a.bottom > b.bottom ? outer_width : 0.0);
    }
  }
};

struct GiouRows {
  int64_t rows = 0;
};
inline GiouRows giou_of(const OpDesc& desc) { return {desc.input(0).dim[0]}; }

// --- The largest elements of rows ---

struct TopMask {
  int64_t rows = 0, size = 0;
  uint64_t workspace_bytes = 0;

  // How many elements of a row are wanted, at most the `most` elements that are numbers.
  static constexpr int64_t wanted(float count, int64_t most) {
    if (!(count > 0.0F)) return 0;
    if (count >= static_cast<float>(most)) return most;
    const auto whole = static_cast<int64_t>(count);
    return whole + (static_cast<float>(whole) < count ? 1 : 0);
  }
};
inline TopMask top_mask_of(const OpDesc& desc) { return {.rows = desc.input(0).dim[0], .size = desc.input(0).dim[1]}; }

// --- Suppression ---

struct Suppression {
  static constexpr int64_t kColumns = 6;

  int64_t images = 0, boxes = 0, classes = 0;
  gpunn_suppression_attrs attrs{};
  uint64_t workspace_bytes = 0;

  constexpr int64_t candidates() const { return boxes * classes; }
};

inline Suppression suppression_of(const OpDesc& desc) {
  return {.images = desc.input(1).dim[0],
          .boxes = desc.input(1).dim[1],
          .classes = desc.input(1).dim[2],
          .attrs = desc.attrs<gpunn_suppression_attrs>()};
}

}  // namespace gpunn::backends
