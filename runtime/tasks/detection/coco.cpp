// COCO's evaluation. The order of comparisons is that of pycocotools, whose figures depend on it if overlaps or scores
// are equal.
#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "tasks/detection/average_precision.hpp"

namespace gpunn::tasks {

namespace {

constexpr std::size_t kRecalls = 101, kOverlaps = 10;
constexpr std::size_t kMost = 100;  // detections of an image and class
constexpr std::array<std::size_t, 3> kCounts = {1, 10, kMost};
constexpr std::size_t kSmallSide = 32, kMediumSide = 96;

// All objects, then small, medium and large ones, by area from and to.
struct Areas {
  double from = 0, to = 0;
  bool contain(double area) const { return !(area < from || area > to); }
};
constexpr double kSmall = kSmallSide * kSmallSide, kMedium = kMediumSide * kMediumSide, kMostArea = 1e10;
constexpr std::array<Areas, 4> kSizes = {{{0, kMostArea}, {0, kSmall}, {kSmall, kMedium}, {kMedium, kMostArea}}};

// The overlaps 0.5, 0.55, ..., 0.95, to the bit as numpy.linspace gives them: overlaps that are equal to one occur.
std::array<double, kOverlaps> overlaps() {
  constexpr double kFirst = 0.5, kLast = 0.95, kPace = (kLast - kFirst) / (kOverlaps - 1);
  std::array<double, kOverlaps> values = {};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kFirst + kPace * static_cast<double>(i);
  values.back() = kLast;
  return values;
}

// The objects and the best detections of one class in one image.
struct ClassInImage {
  std::vector<const TrueBox*> objects;
  std::vector<const Detection*> detections;  // by falling score
};

std::vector<ClassInImage> of_class(std::span<const DetectionImage* const> images, int64_t category) {
  std::vector<ClassInImage> found;
  for (const DetectionImage* image : images) {
    ClassInImage one;
    for (const TrueBox& object : image->objects) {
      if (object.category == category) one.objects.push_back(&object);
    }
    for (const Detection& detection : image->detections) {
      if (detection.category == category) one.detections.push_back(&detection);
    }
    std::ranges::stable_sort(one.detections, std::ranges::greater{}, &Detection::score);
    if (one.detections.size() > kMost) one.detections.resize(kMost);
    if (!one.objects.empty() || !one.detections.empty()) found.push_back(std::move(one));
  }
  return found;
}

// An object as figures of one size see it, and how far each detection overlaps it: of a crowd, the share of the
// detection that lies within it.
struct Object {
  const TrueBox* truth = nullptr;
  bool ignored = false;
  std::vector<double> overlaps;
};

std::vector<Object> objects_of(const ClassInImage& image, const Areas& areas) {
  std::vector<Object> objects;
  for (const TrueBox* one : image.objects) {
    const bool counts = !one->crowd && !one->difficult && areas.contain(one->area.value_or(area_of(one->box)));
    objects.push_back({one, !counts, {}});
    for (const Detection* detection : image.detections) {
      objects.back().overlaps.push_back(one->crowd ? share_within(detection->box, one->box)
                                                   : overlap_of(detection->box, one->box));
    }
  }
  std::ranges::stable_sort(objects, {}, &Object::ignored);
  return objects;
}

// The object that a detection finds; the number of objects without one.
std::size_t match(const std::vector<Object>& objects, const std::vector<bool>& taken, std::size_t detection,
                  double least) {
  std::size_t found = objects.size();
  double best = std::min(least, 1 - 1e-10);
  for (std::size_t k = 0; k < objects.size(); ++k) {
    const Object& object = objects[k];
    if (taken[k] && !object.truth->crowd) continue;
    // Those that count come first: one of them is never given up for one that does not.
    if (found < objects.size() && !objects[found].ignored && object.ignored) break;
    if (object.overlaps[detection] < best) continue;
    best = object.overlaps[detection];
    found = k;
  }
  return found;
}

// A detection that counts.
struct Judged {
  double score = 0;
  bool right = false;
};

// One class at one overlap and size.
struct Judgement {
  std::vector<Judged> detections;
  std::array<int64_t, kCounts.size()> found = {};  // objects, by the best kCounts of each image

  void add(const ClassInImage& image, const std::vector<Object>& objects, double overlap, const Areas& areas) {
    std::vector<bool> taken(objects.size());
    for (std::size_t rank = 0; rank < image.detections.size(); ++rank) {
      const Detection& detection = *image.detections[rank];
      const std::size_t k = match(objects, taken, rank, overlap);
      const bool matched = k < objects.size();
      if (matched) taken[k] = true;
      if (matched && objects[k].ignored) continue;
      const bool right = matched && !objects[k].truth->has_id_zero;
      if (!right && !areas.contain(area_of(detection.box))) continue;
      detections.push_back({detection.score, right});
      for (std::size_t i = 0; i < kCounts.size(); ++i) found[i] += right && rank < kCounts[i];
    }
  }

