// Samples of images with boxes: how they are augmented, and where the boxes then lie.
#include "data/detection/box_source.hpp"

#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "data/detection/box_dataset.hpp"
#include "data/detection/draw_boxes.hpp"
#include "files.hpp"

using namespace gpunn;
using namespace gpunn::data;
using test::write_file;

namespace {

// Black, with a white rectangle that its box is around.
BoxedImage with_rectangle(int64_t height, int64_t width, const fields::Box& box) {
  BoxedImage boxed{.name = "a", .image = {height, width, 1, {}}};
  boxed.image.values.assign(static_cast<std::size_t>(height * width), 0);
  for (auto y = static_cast<int64_t>(box.top); y < static_cast<int64_t>(box.bottom); ++y) {
    for (auto x = static_cast<int64_t>(box.left); x < static_cast<int64_t>(box.right); ++x) {
      boxed.image.values[static_cast<std::size_t>(y * width + x)] = 255;
    }
  }
  boxed.objects.push_back({.box = box, .category = 2});
  return boxed;
}

// The part of a sample [1, H, W] that is white.
fields::Box white_part(const std::vector<std::byte>& sample, int64_t height, int64_t width) {
  fields::Box box{static_cast<double>(width), static_cast<double>(height), 0, 0};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      if (static_cast<uint8_t>(sample[static_cast<std::size_t>(y * width + x)]) < 200) continue;
      const auto u = static_cast<double>(x), v = static_cast<double>(y);
      box = {std::min(box.left, u), std::min(box.top, v), std::max(box.right, u + 1), std::max(box.bottom, v + 1)};
    }
  }
  return box;
}

BoxSet grey(int64_t height, int64_t width, int64_t most_boxes) {
  BoxSet settings;
  settings.image_size = {height, width};
  settings.channels = 1;
  settings.most_boxes = most_boxes;
  return settings;
}

struct Sample {
  std::vector<std::byte> pixels;
  std::vector<float> boxes;
};

Sample sample_at(BoxSource& source, const BoxSet& settings, int64_t step) {
  Sample sample{std::vector<std::byte>(static_cast<std::size_t>(settings.image_size[0] * settings.image_size[1])),
                std::vector<float>(static_cast<std::size_t>(settings.most_boxes * kBoxNumbers))};
  source.read(step, {sample.pixels, {std::as_writable_bytes(std::span(sample.boxes))}});
  return sample;
}

}  // namespace

TEST_CASE("boxes go with what they are around when images are scaled, stretched, turned and moved") {
  BoxSet settings = grey(64, 96, 4);
  settings.zoom = {0.5, 1.5};
  settings.stretch = 1.5;
  settings.vertical_flip = 0.5;
  settings.transpose = 0.5;
  BoxSource source(images_in_memory({with_rectangle(80, 100, {20, 30, 60, 50})}), settings, 1, true);
  int seen = 0;
  for (int64_t step = 0; step < 60; ++step) {
    const Sample sample = sample_at(source, settings, step);
    if (sample.boxes[4] < 0) continue;
    CHECK(sample.boxes[4] == 2);
    const fields::Box white = white_part(sample.pixels, 64, 96);
    CHECK(static_cast<double>(sample.boxes[0]) == Approx(white.left).margin(1));
    CHECK(static_cast<double>(sample.boxes[1]) == Approx(white.top).margin(1));
    CHECK(static_cast<double>(sample.boxes[2]) == Approx(white.right).margin(1));
    CHECK(static_cast<double>(sample.boxes[3]) == Approx(white.bottom).margin(1));
    CHECK(sample.boxes[kBoxNumbers + 4] == -1);
    ++seen;
  }
  CHECK(seen > 40);
}

