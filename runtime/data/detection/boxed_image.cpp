#include "data/detection/boxed_image.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include "common/host_memory.hpp"
#include "common/parallel.hpp"
#include "common/text.hpp"
#include "data/images/exif.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

using fields::Box;
using fields::TrueBox;

namespace {

constexpr std::size_t kMostExamples = 3;
constexpr double kLeastSide = 1e-3;  // pixels; a side below is a rounding

std::string counted(int64_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

bool same(const TrueBox& a, const TrueBox& b) {
  return a.category == b.category && a.box.left == b.box.left && a.box.top == b.box.top && a.box.right == b.box.right &&
         a.box.bottom == b.box.bottom;
}

int64_t number_of_class(const std::string& name, const std::vector<std::string>& classes, const std::string& place) {
  const auto found = std::ranges::find(classes, name);
  if (found != classes.end()) return found - classes.begin();
  throw Error(place + ": the class " + in_quotes(name) + " is not among those of the training images" +
              did_you_mean_or_list(name, classes));
}

bool is_finite(const Box& box) { return std::isfinite(box.left + box.top + box.right + box.bottom); }

// Returns whether it was not.
bool put_in_order(Box& box) {
  if (box.left <= box.right && box.top <= box.bottom) return false;
  box = {std::min(box.left, box.right), std::min(box.top, box.bottom), std::max(box.left, box.right),
         std::max(box.top, box.bottom)};
  return true;
}

// A box as the file has it, in pixels.
TrueBox true_box(const NamedBox& named, const AnnotatedImage& annotated, int64_t height, int64_t width,
                 const std::vector<std::string>& classes) {
  TrueBox box{.box = named.box,
              .category = number_of_class(named.category, classes, annotated.place),
              .difficult = named.difficult,
              .crowd = named.crowd,
              .area = named.area,
              .has_id_zero = named.has_id_zero};
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  if (annotated.relative) box.box = {box.box.left * w, box.box.top * h, box.box.right * w, box.box.bottom * h};
  return box;
}

// The picture as its annotation means it.
Image as_annotated(const AnnotatedImage& annotated, int64_t channels, BoxRepairs& repairs, std::string* damage) {
  const files::Content content = files::read(annotated.file, kMostImageFileBytes);
  Image image = decode_image_as_stored(content.bytes(), annotated.file, kMostPixels, damage);
  repairs.from_16_bits += image.from_16_bits;
  image = convert_channels(std::move(image), channels);
  const bool says = annotated.width > 0 && annotated.height > 0;
  const int orientation = exif_orientation(content.text());
  if (orientation > 1) {
    Image turned = turned_by_orientation(image, orientation);
    const bool as_stored = says && annotated.width == image.width && annotated.height == image.height;
    const bool as_shown = turned.width == annotated.width && turned.height == annotated.height;
    if (as_shown || !says || !as_stored) {
      image = std::move(turned);
      ++repairs.turned;
    }
  }
  repairs.other_size += says && (annotated.width != image.width || annotated.height != image.height);
  return image;
}

}  // namespace

void BoxRepairs::add(const BoxRepairs& other) {
  boxes += other.boxes;
  swapped += other.swapped;
  clipped += other.clipped;
  outside += other.outside;
  no_area += other.no_area;
  not_finite += other.not_finite;
  twice += other.twice;
  without_boxes += other.without_boxes;
  turned += other.turned;
  other_size += other.other_size;
  from_16_bits += other.from_16_bits;
  for (const std::string& example : other.examples) {
    if (examples.size() < kMostExamples) examples.push_back(example);
  }
}

std::vector<std::string> BoxRepairs::notes() const {
  std::vector<std::string> notes;
  const std::string of = " of " + std::to_string(boxes) + " boxes ";
  const auto tell = [&](int64_t count, const std::string& text) {
    if (count > 0) notes.push_back(std::to_string(count) + text);
  };
  tell(swapped, of + "had their corners swapped, which are put in order");
  tell(clipped, of + "reached beyond their image and are clipped to it");
  const int64_t lost = outside + no_area + not_finite;
  if (lost > 0) {
    std::string text = std::to_string(lost) + of + "are left out: ";
    std::vector<std::string> kinds;
    if (no_area > 0) kinds.push_back(std::to_string(no_area) + " without area");
    if (outside > 0) kinds.push_back(std::to_string(outside) + " outside their image");
    if (not_finite > 0) kinds.push_back(std::to_string(not_finite) + " not finite");
    notes.push_back(text + join(kinds, ", ") + " (" + join(examples, ", ") + ")");
  }
  tell(twice, of + "are there twice and left out");
  if (without_boxes > 0) notes.push_back(counted(without_boxes, "image shows", "images show") + " no object");
  if (turned > 0) {
    notes.push_back(counted(turned, "photograph is", "photographs are") + " turned as the camera noted (EXIF)");
  }
  if (other_size > 0) {
    notes.push_back(counted(other_size, "image has", "images have") + " another size than the annotation says");
  }
  if (from_16_bits > 0) {
    notes.push_back(counted(from_16_bits, "image has", "images have") + " 16 bits a channel, which are scaled to 8");
  }
  return notes;
}

std::vector<TrueBox> checked_boxes(const AnnotatedImage& annotated, int64_t height, int64_t width,
                                   const std::vector<std::string>& classes, BoxRepairs& repairs) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  std::vector<TrueBox> boxes;
  int64_t number = 0;
  const auto leave_out = [&](int64_t& kind) {
    ++kind;
    if (repairs.examples.size() < kMostExamples) {
      repairs.examples.push_back(annotated.place + ", box " + std::to_string(number));
    }
  };
  for (const NamedBox& named : annotated.boxes) {
    ++number;
    ++repairs.boxes;
    TrueBox found = true_box(named, annotated, height, width, classes);
    Box& box = found.box;
    if (!is_finite(box)) {
      leave_out(repairs.not_finite);
      continue;
    }
    repairs.swapped += put_in_order(box);
    if (box.width() < kLeastSide || box.height() < kLeastSide) {
      leave_out(repairs.no_area);
      continue;
    }
    if (box.right <= 0 || box.bottom <= 0 || box.left >= w || box.top >= h) {
      leave_out(repairs.outside);
      continue;
    }
    // Shares of the sides are rounded in files.
    constexpr double kRounding = 0.01;
    if (box.left < -kRounding || box.top < -kRounding || box.right > w + kRounding || box.bottom > h + kRounding) {
      ++repairs.clipped;
    }
    box = fields::intersection(box, {0, 0, w, h});
    if (std::ranges::any_of(boxes, [&](const TrueBox& other) { return same(other, found); })) {
      ++repairs.twice;
      continue;
    }
    boxes.push_back(found);
  }
  repairs.without_boxes += boxes.empty();
  return boxes;
}

