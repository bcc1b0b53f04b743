#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tasks/detection/boxes.hpp"

namespace gpunn::tasks {

// Precision and recall of a class as detections of less and less score are taken in.
struct PrecisionRecall {
  std::vector<double> precision, recall, score;
  int64_t objects = 0;  // difficult ones are not counted
};

// How PASCAL VOC evaluates (Everingham et al., 2010): each detection, from the most to the least certain, belongs to
// the object of its class that it overlaps most. It is right where the overlap is at least `overlap` and no detection
// before it has found that object. One of a difficult object counts for nothing.
struct VocRule {
  double overlap = 0.5;
  PixelRule pixels = PixelRule::between_corners;
};
PrecisionRecall voc_curve(std::span<const DetectionImage> images, int64_t category, const VocRule& rule = {});

// The area below the curve once precision is made to fall (VOC from 2010 on), and the mean of that precision at the
// recalls 0, 0.1, ..., 1 (VOC 2007). NaN of a class without objects.
double all_points(const PrecisionRecall& curve);
double eleven_points(const PrecisionRecall& curve);

// The objects of COCO's sizes: below 32^2, up to 96^2 and above, in pixels of area.
enum class ObjectSize { all, small, medium, large };

// How COCO evaluates, as pycocotools does: the mean of the precision at the recalls 0, 0.01, ..., 1, of the best
// `most` detections of an image and class. Detections beyond a size that find no object count for nothing, nor do
// objects of another size.
struct CocoRule {
  double overlap = 0.5;
  ObjectSize size = ObjectSize::all;
  int64_t most = 100;
};
// NaN of a class without objects of the size.
double coco_precision(std::span<const DetectionImage> images, int64_t category, const CocoRule& rule);

// The means over all classes that have objects: at 0.5 and at 0.75; over the overlaps 0.5, 0.55, ..., 0.95, of all
// sizes and of each. NaN where there is no object.
struct CocoFigures {
  double mean = 0, at_50 = 0, at_75 = 0;
  double small = 0, medium = 0, large = 0;
};
CocoFigures coco_figures(std::span<const DetectionImage> images, int64_t categories);

// The mean of all_points() or eleven_points() over the classes that have objects. NaN where none has.
double voc_mean(std::span<const DetectionImage> images, int64_t categories, double (*of_curve)(const PrecisionRecall&),
                const VocRule& rule = {});

// Counts [classes + 1, classes + 1], row by row: which class an object has and which a detection of at least `score`
// that overlaps it by at least 0.5 says, the best first. The last row has detections without an object, the last column
// objects that are not detected.
std::vector<int64_t> confusion_of(std::span<const DetectionImage> images, int64_t categories, double score);

}  // namespace gpunn::tasks
