#include "tasks/detection/rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "data/images/image.hpp"

namespace gpunn::tasks {

namespace {

template <class T, std::size_t count>
std::array<T, count> numbers_at(const FieldValues& field, int64_t item) {
  std::array<T, count> numbers = {};
  std::memcpy(numbers.data(), field.values.data() + static_cast<std::size_t>(item) * sizeof(numbers), sizeof(numbers));
  return numbers;
}

TrueBox object_at(const FieldValues& objects, int64_t item) {
  const auto numbers = numbers_at<double, kObjectNumbers>(objects, item);
  TrueBox object{.box = {numbers[0], numbers[1], numbers[2], numbers[3]},
                 .category = static_cast<int64_t>(numbers[4]),
                 .difficult = numbers[6] != 0,
                 .crowd = numbers[7] != 0,
                 .has_id_zero = numbers[8] != 0};
  if (!std::isnan(numbers[5])) object.area = numbers[5];
  return object;
}

// The row as its file has it; nothing if the data does not say.
std::optional<TrueImage> original_of(const EvaluatedRows& rows, std::size_t row) {
  const Split& part = rows.split();
  const auto objects = part.fields.find(kObjectsField), images = part.fields.find(kImagesField);
  if (objects == part.fields.end() || images == part.fields.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(rows.first_in_split()) + row;
  const auto [height, width, order] = numbers_at<int64_t, kImageNumbers>(images->second, static_cast<int64_t>(place));
  const Shape& sample = part.samples.shape;
  TrueImage original{.objects = {},
                     .height = static_cast<double>(height),
                     .width = static_cast<double>(width),
                     .scale = data::fit_inside_scale({height, width, 1, {}}, sample[2], sample[3]),
                     .order = order};
  const std::vector<int64_t>& offsets = objects->second.offsets;
  for (int64_t item = offsets[place]; item < offsets[place + 1]; ++item) {
    original.objects.push_back(object_at(objects->second, item));
  }
  return original;
}

// The target boxes of a row, kBoxNumbers each.
std::vector<float> targets_of(const EvaluatedRows& rows, std::size_t row) {
  const std::span<const std::byte> all = rows.bytes_of(rows.target().name);
  const std::size_t size = all.size() / rows.count();
  std::vector<float> targets(size / sizeof(float));
  if (!targets.empty()) std::memcpy(targets.data(), all.data() + row * size, size);
  return targets;
}

}  // namespace

double image_scale(const EvaluatedRows& rows, std::size_t row) {
  const std::optional<TrueImage> original = original_of(rows, row);
  return original ? original->scale : 1;
}

DetectionImage detection_image(const EvaluatedRows& rows, std::size_t row) {
  std::optional<TrueImage> original = original_of(rows, row);
  const std::vector<float> targets = original ? std::vector<float>() : targets_of(rows, row);
  const double scale = original ? original->scale : 1;
  const auto box = [&](const float* at) {
    return Box{static_cast<double>(at[0]) / scale, static_cast<double>(at[1]) / scale,
               static_cast<double>(at[2]) / scale, static_cast<double>(at[3]) / scale};
  };
  DetectionImage image;
  if (original) {
    image.objects = std::move(original->objects);
    image.order = original->order;
  } else {
    for (std::size_t i = 0; i + kBoxNumbers <= targets.size(); i += kBoxNumbers) {
      const float* const at = targets.data() + i;
      if (!(at[4] >= 0)) continue;
      image.objects.push_back({.box = box(at), .category = static_cast<int64_t>(at[4])});
    }
  }
  const std::span<const float> predictions = rows.prediction(row);
  for (std::size_t i = 0; i + kDetectionNumbers <= predictions.size(); i += kDetectionNumbers) {
    const float* const at = predictions.data() + i;
    if (!(at[5] >= 0)) break;
    image.detections.push_back({box(at), static_cast<int64_t>(at[5]), static_cast<double>(at[4])});
    if (!original) continue;
    // As predictions of the file have it.
    Box& found = image.detections.back().box;
    const double h = original->height, w = original->width;
    found = {std::clamp(found.left, 0.0, w), std::clamp(found.top, 0.0, h), std::clamp(found.right, 0.0, w),
             std::clamp(found.bottom, 0.0, h)};
  }
  return image;
}

}  // namespace gpunn::tasks
