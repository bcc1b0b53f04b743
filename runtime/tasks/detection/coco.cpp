// COCO's evaluation. The order of comparisons is that of pycocotools, whose figures depend on it where overlaps or
// scores are equal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tasks/detection/average_precision.hpp"

namespace gpunn::tasks {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr int kRecalls = 101;
constexpr double kMostArea = 1e10;

std::array<double, 2> areas_of(ObjectSize size) {
  constexpr double kSmall = 32.0 * 32.0, kMedium = 96.0 * 96.0;
  switch (size) {
    case ObjectSize::small:
      return {0, kSmall};
    case ObjectSize::medium:
      return {kSmall, kMedium};
    case ObjectSize::large:
      return {kMedium, kMostArea};
    case ObjectSize::all:
      break;
  }
  return {0, kMostArea};
}

// What a detection turns out to be.
struct Judged {
  double score = 0;
  bool right = false, ignored = false;
};

struct Object {
  const TrueBox* truth = nullptr;
  bool ignored = false, taken = false;
};

// Of a crowd the share of the detection that lies within it.
double coco_overlap(const Box& found, const TrueBox& object) {
  if (!object.crowd) return overlap_of(found, object.box);
  const double area = area_of(found);
  return area > 0 ? area_of(intersection(found, object.box)) / area : 0;
}

std::vector<Object> objects_of(const DetectionImage& image, int64_t category, const std::array<double, 2>& areas) {
  std::vector<Object> objects;
  for (const TrueBox& one : image.objects) {
    if (one.category != category) continue;
    const double area = one.area > 0 ? one.area : area_of(one.box);
    objects.push_back({&one, one.crowd || one.difficult || area < areas[0] || area > areas[1]});
  }
  std::ranges::stable_sort(objects, {}, &Object::ignored);
  return objects;
}

// The object that the detection finds; the number of objects where there is none.
std::size_t match(const std::vector<Object>& objects, const Box& box, double least) {
  std::size_t found = objects.size();
  double best = std::min(least, 1 - 1e-10);
  for (std::size_t k = 0; k < objects.size(); ++k) {
    const Object& object = objects[k];
    if (object.taken && !object.truth->crowd) continue;
    // Those that count come first: one of them is never given up for one that does not.
    if (found < objects.size() && !objects[found].ignored && object.ignored) break;
    const double overlap = coco_overlap(box, *object.truth);
    if (overlap < best) continue;
    best = overlap;
    found = k;
  }
  return found;
}

void judge(const DetectionImage& image, int64_t category, const CocoRule& rule, std::vector<Judged>& judged,
           int64_t& counted) {
  const std::array<double, 2> areas = areas_of(rule.size);
  std::vector<Object> objects = objects_of(image, category, areas);
  for (const Object& object : objects) counted += !object.ignored;
  std::vector<const Detection*> detections;
  for (const Detection& one : image.detections) {
    if (one.category == category) detections.push_back(&one);
  }
  std::ranges::stable_sort(detections, std::ranges::greater{}, &Detection::score);
  if (std::ssize(detections) > rule.most) detections.resize(static_cast<std::size_t>(rule.most));
  for (const Detection* one : detections) {
    const std::size_t k = match(objects, one->box, rule.overlap);
    const bool found = k < objects.size();
    const double area = area_of(one->box);
    const bool ignored = found ? objects[k].ignored : area < areas[0] || area > areas[1];
    if (found) objects[k].taken = true;
    judged.push_back({one->score, found, ignored});
  }
}

double mean_of_known(std::span<const double> values) {
  double sum = 0;
  int64_t count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kUnknown;
}

}  // namespace

double coco_precision(std::span<const DetectionImage> images, int64_t category, const CocoRule& rule) {
  std::vector<Judged> judged;
  int64_t objects = 0;
  for (const DetectionImage& image : images) judge(image, category, rule, judged, objects);
  if (objects == 0) return kUnknown;
  std::ranges::stable_sort(judged, std::ranges::greater{}, &Judged::score);
  std::vector<double> precision, recall;
  int64_t right = 0, wrong = 0;
  for (const Judged& one : judged) {
    // An ignored detection leaves both counts as they are.
    right += one.right && !one.ignored;
    wrong += !one.right && !one.ignored;
    const double all = static_cast<double>(right + wrong) + std::numeric_limits<double>::epsilon();
    precision.push_back(static_cast<double>(right) / all);
    recall.push_back(static_cast<double>(right) / static_cast<double>(objects));
  }
  for (std::size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0;
  for (int step = 0; step < kRecalls; ++step) {
    // As numpy.linspace has it: a multiple of 0.01, and exactly 1 at the end.
    const double least = step == kRecalls - 1 ? 1.0 : step * (1.0 / (kRecalls - 1));
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(recall, least) - recall.begin());
    if (at < precision.size()) sum += precision[at];
  }
  return sum / kRecalls;
}

CocoFigures coco_figures(std::span<const DetectionImage> images, int64_t categories) {
  constexpr int kOverlaps = 10;
  const auto mean = [&](std::span<const double> overlaps, ObjectSize size) {
    std::vector<double> all;
    for (const double overlap : overlaps) {
      for (int64_t category = 0; category < categories; ++category) {
        all.push_back(coco_precision(images, category, {.overlap = overlap, .size = size}));
      }
    }
    return mean_of_known(all);
  };
  std::array<double, kOverlaps> overlaps = {};
  // To the bit what numpy.linspace gives: overlaps that are equal to one occur.
  constexpr double kFirst = 0.5, kLast = 0.95, kPace = (kLast - kFirst) / (kOverlaps - 1);
  for (std::size_t i = 0; i < overlaps.size(); ++i) overlaps[i] = kFirst + kPace * static_cast<double>(i);
  overlaps.back() = kLast;
  const std::array half = {0.5}, three_quarters = {0.75};
  return {.mean = mean(overlaps, ObjectSize::all),
          .at_50 = mean(half, ObjectSize::all),
          .at_75 = mean(three_quarters, ObjectSize::all),
          .small = mean(overlaps, ObjectSize::small),
          .medium = mean(overlaps, ObjectSize::medium),
          .large = mean(overlaps, ObjectSize::large)};
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
      if (!object_done[o]) counts[static_cast<std::size_t>(image.objects[o].category) * side + side - 1] += 1;
    }
    for (std::size_t d = 0; d < image.detections.size(); ++d) {
      if (detection_done[d] || image.detections[d].score < score) continue;
      counts[(side - 1) * side + static_cast<std::size_t>(image.detections[d].category)] += 1;
    }
  }
  return counts;
}

}  // namespace gpunn::tasks
