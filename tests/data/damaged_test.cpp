// Damaged images among many: named all at once, left out, or read as far as they can be.
#include <gpunn/data.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/folders/damaged_files.hpp"
#include "data/images/image.hpp"
#include "files.hpp"
#include "image_files.hpp"

using gpunn::BoxSet;
using gpunn::Damaged;
using gpunn::DataConfig;
using gpunn::Dataset;
using gpunn::ImageFolderSet;
using gpunn::load_dataset;
using gpunn::PhotographSet;
using gpunn::data::decode_image;
using gpunn::data::Image;
using test::make_jpeg;
using test::make_png;
using test::write_file;

namespace {

constexpr int kSide = 64;
const std::string& pixels() {
  static const std::string bytes = test::counting_bytes(std::size_t{kSide} * kSide);
  return bytes;
}
std::string grey_jpeg() { return make_jpeg(kSide, kSide, pixels(), JCS_GRAYSCALE, 1); }
std::string random_png() { return make_png(kSide, kSide, pixels()); }
std::string cut(std::string bytes, std::size_t less) {
  bytes.resize(bytes.size() - less);
  return bytes;
}

Image decoded(const std::string& bytes, std::string* damage = nullptr) {
  return decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "picture",
                      gpunn::data::kMostPixels, damage);
}

// How many values in front are those of the whole picture.
std::size_t same_in_front(const Image& image, const Image& whole) {
  const auto [a, b] = std::ranges::mismatch(image.values, whole.values);
  return static_cast<std::size_t>(a - image.values.begin());
}

