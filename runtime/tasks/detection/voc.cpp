// VOC's curves and what is read off them.
#include <algorithm>

#include "tasks/detection/average_precision.hpp"

namespace gpunn::tasks {

namespace {

constexpr int kRecallSteps = 10;  // of VOC 2007

// A detection of a class, and the image that it is of.
struct Found {
  std::size_t image = 0;
  const Detection* detection = nullptr;
};

std::vector<Found> by_score(std::span<const DetectionImage> images, int64_t category) {
  std::vector<Found> found;
  for (std::size_t i = 0; i < images.size(); ++i) {
    for (const Detection& one : images[i].detections) {
      if (one.category == category) found.push_back({i, &one});
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, [](const Found& one) { return one.detection->score; });
  return found;
}

}  // namespace

PrecisionRecall voc_curve(std::span<const DetectionImage> images, int64_t category, const VocRule& rule) {
  PrecisionRecall curve;
  std::vector<std::vector<bool>> taken(images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    taken[i].resize(images[i].objects.size());
    for (const TrueBox& object : images[i].objects) {
      curve.objects += object.category == category && !object.difficult && !object.crowd;
    }
  }
  int64_t right = 0, wrong = 0;
  for (const Found& one : by_score(images, category)) {
    const std::vector<TrueBox>& objects = images[one.image].objects;
    double best = -1;
    std::size_t which = 0;
    for (std::size_t k = 0; k < objects.size(); ++k) {
      if (objects[k].category != category || objects[k].crowd) continue;
      const double overlap = overlap_of(one.detection->box, objects[k].box, rule.pixels);
      if (overlap > best) {
        best = overlap;
        which = k;
      }
    }
    if (best >= rule.overlap && best >= 0) {
      if (objects[which].difficult) continue;
      if (taken[one.image][which]) {
        ++wrong;
      } else {
        taken[one.image][which] = true;
        ++right;
      }
    } else if (is_within_crowd(*one.detection, objects, rule.overlap)) {
      continue;
    } else {
      ++wrong;
    }
    curve.precision.push_back(static_cast<double>(right) / static_cast<double>(right + wrong));
    curve.recall.push_back(static_cast<double>(right) / static_cast<double>(std::max<int64_t>(curve.objects, 1)));
    curve.score.push_back(one.detection->score);
  }
  return curve;
}

double all_points(const PrecisionRecall& curve) {
  if (curve.objects == 0) return kUndefined;
  double area = 0, highest = 0;
  for (std::size_t i = curve.precision.size(); i-- > 0;) {
    highest = std::max(highest, curve.precision[i]);
    area += (curve.recall[i] - (i == 0 ? 0.0 : curve.recall[i - 1])) * highest;
  }
  return area;
}

double eleven_points(const PrecisionRecall& curve) {
  if (curve.objects == 0) return kUndefined;
  double sum = 0;
  for (int step = 0; step <= kRecallSteps; ++step) {
    const double least = static_cast<double>(step) / kRecallSteps;
    double highest = 0;
    for (std::size_t i = 0; i < curve.precision.size(); ++i) {
      if (curve.recall[i] >= least) highest = std::max(highest, curve.precision[i]);
    }
    sum += highest;
  }
  return sum / (kRecallSteps + 1);
}

double voc_mean(std::span<const DetectionImage> images, int64_t categories, double (*of_curve)(const PrecisionRecall&),
                const VocRule& rule) {
  DefinedMean mean;
  for (int64_t category = 0; category < categories; ++category) mean.add(of_curve(voc_curve(images, category, rule)));
  return mean.value();
}

}  // namespace gpunn::tasks
