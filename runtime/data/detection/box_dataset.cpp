#include "data/detection/box_dataset.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "common/parallel.hpp"
#include "config/key_builders.hpp"
#include "data/detection/box_source.hpp"
#include "data/registry.hpp"
#include "data/rows/room.hpp"

namespace gpunn::data {

namespace {

constexpr double kMostCanvas = 4096, kMostBoxesOfImage = 10000, kMostEpoch = 100'000'000, kMostStretch = 4;

void fit_boxes(const BoxedImage& boxed, const Shape& sample, std::span<float> boxes) {
  const double scale = fit_inside_scale(boxed.image, sample[2], sample[3]);
  std::vector<fields::TrueBox> objects = boxed.objects;
  for (fields::TrueBox& object : objects) object.box = Placement{.scale = scale}.of(object.box, boxed.image);
  write_boxes(objects, boxes);
}

// Images of files as evaluations see them.
class FittedRows : public SampleSource {
 public:
  FittedRows(std::shared_ptr<const BoxImages> images, Shape sample)
      : images_(std::move(images)), sample_(std::move(sample)) {}

  void read(int64_t row, SampleDraw*, std::span<std::byte> sample) const override {
    write_planes(fit_inside(images_->image(row)->image, sample_[2], sample_[3]), sample.data());
  }
  uint32_t digest(std::span<const int64_t>) const override { return images_->digest(); }

 private:
  std::shared_ptr<const BoxImages> images_;
  Shape sample_;
};

template <class T>
void append_bytes(std::vector<std::byte>& to, std::span<const T> values) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::array<double, kObjectNumbers> numbers_of(const fields::TrueBox& one) {
  const auto flag = [](bool is) { return is ? 1.0 : 0.0; };
  return {one.box.left,
          one.box.top,
          one.box.right,
          one.box.bottom,
          static_cast<double>(one.category),
          one.area.value_or(std::numeric_limits<double>::quiet_NaN()),
          flag(one.difficult),
          flag(one.crowd),
          flag(one.has_id_zero)};
}

// What the files have of the images and their boxes, as Split::fields.
void add_originals(Split& split, const BoxImages& images) {
  const int64_t rows = images.count();
  FieldValues objects{.type = {DType::f64, {0, kObjectNumbers}}, .values = {}, .offsets = {0}};
  FieldValues sizes{.type = {DType::i64, {rows, kImageNumbers}}, .values = {}};
  FieldValues ids{.type = {DType::u8, {0}}, .values = {}, .offsets = {0}};
  for (int64_t i = 0; i < rows; ++i) {
    const BoxedImage& boxed = images.outline(i);
    const BoxedImage::Original original = boxed.original.value_or(BoxedImage::Original{
        .height = boxed.image.height, .width = boxed.image.width, .objects = boxed.objects, .order = i, .id = {}});
    for (const fields::TrueBox& one : original.objects) append_bytes<double>(objects.values, numbers_of(one));
    objects.offsets.push_back(objects.offsets.back() + std::ssize(original.objects));
    append_bytes<int64_t>(sizes.values, std::array{original.height, original.width, original.order});
    append_bytes<char>(ids.values, original.id);
    ids.offsets.push_back(std::ssize(ids.values));
  }
  objects.type.shape[0] = objects.offsets.back();
  ids.type.shape[0] = ids.offsets.back();
  split.fields[kObjectsField] = std::move(objects);
  split.fields[kImagesField] = std::move(sizes);
  if (!ids.values.empty()) split.fields[kImageIdsField] = std::move(ids);
}

Split split_of_boxes(const std::shared_ptr<const BoxImages>& images, const BoxSet& settings) {
  Split split;
  const int64_t rows = images == nullptr ? 0 : images->count();
  if (rows == 0) return split;
  split.samples = {DType::u8, {rows, settings.channels, settings.image_size[0], settings.image_size[1]}};
  const Shape& sample = split.samples.shape;
  std::size_t most = 1;
  for (int64_t i = 0; i < rows; ++i) most = std::max(most, images->outline(i).objects.size());
  const std::size_t numbers = most * static_cast<std::size_t>(kBoxNumbers);
  std::vector<float> boxes(static_cast<std::size_t>(rows) * numbers);
  for (int64_t i = 0; i < rows; ++i) {
    fit_boxes(images->outline(i), sample, std::span(boxes).subspan(static_cast<std::size_t>(i) * numbers, numbers));
  }
  if (images->in_memory()) {
    make_room(split);
    const std::size_t sample_bytes = split.samples.bytes() / static_cast<std::size_t>(rows);
    for_row_stretches(rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        write_planes(fit_inside(images->outline(i).image, sample[2], sample[3]),
                     split.values.data() + static_cast<std::size_t>(i) * sample_bytes);
      }
    });
  } else {
    split.source = std::make_shared<FittedRows>(images, sample);
    split.source_rows.resize(static_cast<std::size_t>(rows));
    std::iota(split.source_rows.begin(), split.source_rows.end(), int64_t{0});
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(boxes));
  split.fields[kTargetField] = {.type = {DType::f32, {rows, static_cast<int64_t>(most), kBoxNumbers}},
                                .values = {bytes.begin(), bytes.end()}};
  add_originals(split, *images);
  return split;
}

}  // namespace

BoxSet box_settings(const DataConfig& config, const std::vector<int64_t>& image_size) {
  auto settings = settings_for<BoxSet>(config);
  if (settings.image_size.empty()) settings.image_size = image_size;
  if (settings.channels == 0) settings.channels = 3;
  return settings;
}