TEST_CASE("a mosaic has boxes of several images, all within, and colours vary") {
  BoxSet settings = grey(64, 64, 8);
  settings.flip = 0;
  settings.colour = 0.3;
  settings.mosaic = 1;
  std::vector<BoxedImage> images(3, with_rectangle(64, 64, {16, 16, 48, 48}));
  BoxSource source(images_in_memory(images), settings, 1, true);
  int64_t most = 0;
  for (int64_t step = 0; step < 20; ++step) {
    const Sample sample = sample_at(source, settings, step);
    int64_t count = 0;
    for (std::size_t i = 0; i < sample.boxes.size() && sample.boxes[i + 4] >= 0; i += kBoxNumbers, ++count) {
      CHECK(sample.boxes[i] >= 0);
      CHECK(sample.boxes[i + 2] <= 64);
      CHECK(sample.boxes[i + 2] - sample.boxes[i] >= 2);
    }
    most = std::max(most, count);
  }
  CHECK(most >= 3);
}

TEST_CASE("mosaics end with the epochs that have them, and other samples stay as they were") {
  BoxSet settings = grey(32, 32, 8), plain = settings;
  settings.mosaic = 1;
  settings.mosaic_epochs = 2;
  const std::vector<BoxedImage> images(3, with_rectangle(32, 32, {8, 8, 24, 24}));
  BoxSource source(images_in_memory(images), settings, 1, true), without(images_in_memory(images), plain, 1, true);
  for (int64_t step = 0; step < 9; ++step) {
    const bool same = sample_at(source, settings, step).pixels == sample_at(without, plain, step).pixels;
    CHECK(same == (step >= 6));
  }
}

TEST_CASE("a sample is a function of its number, and an epoch has each image once") {
  BoxSet settings = grey(8, 8, 1);
  settings.flip = 0;
  std::vector<BoxedImage> images;
  for (int64_t i = 0; i < 5; ++i) {
    images.push_back(with_rectangle(8, 8, {2, 2, 6, 6}));
    images.back().objects[0].category = i;
  }
  BoxSource source(images_in_memory(images), settings, 7, true), same(images_in_memory(images), settings, 7, true);
  std::vector<float> first, second;
  for (int64_t step = 0; step < 10; ++step) {
    const Sample one = sample_at(source, settings, step);
    CHECK(one.pixels == sample_at(same, settings, step).pixels);
    (step < 5 ? first : second).push_back(one.boxes[4]);
  }
  CHECK(first != second);
  std::ranges::sort(first);
  CHECK(first == std::vector<float>{0, 1, 2, 3, 4});
}

TEST_CASE("digits on canvases: each box is around ink, and no two hide each other") {
  DataConfig config;
  config.dataset = "drawn_digits";
  config.kind = grey(96, 128, 100);
  config.synthetic_train = 20;
  config.synthetic_test = 20;
  const Dataset set = load_dataset(config);
  CHECK(set.fields.target().kind == "boxes");
  CHECK(set.fields.target().count() == 10);
  CHECK(set.test.samples.shape == Shape{20, 1, 96, 128});
  const FieldValues& field = set.test.fields.at(kTargetField);
  std::vector<float> boxes(field.values.size() / sizeof(float));
  std::memcpy(boxes.data(), field.values.data(), field.values.size());
  int digits = 0;
  for (std::size_t i = 0; i < boxes.size(); i += kBoxNumbers) {
    if (boxes[i + 4] < 0) continue;
    ++digits;
    const std::size_t row = i / (boxes.size() / 20);
    const auto pixel = [&](float x, float y) {
      const auto at = row * 96 * 128 + static_cast<std::size_t>(y) * 128 + static_cast<std::size_t>(x);
      return static_cast<int>(set.test.values[at]);
    };
    int ink = 0;
    for (float y = boxes[i + 1]; y < boxes[i + 3]; ++y) ink = std::max(ink, pixel(boxes[i], y));
    CHECK(ink >= 64);  // its left border touches the digit
  }
  CHECK(digits >= 70);
}

