#include <gpunn/data.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "catch.hpp"
#include "data/folders/folder_scan.hpp"
#include "files.hpp"
#include "image_files.hpp"

using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::ImageFolderSet;
using gpunn::load_dataset;
using test::make_jpeg;
using test::make_png;
using test::value;
using test::write_file;

namespace {

DataConfig config_of(const test::fs::path& path) {
  DataConfig config;
  config.dataset = "image_folder";
  config.kind = ImageFolderSet();
  config.path = path;
  return config;
}

ImageFolderSet& settings(DataConfig& config) { return std::get<ImageFolderSet>(config.kind); }

std::string grey_png(int value, uint32_t width = 4, uint32_t height = 3) {
  return make_png(width, height, std::string(std::size_t{width} * height, static_cast<char>(value)));
}

std::string colour_png(int red, int green, int blue, uint32_t width = 4, uint32_t height = 3) {
  std::string rows;
  for (uint32_t i = 0; i < width * height; ++i) {
    for (const int value : {red, green, blue}) rows += static_cast<char>(value);
  }
  test::PngOptions options;
  options.color_type = PNG_COLOR_TYPE_RGB;
  return make_png(width, height, rows, options);
}

// A PNG with the control chunk of an animation in front of its pixels.
std::string animated_png(int value) {
  std::string png = grey_png(value);
  std::string chunk(
      "\0\0\0\x08"
      "acTL"
      "\0\0\0\x02\0\0\0\0",
      16);
  const auto sum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(chunk.data() + 4), 12));
  for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(sum >> shift & 255U);
  return png.insert(33, chunk);  // behind the signature and the header
}

struct Folder {
  test::BareMachine bare;
  test::TemporaryFolder root;
  void put(const std::string& name, const std::string& bytes) const { write_file(root / name, bytes); }
  Dataset load() const { return load_dataset(config_of(root.path())); }
};

bool has_note(const Dataset& set, const std::string& text) {
  return std::any_of(set.notes.begin(), set.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("a folder a class, sorted by name, in two parts") {
  const Folder f;
  f.put("train/dog/b.png", grey_png(40));
  f.put("train/dog/a.png", grey_png(30));
  f.put("train/dog/deep/er/c.PNG", grey_png(50));
  f.put("train/cat/9.jpeg", make_jpeg(4, 3, std::string(12, '\x0a'), JCS_GRAYSCALE, 1));
  f.put("train/cat/10.pgm", "P5 4 3 255\n" + std::string(12, '\x14'));
  f.put("train/.thumbnails/x.png", "rubbish");
  f.put("train/dog/.hidden.png", "rubbish");
  f.put("train/dog/notes.txt", "read me");
  f.put("test/dog/z.png", grey_png(60));
  const Dataset set = f.load();
  CHECK(set.fields.target().names == std::vector<std::string>{"cat", "dog"});
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {5, 1, 3, 4}});
  CHECK(set.test.samples == gpunn::TensorType{gpunn::DType::u8, {1, 1, 3, 4}});
  // Each class in turn, the files of a class by name.
  CHECK(labels_of(set.train) == std::vector<int32_t>{0, 1, 0, 1, 1});
  CHECK(labels_of(set.test) == std::vector<int32_t>{1});
  for (const auto& [row, expected] : {std::pair<std::size_t, int>{0, 20}, {1, 30}, {2, 10}, {3, 40}, {4, 50}}) {
    CHECK(value(set.train, 12 * row) == expected);
    CHECK(value(set.train, 12 * row + 11) == expected);
  }
  CHECK(value(set.test, 5) == 60);
  CHECK(set.notes.size() == 3);
  CHECK(has_note(set, "notes.txt"));
  CHECK(has_note(set, "the parts are recognised by the names of their folders: train: "));
  CHECK(has_note(set, "test: lacks 1 of the 2 classes of the training part: 'cat'"));
  CHECK(std::abs(set.fields.input().mean.at(0) - 30.0 / 255) < 1e-9);
  CHECK(std::abs(set.fields.input().stddev.at(0) - std::sqrt(200.0) / 255) < 1e-9);
}

