#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fields/box.hpp"

namespace gpunn::tasks {

using fields::area_of;
using fields::Box;
using fields::intersection;
using fields::overlap_of;
using fields::PixelRule;
using fields::share_within;
using fields::TrueBox;

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
  int64_t order = 0;  // COCO takes images by rising id: equal scores keep this order
};

// An evaluated image as its file has it.
struct TrueImage {
  std::vector<TrueBox> objects;  // in pixels of the file
  double height = 0, width = 0;  // of the file
  double scale = 1;              // pixels of the sample for each pixel of the file
  int64_t order = 0;             // DetectionImage's
};

// Whether a detection lies within a crowd of its class by at least this share.
inline bool is_within_crowd(const Detection& found, const std::vector<TrueBox>& objects, double least) {
  return std::ranges::any_of(objects, [&](const TrueBox& object) {
    return object.crowd && object.category == found.category && share_within(found.box, object.box) >= least;
  });
}

}  // namespace gpunn::tasks