TEST_CASE("a folder in VOC's layout: parts by lists, classes of the training part, notes on what was wrong") {
  const gpunn::testing::TemporaryFolder folder;
  const auto root = folder.path();
  const auto add = [&](const std::string& name, const std::string& category, int left) {
    write_file(root / "JPEGImages" / (name + ".pgm"), "P5 40 30 255\n" + std::string(1200, 'a'));
    write_file(root / "Annotations" / (name + ".xml"),
               "<annotation><object><name>" + category + "</name><bndbox><xmin>" + std::to_string(left) +
                   "</xmin><ymin>5</ymin><xmax>30</xmax><ymax>25</ymax></bndbox></object></annotation>");
  };
  add("a", "cat", 10);
  add("b", "dog", 30);  // no area
  add("c", "cat", 0);
  write_file(root / "ImageSets/Main/trainval.txt", "a\nb\n");
  write_file(root / "ImageSets/Main/test.txt", "c\n");
  DataConfig config;
  config.dataset = "detection_folder";
  config.path = root;
  BoxSet settings = grey(60, 60, 10);
  settings.channels = 3;
  config.kind = settings;
  const Dataset set = load_dataset(config);
  CHECK(set.fields.target().names == std::vector<std::string>{"cat", "dog"});
  CHECK(set.train.rows() == 2);
  CHECK(set.test.rows() == 1);
  const FieldValues& field = set.test.fields.at(kTargetField);
  std::vector<float> box(kBoxNumbers);
  std::memcpy(box.data(), field.values.data(), box.size() * sizeof(float));
  CHECK(box == std::vector<float>{0, 7.5, 45, 37.5, 0});
  CHECK_THAT(set.notes.at(0), Contains("training part: 1 of 2 boxes are left out: 1 without area"));
  write_file(root / "ImageSets/Main/test.txt", "");
  std::filesystem::remove(root / "ImageSets/Main/test.txt");
  CHECK_THROWS_WITH(load_dataset(config), Contains("test.txt") && Contains("data.test_list"));
}

TEST_CASE("images that are read from files each time give the samples of those in memory, and notice a change") {
  const gpunn::testing::TemporaryFolder folder;
  Annotations annotations;
  for (const std::string name : {"a", "b", "c"}) {
    const auto file = folder.path() / (name + ".pgm");
    write_file(file, "P5 40 30 255\n" + std::string(600, name[0]) + std::string(600, 'z'));
    annotations.images.push_back({.file = file, .place = name, .boxes = {{{5, 5, 30, 25}, "cat"}}});
  }
  BoxRepairs in_memory, in_files;
  gpunn::data::DamagedFiles damaged(gpunn::Damaged::error);
  const auto kept =
      box_images(annotations, {"cat"}, {.channels = 1, .most_side = 32}, in_memory, damaged, Keeping::memory);
  const auto read =
      box_images(annotations, {"cat"}, {.channels = 1, .most_side = 32}, in_files, damaged, Keeping::files);
  CHECK(read->outline(0).image.values.empty());
  CHECK(in_files.boxes == in_memory.boxes);
  BoxSet settings = grey(32, 32, 4);
  settings.mosaic = 0.5;
  settings.zoom = {0.7, 1.4};
  BoxSource source(kept, settings, 3, true), again(read, settings, 3, true);
  for (int64_t step = 0; step < 12; ++step) {
    const Sample one = sample_at(source, settings, step), other = sample_at(again, settings, step);
    CHECK(one.pixels == other.pixels);
    CHECK(one.boxes == other.boxes);
  }
  DataConfig config;
  config.kind = settings;
  const Dataset whole = box_dataset(kept, kept, {"cat"}, config), streamed = box_dataset(read, read, {"cat"}, config);
  CHECK(streamed.test.values.empty());
  for (int64_t row = 0; row < 3; ++row) CHECK(sample_of(streamed.test, row) == sample_of(whole.test, row));
  CHECK(streamed.test.fields.at(kTargetField).values == whole.test.fields.at(kTargetField).values);
  write_file(folder.path() / "b.pgm", "P5 20 30 255\n" + std::string(600, 'z'));
  CHECK_THROWS_WITH(read->image(1), Contains("b.pgm: has another size than when the data set was opened"));
}

TEST_CASE("boxes are drawn in colour, within the picture") {
  Image image{20, 20, 1, std::vector<uint8_t>(400, 0)};
  const std::vector<ShownBox> boxes = {{{2, 10, 12, 18}, "cat 90", 0}, {{-5, -5, 50, 50}, "", 1}};
  draw_boxes(image, boxes);
  CHECK(image.channels == 3);
  CHECK(image.values[(10 * 20 + 5) * 3] == 230);  // the top of the first
  CHECK(image.values[(14 * 20 + 7) * 3] == 0);    // its middle
}
