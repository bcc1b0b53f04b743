#pragma once

#include <gpunn/metric.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/detection/detections.hpp"

namespace gpunn::tasks {

// Precision and recall of a class as detections of less and less score are taken in.
struct PrecisionRecall {
  std::vector<double> precision, recall, score;
  int64_t objects = 0;  // difficult ones and crowds are not counted
};

// How PASCAL VOC evaluates (Everingham et al., 2010): each detection, from the most to the least certain, belongs to
// the object of its class that it overlaps most. It is right where the overlap is at least `overlap` and no detection
// before it has found that object. One of a difficult object counts for nothing. VOC knows no crowds: a detection that
// finds no object, but lies within a crowd by `overlap` of its area, counts for nothing.
struct VocRule {
  double overlap = 0.5;
  PixelRule pixels = PixelRule::between_corners;
};
PrecisionRecall voc_curve(std::span<const DetectionImage> images, int64_t category, const VocRule& rule = {});

// The area below the curve once precision is made to fall (VOC from 2010 on), and the mean of that precision at the
// recalls 0, 0.1, ..., 1 (VOC 2007). Undefined for a class without objects.
double all_points(const PrecisionRecall& curve);
double eleven_points(const PrecisionRecall& curve);

// The mean of all_points() or eleven_points() over the classes that have objects.
double voc_mean(std::span<const DetectionImage> images, int64_t categories, double (*of_curve)(const PrecisionRecall&),
                const VocRule& rule = {});

// COCO's figures, each as pycocotools has it: means over the overlaps 0.5, 0.55, ..., 0.95 and the classes that have
// objects. The sizes are areas below 32^2, up to 96^2 and above, in pixels: that of an object as its annotation says,
// that of a detection as its box is.
struct CocoFigures {
  // Average precision: the mean of the precision at the recalls 0, 0.01, ..., 1.
  double mean = kUndefined, at_50 = kUndefined, at_75 = kUndefined;
  double small = kUndefined, medium = kUndefined, large = kUndefined;
  // Recall of the best 1, 10 and 100 detections of an image and class, and of the 100 by size.
  double recall_1 = kUndefined, recall_10 = kUndefined, recall_100 = kUndefined;
  double recall_small = kUndefined, recall_medium = kUndefined, recall_large = kUndefined;
  std::vector<double> by_class;  // `mean` of each class
};
CocoFigures coco_figures(std::span<const DetectionImage> images, int64_t categories);

// Counts [classes + 1, classes + 1], row by row: which class an object has and which a detection of at least `score`
// that overlaps it by at least 0.5 says, the best first. The last row has detections without an object, the last column
// objects that are not detected. Crowds and the detections within them are not counted.
std::vector<int64_t> confusion_of(std::span<const DetectionImage> images, int64_t categories, double score);

}  // namespace gpunn::tasks