TEST_CASE("a folder's validation part is no test part, unless a share of the training part is the validation") {
  const Folder f;
  for (int i = 0; i < 8; ++i) f.put("train/cat/" + std::to_string(i) + ".png", grey_png(i));
  f.put("train/dog/1.png", grey_png(50));
  f.put("valid/dog/1.png", grey_png(60));
  DataConfig config = config_of(f.root.path());
  Dataset set = load_dataset(config);
  CHECK((set.validation.rows() == 1 && set.test.rows() == 0));
  CHECK(set.validation.samples == gpunn::TensorType{gpunn::DType::u8, {1, 1, 3, 4}});
  CHECK(value(set.validation, 5) == 60);

  config.validation_fraction = 0.25;
  set = load_dataset(config);
  CHECK((set.validation.rows() == 2 && set.test.rows() == 1));
  CHECK(value(set.test, 5) == 60);

  f.put("test/cat/1.png", grey_png(70));
  CHECK_THROWS_WITH(load_dataset(config), Contains("validation part of its own"));
  config.validation_fraction = 0;
  set = load_dataset(config);
  CHECK((value(set.validation, 5) == 60 && value(set.test, 5) == 70));
  f.put("valid/horse/1.png", grey_png(60));
  CHECK_THROWS_WITH(load_dataset(config), Contains("horse: the class is not among those of the training part"));
}

TEST_CASE("one folder is split by a fraction, the same of each class") {
  const Folder f;
  for (int i = 0; i < 20; ++i) {
    f.put("tram/" + std::to_string(i) + ".png", grey_png(i));
    if (i < 10) f.put("bus/" + std::to_string(i) + ".png", grey_png(100 + i));
  }
  DataConfig config = config_of(f.root.path());
  CHECK(load_dataset(config).test.rows() == 0);
  config.test_fraction = 0.2;
  config.validation_fraction = 0.25;
  const Dataset set = load_dataset(config);
  CHECK(set.fields.target().count() == 2);
  CHECK(std::ranges::count(labels_of(set.test), 0) == 2);
  CHECK(std::ranges::count(labels_of(set.test), 1) == 4);
  CHECK(std::ranges::count(labels_of(set.validation), 0) == 2);
  CHECK(std::ranges::count(labels_of(set.validation), 1) == 4);
  CHECK(set.train.rows() == 18);
  config.seed = 2;
  CHECK(load_dataset(config).test.values != set.test.values);

  f.put("elsewhere/bus/1.png", grey_png(1));
  config.path = f.root / "elsewhere";
  config.test_path = f.root / "elsewhere";
  CHECK_THROWS_WITH(load_dataset(config), Contains("test part of its own"));
}

TEST_CASE("images are colour where one of them is, and what is asked for otherwise") {
  const Folder f;
  f.put("a/1.png", grey_png(9));
  f.put("a/2.png", colour_png(1, 2, 3));
  f.put("b/1.png", grey_png(7));
  const Dataset mixed = f.load();
  CHECK(mixed.train.samples.shape == gpunn::Shape{3, 3, 3, 4});
  for (const std::size_t channel : {0, 1, 2}) {
    CHECK(value(mixed.train, 12 * channel) == 9);
    CHECK(value(mixed.train, 36 + 12 * channel) == 7);
    CHECK(value(mixed.train, 72 + 12 * channel) == static_cast<int>(channel) + 1);
  }
  CHECK(has_note(mixed, "2 of 3 images are grey among colour ones"));
  DataConfig config = config_of(f.root.path());
  settings(config).channels = 1;
  const Dataset grey = load_dataset(config);
  CHECK(grey.train.samples.shape == gpunn::Shape{3, 1, 3, 4});
  CHECK(value(grey.train, 24) == 2);  // the luminance of 1, 2, 3
  CHECK(grey.notes.empty());
  test::fs::remove(f.root / "a/2.png");
  settings(config).channels = 3;
  CHECK(load_dataset(config).train.samples.shape == gpunn::Shape{2, 3, 3, 4});
}