bool told(const Dataset& set, const std::string& text) {
  return std::ranges::any_of(set.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// A folder of two classes with 6 images each; of the first class one is cut short, one empty and one not an image.
struct DamagedFolder {
  test::BareMachine bare;
  test::TemporaryFolder root;
  DamagedFolder() {
    for (int i = 0; i < 6; ++i) {
      write_file(root / ("a/" + std::to_string(i) + ".jpg"), grey_jpeg());
      write_file(root / ("b/" + std::to_string(i) + ".png"), random_png());
    }
    write_file(root / "a/1.jpg", cut(grey_jpeg(), 20));
    write_file(root / "a/3.jpg", "");
    write_file(root / "b/4.png", "<html>not found</html>");
  }
  DataConfig config(Damaged damaged) const {
    DataConfig config;
    config.dataset = "image_folder";
    config.kind = ImageFolderSet();
    config.path = root.path();
    config.damaged = damaged;
    return config;
  }
};

}  // namespace

TEST_CASE("a file is sound if all of its pixels are there") {
  const Image jpeg = decoded(grey_jpeg());
  CHECK(decoded(cut(grey_jpeg(), 2)).values == jpeg.values);  // the end marker
  const std::string progressive = make_jpeg(kSide, kSide, pixels(), JCS_GRAYSCALE, 1, true);
  CHECK(decoded(cut(progressive, 2)).values == decoded(progressive).values);
  CHECK(decoded(cut(random_png(), 12)).values == decoded(random_png()).values);  // the chunk IEND
  // An unknown revision of JFIF is no damage.
  std::string revised = grey_jpeg();
  revised[revised.find("JFIF") + 5] = 9;
  CHECK(decoded(revised).values == jpeg.values);

  CHECK_THROWS_WITH(decoded(cut(grey_jpeg(), 20)), Contains("damaged JPEG"));
  CHECK_THROWS_WITH(decoded(cut(progressive, progressive.size() / 3)), Contains("damaged JPEG"));
  CHECK_THROWS_WITH(decoded(cut(random_png(), 300)), Contains("damaged PNG"));
}

TEST_CASE("a progressive file without its last scans is damaged, even if it ends between two scans") {
  const std::string whole = make_jpeg(kSide, kSide, pixels(), JCS_GRAYSCALE, 1, true);
  std::size_t last = whole.rfind("\xff\xda");
  REQUIRE(last != std::string::npos);
  const std::size_t tables = whole.rfind("\xff\xc4", last);
  last = tables == std::string::npos ? last : tables;
  CHECK_THROWS_WITH(decoded(whole.substr(0, last)), Contains("damaged JPEG"));
  std::string damage;
  CHECK(decoded(whole.substr(0, last), &damage).height == kSide);
  CHECK_THAT(damage, Contains("damaged JPEG"));
}

TEST_CASE("a damaged file gives the pixels in front of the damage, and others of its own kind of nothing") {
  std::string damage;
  const Image jpeg = decoded(cut(grey_jpeg(), 400), &damage);
  CHECK_THAT(damage, Contains("picture: damaged JPEG"));
  const std::size_t read = same_in_front(jpeg, decoded(grey_jpeg()));
  CHECK(read > kSide * kSide / 2);
  CHECK(read < kSide * kSide);

  damage.clear();
  const Image png = decoded(cut(random_png(), 1000), &damage);
  CHECK_THAT(damage, Contains("picture: damaged PNG"));
  const std::size_t rows = same_in_front(png, decoded(random_png())) / kSide;
  CHECK((rows > kSide / 2 && rows < kSide));
  CHECK(std::all_of(png.values.begin() + static_cast<std::ptrdiff_t>((rows + 1) * kSide), png.values.end(),
                    [](uint8_t value) { return value == 0; }));
  // A wrong check sum of the pixels.
  std::string crc = random_png();
  crc[crc.size() - 13] = static_cast<char>(crc[crc.size() - 13] ^ 1);
  CHECK_THROWS_WITH(decoded(crc), Contains("damaged PNG"));
  CHECK(decoded(crc, &damage).values == decoded(random_png()).values);

  const std::string pgm = "P5 4 3 255\n" + std::string(12, '\x07');
  CHECK(decoded(cut(pgm, 5), &damage).values == std::vector<uint8_t>{7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0});

  // Nothing can be read of these.
  for (const std::string& bytes : {std::string(), std::string("GIF89a"), grey_jpeg().substr(0, 30),
                                   random_png().substr(0, 40), std::string("P5 4 3 255\n12")}) {
    CHECK_THROWS_AS(decoded(bytes, &damage), gpunn::Error);
  }
  // A sound file has no damage.
  damage.clear();
  decoded(grey_jpeg(), &damage);
  CHECK(damage.empty());
}

TEST_CASE("all damaged images of a folder are named at once, left out or repaired") {
  const DamagedFolder folder;
  const auto fails = [&](const DataConfig& config) {
    CHECK_THROWS_WITH(load_dataset(config), Contains("3 of 12 images in " + folder.root.path().string()) &&
                                                Contains("1.jpg: damaged JPEG") && Contains("3.jpg: not an image") &&
                                                Contains("4.png: not an image") && Contains("data.damaged: skip"));
  };
  DataConfig config = folder.config(Damaged::error);
  fails(config);

  config.damaged = Damaged::skip;
  const Dataset skipped = load_dataset(config);
  CHECK(skipped.train.rows() == 9);
  CHECK(std::ranges::count(labels_of(skipped.train), 0) == 4);
  CHECK(std::ranges::count(labels_of(skipped.train), 1) == 5);
  CHECK(told(skipped, "3 of 12 images in " + folder.root.path().string() + " are damaged and left out"));
  CHECK(told(skipped, "4.png: not an image"));

  config.damaged = Damaged::repair;
  const Dataset repaired = load_dataset(config);
  CHECK(repaired.train.rows() == 10);
  CHECK(told(repaired, "1 of 12 images in " + folder.root.path().string() + " is damaged and used as far"));
  CHECK(told(repaired, "2 of 12 images in " + folder.root.path().string() + " are damaged and left out"));

  // The same rows and labels, if they are decoded when they are needed.
  auto& settings = std::get<ImageFolderSet>(config.kind);
  settings.decode = gpunn::Decoding::each_epoch;
  settings.channels = 1;
  const Dataset streamed = load_dataset(config);
  CHECK(labels_of(streamed.train) == labels_of(repaired.train));
  for (int64_t row = 0; row < 10; ++row) CHECK(sample_of(streamed.train, row) == sample_of(repaired.train, row));
  config.damaged = Damaged::skip;
  CHECK(load_dataset(config).train.rows() == 9);
  config.damaged = Damaged::error;
  fails(config);  // found while the pixels are measured, or else in the first epoch
  config.mean = {0.5};
  config.stddev = {0.2};
  std::filesystem::create_symlink("nowhere.jpg", folder.root / "a/link.jpg");
  CHECK_THROWS_WITH(load_dataset(config), Contains("4 of 13 images") && Contains("link.jpg") && Contains("4.png"));
  config.damaged = Damaged::skip;
  CHECK(load_dataset(config).train.rows() == 9);
  config.damaged = Damaged::error;
  std::filesystem::remove(folder.root / "a/link.jpg");
  const Dataset unchecked = load_dataset(config);
  CHECK_THROWS_WITH(sample_of(unchecked.train, 2), Contains("3 of 12 images") && Contains("4.png"));
}

TEST_CASE("a class whose images are all damaged is an error, and the first sound image gives the size") {
  const DamagedFolder folder;
  write_file(folder.root / "a/0.jpg", "");
  CHECK(load_dataset(folder.config(Damaged::skip)).train.samples.shape[3] == kSide);
  for (int i = 0; i < 6; ++i) write_file(folder.root / ("a/" + std::to_string(i) + ".jpg"), "");
  CHECK_THROWS_WITH(load_dataset(folder.config(Damaged::skip)), Contains("of the class 'a' are damaged"));
}

TEST_CASE("a table of images loses the rows of damaged ones, with what is learnt of them") {
  const DamagedFolder folder;
  write_file(folder.root / "t.csv", "image,size\na/0.jpg,0\na/1.jpg,1\na/2.jpg,2\na/3.jpg,3\na/5.jpg,5\n");
  DataConfig config = folder.config(Damaged::skip);
  config.task = "regression";
  config.learnt = "numbers";
  config.scale_targets = false;
  std::get<ImageFolderSet>(config.kind).targets = folder.root / "t.csv";
  const Dataset set = load_dataset(config);
  REQUIRE(set.train.rows() == 3);
  const auto* targets = reinterpret_cast<const double*>(set.train.fields.at(gpunn::kTargetField).values.data());
  CHECK((targets[0] == 0 && targets[1] == 2 && targets[2] == 5));
}

TEST_CASE("damaged photographs and images with boxes follow the same rule") {
  const DamagedFolder folder;
  SECTION("photographs") {
    DataConfig config = folder.config(Damaged::error);
    config.dataset = "photograph_folder";
    config.task = "super_resolution";
    config.learnt = "image";
    PhotographSet settings;
    settings.scale = 2;
    settings.patch_size = 16;
    settings.patches = 16;
    config.kind = settings;
    config.path = folder.root / "a";
    config.test_path = folder.root / "b";
    for (const auto decode : {gpunn::Decoding::once, gpunn::Decoding::each_epoch}) {
      std::get<PhotographSet>(config.kind).decode = decode;
      config.damaged = Damaged::error;
      CHECK_THROWS_WITH(load_dataset(config),
                        Contains("images in") && Contains("3.jpg: not an image") && Contains("4.png: not an image"));
      config.damaged = Damaged::skip;
      const Dataset skipped = load_dataset(config);
      CHECK(skipped.test.rows() == 5);
      CHECK(told(skipped, "3 of 12 images"));
      config.damaged = Damaged::repair;
      CHECK(told(load_dataset(config), "1 of 12 images"));
    }
  }
  SECTION("boxes") {
    DataConfig config = folder.config(Damaged::error);
    config.dataset = "detection_folder";
    config.task = "detection";
    config.learnt = "boxes";
    BoxSet settings;
    settings.format = gpunn::BoxFormat::csv;
    settings.image_size = {kSide, kSide};
    settings.channels = 1;
    settings.image_folder = "a";
    settings.boxes = folder.root / "boxes.csv";
    config.kind = settings;
    std::string table = "filename,class,xmin,ymin,xmax,ymax\n";
    for (int i = 0; i < 6; ++i) table += std::to_string(i) + ".jpg,cat,1,1,20,20\n";
    write_file(settings.boxes, table);
    CHECK_THROWS_WITH(load_dataset(config), Contains("2 of 6 images") && Contains("1.jpg") && Contains("3.jpg"));
    config.damaged = Damaged::skip;
    CHECK(load_dataset(config).train.rows() == 4);
    config.damaged = Damaged::repair;
    CHECK(load_dataset(config).train.rows() == 5);
    // A class that is not known is still an error of its own.
    write_file(settings.boxes, table + "0.jpg,,1,1,20,20\n");
    CHECK_THROWS_WITH(load_dataset(config), Contains("is empty"));
  }
}
