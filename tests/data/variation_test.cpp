// How training images are augmented on the host, and images that stay in their files.
#include <gpunn/data.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "data/variation/picture_changes.hpp"
#include "data/variation/sample_variation.hpp"
#include "data/variation/varied_sample.hpp"
#include "files.hpp"
#include "image_files.hpp"

using namespace gpunn;
using data::Image;

namespace {

std::vector<uint8_t> unhex(const std::string& digits) {
  std::vector<uint8_t> bytes(digits.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, bytes[i], 16);
  }
  return bytes;
}

Image nearest(const Image& image, int64_t height, int64_t width) {
  Image result{height, width, image.channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t row = (2 * y + 1) * image.height / (2 * height), column = (2 * x + 1) * image.width / (2 * width);
      for (int64_t c = 0; c < image.channels; ++c) {
        result.values.push_back(
            image.values[static_cast<std::size_t>((row * image.width + column) * image.channels + c)]);
      }
    }
  }
  return result;
}

void change(Image& image, const std::string& name, double amount) {
  if (name == "brightness") return data::change_brightness(image, amount);
  if (name == "colour") return data::change_colour(image, amount);
  if (name == "contrast") return data::change_contrast(image, amount);
  if (name == "sharpness") return data::change_sharpness(image, amount);
  if (name == "posterize") return data::posterize(image, static_cast<int>(amount));
  if (name == "solarize") return data::solarize(image, amount);
  if (name == "stretch_contrast") return data::stretch_contrast(image);
  if (name == "rotate") return data::rotate(image, amount);
  if (name == "shear") return data::map_pixels(image, {1, amount, 0, 0, 1, 0});
  REQUIRE(name == "equalize");
  image = nearest(image, 30, 40);
  data::equalize(image);
}

// Four classes of three photographs of different sizes.
struct Photographs {
  test::BareMachine bare;
  test::TemporaryFolder root;
  Photographs() {
    for (int i = 0; i < 12; ++i) {
      const int width = 40 + 7 * i, height = 75 - 3 * i;
      std::string pixels;
      for (int at = 0; at < width * height * 3; ++at)
        pixels += static_cast<char>((at * 7 + at / (3 * width) * 5 + i) % 251);
      test::write_file(root / ("c" + std::to_string(i % 4)) / (std::to_string(i) + ".jpg"),
                       test::make_jpeg(width, height, pixels, JCS_RGB, 3));
    }
  }
  Dataset load(Decoding decode) const {
    DataConfig config;
    config.dataset = "image_folder";
    config.path = root.path();
    config.test_fraction = 0.25;
    ImageFolderSet form;
    form.image_size = {32, 24};
    form.channels = 3;
    form.decode = decode;
    config.kind = form;
    return load_dataset(config);
  }
};

std::vector<std::byte> varied(const Split& split, int64_t row, const AugmentationConfig& config, uint64_t epoch,
                              uint64_t seed = 1) {
  const data::SampleVariation variation(config, seed);
  std::vector<std::byte> sample(split.samples.bytes() / static_cast<std::size_t>(split.rows()));
  data::read_sample(split, row, &variation, epoch, sample);
  return sample;
}

}  // namespace

TEST_CASE("pictures are changed as Pillow changes them") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/picture_changes.json");
  const nlohmann::json all = nlohmann::json::parse(file);
  REQUIRE(all["cases"].size() == 48);
  for (const nlohmann::json& one : all["cases"]) {
    const std::string text = one["change"], pixels = all["pictures"][std::to_string(one["channels"].get<int>())];
    INFO(text << ", channels " << one["channels"]);
    Image image{all["height"], all["width"], one["channels"], unhex(pixels)};
    const std::size_t space = text.find(' ');
    change(image, text.substr(0, space), std::stod(text.substr(space)));
    const std::vector<uint8_t> expected = unhex(one["values"]);
    REQUIRE(image.values.size() == expected.size());
    int64_t others = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) others += image.values[i] != expected[i];
    // Pillow turns with numbers of 16 bits behind the point, so a place between two pixels may go to the other one.
    CHECK(others <= (text.starts_with("rotate") ? 2 * image.channels : 0));
  }
}