TEST_CASE("images are scaled and cropped to the size that is asked for, and otherwise must agree") {
  const Folder f;
  f.put("a/1.png", grey_png(80, 40, 20));
  f.put("a/2.png", grey_png(90, 10, 30));
  // Dark to the left and right, beyond what a pixel of the square in the middle is made of.
  std::string bars(std::size_t{40} * 20, '\0');
  for (std::size_t i = 0; i < bars.size(); ++i) bars[i] = i % 40 >= 6 && i % 40 < 34 ? '\x64' : '\0';
  f.put("a/3.png", make_png(40, 20, bars));
  CHECK_THROWS_WITH(f.load(), Contains("2.png: expected an image of 40 by 20 pixels as ") && Contains("1.png") &&
                                  Contains("found 10 by 30 pixels") && Contains("data.image_size"));
  DataConfig config = config_of(f.root.path());
  settings(config).image_size = {8, 8};
  const Dataset set = load_dataset(config);
  CHECK(set.train.samples.shape == gpunn::Shape{3, 1, 8, 8});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(value(set.train, i) == 80);
    CHECK(value(set.train, 64 + i) == 90);
    CHECK(value(set.train, 128 + i) == 100);
  }
}

TEST_CASE("images are scaled to a shorter side and then cut, in the set and where one of them is predicted") {
  const Folder f;
  f.put("a/1.png", make_png(40, 20, test::counting_bytes(800)));
  f.put("a/2.png", make_png(16, 16, test::counting_bytes(256)));
  DataConfig config = config_of(f.root.path());
  settings(config).image_size = {8, 8};
  const Dataset tight = load_dataset(config);
  settings(config).shorter_side = 16;
  const Dataset wide = load_dataset(config);
  CHECK(wide.train.samples == tight.train.samples);
  CHECK(wide.train.values != tight.train.values);
  // An image that has the size already is only cut.
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      CHECK(value(wide.train, 64 + 8 * y + x) == static_cast<uint8_t>(test::counting_bytes(256)[16 * (y + 4) + x + 4]));
    }
  }
  for (const Dataset* const set : {&tight, &wide}) {
    const std::vector<uint8_t> first = gpunn::read_image(f.root / "a/1.png", 1, 8, 8, false, set->fields.input().fit);
    CHECK(std::equal(first.begin(), first.end(), set->train.values.begin(),
                     [](uint8_t a, std::byte b) { return a == std::to_integer<uint8_t>(b); }));
  }
}

TEST_CASE("pictures of 16 bits, animated and turned ones are read, and told of") {
  const Folder f;
  f.put("a/3.jpg", test::with_orientation(make_jpeg(3, 4, std::string(12, '\x30'), JCS_GRAYSCALE, 1), 6));
  test::PngOptions deep;
  deep.bit_depth = 16;
  f.put("a/1.png", make_png(4, 3, std::string(24, '\x80'), deep));
  f.put("a/2.png", animated_png(5));
  const Dataset set = f.load();
  CHECK(value(set.train, 0) == 128);
  CHECK(value(set.train, 12) == 5);
  CHECK(has_note(set, "1 of 3 images: turned as the camera noted (EXIF); the first is "));
  CHECK(has_note(set, "1 of 3 images: 16 bits a channel, scaled down to 8; the first is "));
  CHECK(has_note(set, "animated"));
}

TEST_CASE("images that can't be used are named, all at once") {
  const Folder f;
  for (int i = 0; i < 300; ++i) f.put("a/" + std::to_string(1000 + i) + ".png", grey_png(i % 256));
  const auto code = [&] { return test::code_of([&] { f.load(); }); };
  SECTION("damaged") {
    f.put("a/1200.png", grey_png(1).substr(0, 40));
    f.put("a/1250.png", "rubbish");
    CHECK_THROWS_WITH(f.load(), Contains("2 of 300 images") && Contains("1200.png: damaged PNG") &&
                                    Contains("1250.png: not an image"));
    CHECK(code() == gpunn::ExitCode::failed);
  }
  SECTION("another format under its name") {
    f.put("a/1007.png", "GIF89a\x01");
    CHECK_THROWS_WITH(f.load(), Contains("1007.png") && Contains("it is a GIF") && Contains("Convert it"));
  }
  SECTION("a link to nowhere") {
    test::fs::create_symlink("nowhere", f.root / "a/1007x.png");
    test::fs::create_symlink("nowhere", f.root / "no_class");
    CHECK_THROWS_WITH(f.load(), Contains("can't read") && Contains("1007x.png"));
    CHECK(code() == gpunn::ExitCode::missing);
  }
  SECTION("empty") {
    f.put("a/1007.png", "");
    CHECK_THROWS_WITH(f.load(), Contains("1007.png") && Contains("the file is empty"));
  }
  SECTION("for print") {
    std::string jpeg = make_jpeg(4, 3, std::string(48, 'x'), JCS_CMYK, 4);
    jpeg.resize(jpeg.size() - 20);
    f.put("a/1007.jpg", jpeg);
    CHECK_THROWS_WITH(f.load(), Contains("1007.jpg") && Contains("damaged JPEG"));
  }
  SECTION("a header that claims 60000 by 60000") {
    std::string jpeg = make_jpeg(8, 8, std::string(64, 'x'), JCS_GRAYSCALE, 1);
    jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\xea\x60\xea\x60");
    f.put("a/1007.jpg", jpeg);
    CHECK_THROWS_WITH(f.load(), Contains("1007.jpg") && Contains("60000 by 60000"));
  }
}

