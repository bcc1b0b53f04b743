// Boxes around objects.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace gpunn::fields {

// An upright rectangle in pixels: x grows to the right, y downwards, and (0, 0) is the corner of the first pixel.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
  bool has_area() const { return right > left && bottom > top; }
};

// An object that an image shows.
struct TrueBox {
  Box box;
  int64_t category = 0;    // its class
  bool difficult = false;  // VOC: finding it counts for nothing, missing it neither
  bool crowd = false;      // COCO: stands for many objects of its class; any number of them can be found within it
  std::optional<double> area = {};  // COCO: of the object in pixels; none: its box's
  // COCO: the annotation's id is 0. pycocotools takes this id for "finds nothing", so a detection of the object is
  // wrong.
  bool has_id_zero = false;
};

// VOC counts pixels: a box from 3 to 3 is one wide, as if sides were longer by 1. Else a box from 3 to 4 is.
enum class PixelRule { between_corners, inclusive };

inline double area_of(const Box& box, PixelRule rule = PixelRule::between_corners) {
  const double more = rule == PixelRule::inclusive ? 1 : 0;
  return std::max(0.0, box.width() + more) * std::max(0.0, box.height() + more);
}

inline Box intersection(const Box& a, const Box& b) {
  return {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)};
}

// The share of a box that lies within another one; 0 if the box has no area.
inline double share_within(const Box& box, const Box& other) {
  const double area = area_of(box);
  return area > 0 ? area_of(intersection(box, other)) / area : 0;
}

// The area of the intersection over that of the union; 0 where both are empty.
inline double overlap_of(const Box& a, const Box& b, PixelRule rule = PixelRule::between_corners) {
  const double common = area_of(intersection(a, b), rule);
  const double all = area_of(a, rule) + area_of(b, rule) - common;
  return all > 0 ? common / all : 0;
}

}  // namespace gpunn::fields