TEST_CASE("a random part has a share of the area and a shape within what is asked for") {
  data::PhiloxSource random(3, 4, 0);
  double least = 1, most = 0, sum = 0;
  for (int i = 0; i < 4000; ++i) {
    const data::ImageRegion part = data::random_resized_crop(375, 500, {0.08, 1}, {0.75, 4.0 / 3}, random);
    REQUIRE(part.top >= 0);
    REQUIRE(part.left >= 0);
    REQUIRE(part.top + part.height <= 375);
    REQUIRE(part.left + part.width <= 500);
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    REQUIRE(ratio > 0.74);
    REQUIRE(ratio < 1.35);
    const double share = static_cast<double>(part.height * part.width) / (375.0 * 500.0);
    least = std::min(least, share);
    most = std::max(most, share);
    sum += share;
  }
  CHECK(least < 0.085);
  CHECK(most > 0.98);
  // Uniform between 0.08 and 1, less those that do not fit: 0.433 as the mean of 200,000 of torchvision's rule.
  CHECK(std::abs(sum / 4000 - 0.433) < 0.015);
  // Nothing of that shape and share fits: the middle.
  const data::ImageRegion middle = data::random_resized_crop(10, 1000, {0.9, 1}, {0.75, 4.0 / 3}, random);
  CHECK(middle.height == 10);
  CHECK(middle.width == 13);
  CHECK(middle.left == 493);
  const data::ImageRegion point = data::random_resized_crop(1, 1, {0.08, 1}, {0.75, 4.0 / 3}, random);
  CHECK(point.height * point.width == 1);
}

TEST_CASE("images that are decoded when they are wanted are those that were decoded beforehand") {
  const Photographs photographs;
  const Dataset once = photographs.load(Decoding::once), each = photographs.load(Decoding::each_epoch);
  REQUIRE(each.train.source != nullptr);
  REQUIRE(each.train.values.empty());
  CHECK(each.train.samples == once.train.samples);
  CHECK(labels_of(each.train) == labels_of(once.train));
  CHECK(labels_of(each.test) == labels_of(once.test));
  CHECK(each.fields.input().mean == once.fields.input().mean);
  CHECK(each.fields.input().stddev == once.fields.input().stddev);
  for (const auto& [a, b] : {std::pair(&once.train, &each.train), std::pair(&once.test, &each.test)}) {
    REQUIRE(a->rows() > 0);
    for (int64_t row = 0; row < a->rows(); ++row) CHECK(sample_of(*a, row) == sample_of(*b, row));
  }
}

TEST_CASE("what is varied follows from seed, epoch and row alone") {
  const Photographs photographs;
  const Decoding decode = GENERATE(Decoding::once, Decoding::each_epoch);
  const Dataset set = photographs.load(decode);
  AugmentationConfig config;
  const int kind = GENERATE(0, 1, 2);
  CAPTURE(static_cast<int>(decode), kind);
  if (kind == 0) config.resized_crop = {0.08, 1};
  if (kind == 1) config.rand_augment = 2;
  if (kind == 2) config.trivial_augment = true;
  int changed = 0, differ = 0, differ_by_seed = 0;
  for (int64_t row = 0; row < set.train.rows(); ++row) {
    const std::vector<std::byte> first = varied(set.train, row, config, 5);
    CHECK(first == varied(set.train, row, config, 5));
    changed += first != sample_of(set.train, row);
    differ += first != varied(set.train, row, config, 6);
    differ_by_seed += first != varied(set.train, row, config, 5, 2);
  }
  // A change that is drawn may be none.
  const auto rows = static_cast<int>(set.train.rows());
  CHECK(changed >= rows / 2);
  CHECK(differ >= rows / 2);
  CHECK(differ_by_seed >= rows / 2);
}

TEST_CASE("a folder that changes while it is read is an error that says what happened") {
  const Photographs photographs;
  const Dataset set = photographs.load(Decoding::each_epoch);
  const auto read_all = [&] {
    for (int64_t row = 0; row < set.train.rows(); ++row) sample_of(set.train, row);
    for (int64_t row = 0; row < set.test.rows(); ++row) sample_of(set.test, row);
  };
  read_all();
  SECTION("a file is written anew") {
    test::write_file(photographs.root / "c1" / "5.jpg", "other");
    CHECK_THROWS_WITH(read_all(), Contains("5.jpg: the file has 5 bytes, and had") && Contains("Leave the folder"));
  }
  SECTION("a file is taken away") {
    test::fs::remove(photographs.root / "c1" / "5.jpg");
    CHECK_THROWS_WITH(read_all(), Contains("can't read") && Contains("5.jpg"));
  }
}