TEST_CASE("folders that don't hold classes of images are refused") {
  const Folder f;
  const auto fails = [&](const std::string& text) {
    CHECK_THROWS_WITH(f.load(), Contains(text));
    CHECK(test::code_of([&] { f.load(); }) == gpunn::ExitCode::missing);
  };
  CHECK_THROWS_WITH(load_dataset(config_of(f.root / "none")), Contains("no such folder"));
  fails("expected a folder for each class");
  f.put("1.png", grey_png(1));
  fails("expected a folder for each class");
  CHECK_THROWS_WITH(load_dataset(config_of(f.root / "1.png")), Contains("is no folder"));
  f.put("a/1.gif", "GIF89a");
  fails("the class has no images");
  f.put("a/1.png", grey_png(1));
  CHECK(f.load().train.rows() == 1);

  f.put("parts/train/cat/1.png", grey_png(1));
  f.put("parts/val/cats/1.png", grey_png(1));
  CHECK_THROWS_WITH(
      load_dataset(config_of(f.root / "parts")),
      Contains("cats: the class is not among those of the training part") && Contains("did you mean 'cat'"));
}

TEST_CASE("real photographs are read as a folder of images") {
  const test::fs::path archive = test::real_data() / "cifar10/cifar10-jpeg.tar.xz";
  const test::TemporaryFolder folder;
  const std::string unpack = "tar xJf '" + archive.string() + "' -C '" + folder.path().string() +
                             "' cifar10/test/cat cifar10/test/dog 2> /dev/null";
  if (!test::fs::exists(archive) || std::system(unpack.c_str()) != 0) {
    std::cout << "skipped: JPEG copies of CIFAR-10 (set GPUNN_DATA_DIR to a folder with " << archive.filename()
              << ")\n";
    return;
  }
  const test::fs::path root = folder / "cifar10/test";
  DataConfig config = config_of(root);
  const Dataset set = load_dataset(config);
  CHECK(set.train.samples == gpunn::TensorType{gpunn::DType::u8, {2000, 3, 32, 32}});
  CHECK(set.fields.target().names == std::vector<std::string>{"cat", "dog"});
  const gpunn::SplitSummary summary = gpunn::summarize(set.train, set.fields);
  CHECK(summary.fields.at("label").counts == std::vector<int64_t>{1000, 1000});
  for (const auto& [row, file] : {std::pair<std::ptrdiff_t, const char*>{0, "cat/0000.jpg"}, {3, "dog/0001.jpg"}}) {
    const std::vector<uint8_t> pixels = gpunn::read_image(root / file, 3, 32, 32, false);
    CHECK(std::equal(pixels.begin(), pixels.end(), set.train.values.begin() + row * 3072,
                     [](uint8_t a, std::byte b) { return a == std::to_integer<uint8_t>(b); }));
  }
  for (const double mean : set.fields.input().mean) CHECK(std::abs(mean - 0.46) < 0.06);
  config.test_fraction = 0.1;
  CHECK(gpunn::summarize(load_dataset(config).test, set.fields).fields.at("label").counts ==
        std::vector<int64_t>{100, 100});
}