Dataset box_dataset(std::shared_ptr<const BoxImages> train, const std::shared_ptr<const BoxImages>& test,
                    std::vector<std::string> classes, const DataConfig& config,
                    const std::shared_ptr<const BoxImages>& validation) {
  const BoxSet settings = box_settings(config, {512, 512});
  if (train->count() == 0) throw Error("there is no image with an annotation to train on", ExitCode::missing);
  Dataset set;
  set.fields.target() = {.name = kTargetField,
                         .role = Role::target,
                         .kind = "boxes",
                         .type = {DType::f32, {settings.most_boxes, kBoxNumbers}},
                         .names = std::move(classes)};
  const int64_t images = train->count();
  const int64_t epoch = settings.epoch_samples > 0 ? settings.epoch_samples : images;
  set.train.samples = {DType::u8, {epoch, settings.channels, settings.image_size[0], settings.image_size[1]}};
  set.test = split_of_boxes(test, settings);
  set.validation = split_of_boxes(validation, settings);
  set.fields.input().fit.inside = true;
  // Of photographs (ImageNet's), or of grey.
  set.fields.input().mean = settings.channels == 3 ? std::vector{0.485, 0.456, 0.406} : std::vector{0.45};
  set.fields.input().stddev = settings.channels == 3 ? std::vector{0.229, 0.224, 0.225} : std::vector{0.225};
  int64_t crowded = 0;
  for (int64_t i = 0; i < images; ++i) crowded += std::ssize(train->outline(i).objects) > settings.most_boxes;
  if (crowded > 0) {
    set.notes.push_back(std::to_string(crowded) + " training images show more than " +
                        std::to_string(settings.most_boxes) + " objects (data.most_boxes); the others are not learnt");
  }
  if (!train->in_memory()) {
    set.notes.emplace_back("the images may not fit into memory: they are decoded anew each time they are needed");
  }
  set.batches = std::make_shared<BoxSource>(std::move(train), settings, config.order_seed, config.shuffle);
  return set;
}

config::KindOf<DataConfig> box_keys(std::vector<config::KeyOf<BoxSet>> own, const std::vector<int64_t>&) {
  using namespace config;
  using B = BoxSet;
  KindOf<DataConfig> kind = make_kind<B, DataConfig>({});
  KeyOf<B> zoom = optional(numbers("zoom", &B::zoom, from_to_below(0.05, 20),
                                   "While training images are scaled at random, from the least to the most, as "
                                   "[0.6, 1.6], and put anywhere. Default: neither."));
  zoom.count = 2;
  const std::vector<KeyOf<B>> shared = {
      pixels("image_size", &B::image_size, between(8, kMostCanvas), -1,
             "Rows and columns that images are scaled into, their proportions kept."),
      integer("channels", &B::channels, between(1, 3), "3: colour, 1: grey."),
      number("flip", &B::flip, between(0, 1), "The share of the training images that is mirrored left to right."),
      number("vertical_flip", &B::vertical_flip, between(0, 1),
             "The share that is mirrored top to bottom, for images without an up and down, as of a microscope."),
      number("transpose", &B::transpose, between(0, 1),
             "The share whose rows become columns; with both flips, images are turned by quarters, too."),
      zoom,
      number("stretch", &B::stretch, between(1, kMostStretch),
             "Width by height of training images changes by up to this factor; 1: not at all."),
      number("colour", &B::colour, between(0, 1),
             "Brightness, contrast and saturation of training images change by up to this share."),
      number("mosaic", &B::mosaic, between(0, 1), "The share of the training samples that is put together of four."),
      integer("mosaic_epochs", &B::mosaic_epochs, between(0, kMostEpoch),
              "The first so many epochs have such samples, the others none; 0: all have."),
      integer("epoch_samples", &B::epoch_samples, between(0, kMostEpoch),
              "Samples of an epoch; 0: as many as there are training images."),
      integer("most_boxes", &B::most_boxes, between(1, kMostBoxesOfImage),
              "Boxes of a training sample; further ones are not learnt.")};
  own.insert(own.end(), shared.begin(), shared.end());
  for (KeyOf<B>& key : own) kind.keys.push_back(in_kind<B, DataConfig>(std::move(key)));
  return kind;
}

void check_boxes(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const auto settings = settings_for<BoxSet>(config);
  const auto complain = [&](const std::string& key, const std::string& what) {
    if (given.sound(key)) found.add(given.place(key), key + ": " + what);
  };
  if (!settings.image_size.empty() &&
      (settings.image_size.size() != 2 || std::ranges::count(settings.image_size, -1) > 0)) {
    complain("data.image_size", "expected a whole number, or rows and columns as [480, 640]");
  }
  if (settings.channels == 2) complain("data.channels", "expected 1 or 3, found 2");
  if (settings.zoom.size() == 2 && settings.zoom[0] > settings.zoom[1]) {
    complain("data.zoom", "expected the least in front of the most");
  }
  const int64_t epoch = settings.epoch_samples;
  if (epoch > 0 && epoch < config.batch_size) {
    complain("data.epoch_samples", std::to_string(epoch) + " is less than one batch (data.batch_size: " +
                                       std::to_string(config.batch_size) + ")");
  }
  // These choose among rows that are there beforehand.
  const auto refuse = [&](const std::string& key, bool is_given) {
    if (is_given) complain(key, "is not for samples that are varied while training; list the images of each part");
  };
  refuse("data.validation_fraction", config.validation_fraction > 0);
  refuse("data.test_fraction", config.test_fraction > 0);
  refuse("data.train_limit", config.train_limit > 0);
}

}  // namespace gpunn::data