std::vector<TrueBox> counted_boxes(const AnnotatedImage& annotated, int64_t height, int64_t width,
                                   const std::vector<std::string>& classes) {
  std::vector<TrueBox> boxes;
  for (const NamedBox& named : annotated.boxes) {
    TrueBox box = true_box(named, annotated, height, width, classes);
    if (!is_finite(box.box)) continue;
    put_in_order(box.box);
    boxes.push_back(box);
  }
  return boxes;
}

std::vector<std::string> classes_of(const Annotations& annotations) {
  if (!annotations.classes.empty()) return annotations.classes;
  std::set<std::string> names;
  for (const AnnotatedImage& image : annotations.images) {
    for (const NamedBox& box : image.boxes) names.insert(box.category);
  }
  return {names.begin(), names.end()};
}

std::optional<BoxedImage> boxed_image(const AnnotatedImage& annotated, const std::vector<std::string>& classes,
                                      const ImageForm& form, BoxRepairs& repairs, DamagedFiles& damaged) {
  BoxedImage boxed{.name = annotated.file.filename().string(), .image = {}};
  const auto read = [&](std::string* damage) { boxed.image = as_annotated(annotated, form.channels, repairs, damage); };
  if (!damaged.sound(annotated.file, read)) return std::nullopt;
  const int64_t height = boxed.image.height, width = boxed.image.width, most_side = form.most_side;
  boxed.objects = checked_boxes(annotated, height, width, classes, repairs);
  boxed.original = {.height = height,
                    .width = width,
                    .objects = counted_boxes(annotated, height, width, classes),
                    .order = annotated.order,
                    .id = annotated.id};
  if (form.is_sample) {
    boxed.scale = fit_inside_scale(boxed.image, form.rows, form.columns);
    boxed.image = fit_inside(boxed.image, form.rows, form.columns);
    for (TrueBox& object : boxed.objects) {
      const Box& box = object.box;
      object.box = {box.left * boxed.scale, box.top * boxed.scale, box.right * boxed.scale, box.bottom * boxed.scale};
    }
    return boxed;
  }
  const int64_t longer = std::max(height, width);
  if (longer <= most_side) return boxed;
  const auto shrunk = [&](int64_t side) { return std::max<int64_t>(1, (side * most_side + longer / 2) / longer); };
  const double rows = static_cast<double>(shrunk(boxed.image.height)) / static_cast<double>(boxed.image.height);
  const double columns = static_cast<double>(shrunk(boxed.image.width)) / static_cast<double>(boxed.image.width);
  boxed.image = resize(boxed.image, shrunk(boxed.image.height), shrunk(boxed.image.width));
  boxed.scale = static_cast<double>(most_side) / static_cast<double>(longer);
  for (TrueBox& object : boxed.objects) {
    Box& box = object.box;
    box = {box.left * columns, box.top * rows, box.right * columns, box.bottom * rows};
  }
  return boxed;
}

uint64_t boxed_image_bytes(const Annotations& annotations, const ImageForm& form) {
  const int64_t pixels = form.is_sample ? form.rows * form.columns : form.most_side * form.most_side / 2;
  return annotations.images.size() * static_cast<uint64_t>(pixels * form.channels);
}

std::vector<BoxedImage> read_boxed_images(const Annotations& annotations, const std::vector<std::string>& classes,
                                          const ImageForm& form, BoxRepairs& repairs, DamagedFiles& damaged) {
  const std::vector<AnnotatedImage>& listed = annotations.images;
  const int64_t side = form.is_sample ? std::max(form.rows, form.columns) : form.most_side;
  require_host_memory(boxed_image_bytes(annotations, form),
                      std::to_string(listed.size()) + " images of up to " + std::to_string(side) + " pixels a side");
  std::vector<std::optional<BoxedImage>> images(listed.size());
  std::vector<BoxRepairs> of_image(listed.size());
  LongWork work("reading the images", listed.size());
  for_row_stretches(static_cast<int64_t>(listed.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i, work.advance()) {
      images[i] = boxed_image(listed[i], classes, form, of_image[i], damaged);
    }
  });
  for (const BoxRepairs& one : of_image) repairs.add(one);
  std::vector<BoxedImage> sound;
  for (std::optional<BoxedImage>& image : images) {
    if (image) sound.push_back(std::move(*image));
  }
  return sound;
}

}  // namespace gpunn::data
