#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpunn::tasks {

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
  bool difficult = false;  // finding it counts for nothing, missing it neither
  bool crowd = false;      // COCO: stands for many objects of its class, of which any may be found within it
  double area = 0;         // COCO: of the object in pixels; 0: its box's
};

// An object that a model finds.
struct Detection {
  Box box;
  int64_t category = 0;
  double score = 0;
};

// What is there and what is found, of one image.
struct DetectionImage {
  std::vector<TrueBox> objects;
  std::vector<Detection> detections;
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

// The area of the intersection over that of the union; 0 where both are empty.
inline double overlap_of(const Box& a, const Box& b, PixelRule rule = PixelRule::between_corners) {
  const double common = area_of(intersection(a, b), rule);
  const double all = area_of(a, rule) + area_of(b, rule) - common;
  return all > 0 ? common / all : 0;
}

}  // namespace gpunn::tasks