  double precision(int64_t objects) {
    std::ranges::stable_sort(detections, std::ranges::greater{}, &Judged::score);
    std::vector<double> precision, recall;
    int64_t right = 0;
    for (const Judged& one : detections) {
      right += one.right;
      const auto all = static_cast<double>(precision.size() + 1) + std::numeric_limits<double>::epsilon();
      precision.push_back(static_cast<double>(right) / all);
      recall.push_back(static_cast<double>(right) / static_cast<double>(objects));
    }
    for (std::size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
    double sum = 0;
    for (std::size_t step = 0; step < kRecalls; ++step) {
      // As numpy.linspace has it: a multiple of 0.01, and exactly 1 at the end.
      const double least = step == kRecalls - 1 ? 1.0 : static_cast<double>(step) * (1.0 / (kRecalls - 1));
      const auto at = static_cast<std::size_t>(std::ranges::lower_bound(recall, least) - recall.begin());
      if (at < precision.size()) sum += precision[at];
    }
    return sum / kRecalls;
  }
};

struct Means {
  std::array<DefinedMean, kOverlaps> precision;
  std::array<DefinedMean, kCounts.size()> recall;
  DefinedMean all;
};

// Adds the figures of one class; returns its average precision.
double add_class(std::span<const ClassInImage> images, const Areas& areas, Means& means) {
  static const std::array<double, kOverlaps> least = overlaps();
  std::array<Judgement, kOverlaps> judged;
  int64_t counted = 0;
  for (const ClassInImage& image : images) {
    const std::vector<Object> objects = objects_of(image, areas);
    counted += std::ranges::count(objects, false, &Object::ignored);
    for (std::size_t i = 0; i < kOverlaps; ++i) judged[i].add(image, objects, least[i], areas);
  }
  if (counted == 0) return kUndefined;
  DefinedMean own;
  for (std::size_t i = 0; i < kOverlaps; ++i) {
    const double precision = judged[i].precision(counted);
    means.precision[i].add(precision);
    means.all.add(precision);
    own.add(precision);
    for (std::size_t k = 0; k < kCounts.size(); ++k) {
      means.recall[k].add(static_cast<double>(judged[i].found[k]) / static_cast<double>(counted));
    }
  }
  return own.value();
}

}  // namespace

CocoFigures coco_figures(std::span<const DetectionImage> images, int64_t categories) {
  std::vector<const DetectionImage*> ordered;
  for (const DetectionImage& image : images) ordered.push_back(&image);
  std::ranges::stable_sort(ordered, {}, &DetectionImage::order);
  std::array<Means, kSizes.size()> means;
  CocoFigures figures;
  for (int64_t category = 0; category < categories; ++category) {
    const std::vector<ClassInImage> found = of_class(ordered, category);
    figures.by_class.push_back(add_class(found, kSizes[0], means[0]));
    for (std::size_t i = 1; i < kSizes.size(); ++i) add_class(found, kSizes[i], means[i]);
  }
  const auto& [all, small, medium, large] = means;
  figures.mean = all.all.value();
  figures.at_50 = all.precision[0].value();
  figures.at_75 = all.precision[kOverlaps / 2].value();
  figures.small = small.all.value();
  figures.medium = medium.all.value();
  figures.large = large.all.value();
  figures.recall_1 = all.recall[0].value();
  figures.recall_10 = all.recall[1].value();
  figures.recall_100 = all.recall[2].value();
  figures.recall_small = small.recall[2].value();
  figures.recall_medium = medium.recall[2].value();
  figures.recall_large = large.recall[2].value();
  return figures;
}

std::vector<int64_t> confusion_of(std::span<const DetectionImage> images, int64_t categories, double score) {
  constexpr double kOverlap = 0.5;
  struct Pair {
    double overlap;
    std::size_t object, detection;
  };
  const auto side = static_cast<std::size_t>(categories) + 1;
  std::vector<int64_t> counts(side * side);
  for (const DetectionImage& image : images) {
    std::vector<Pair> pairs;
    for (std::size_t d = 0; d < image.detections.size(); ++d) {
      if (image.detections[d].score < score) continue;
      for (std::size_t o = 0; o < image.objects.size(); ++o) {
        if (image.objects[o].crowd) continue;
        const double overlap = overlap_of(image.objects[o].box, image.detections[d].box);
        if (overlap >= kOverlap) pairs.push_back({overlap, o, d});
      }
    }
    std::ranges::stable_sort(pairs, std::ranges::greater{}, &Pair::overlap);
    std::vector<bool> object_done(image.objects.size()), detection_done(image.detections.size());
    for (const Pair& pair : pairs) {
      if (object_done[pair.object] || detection_done[pair.detection]) continue;
      object_done[pair.object] = detection_done[pair.detection] = true;
      counts[static_cast<std::size_t>(image.objects[pair.object].category) * side +
             static_cast<std::size_t>(image.detections[pair.detection].category)] += 1;
    }
    for (std::size_t o = 0; o < image.objects.size(); ++o) {
      if (!object_done[o] && !image.objects[o].crowd)
        counts[static_cast<std::size_t>(image.objects[o].category) * side + side - 1] += 1;
    }
    for (std::size_t d = 0; d < image.detections.size(); ++d) {
      if (detection_done[d] || image.detections[d].score < score) continue;
      if (is_within_crowd(image.detections[d], image.objects, kOverlap)) continue;
      counts[(side - 1) * side + static_cast<std::size_t>(image.detections[d].category)] += 1;
    }
  }
  return counts;
}

}  // namespace gpunn::tasks
