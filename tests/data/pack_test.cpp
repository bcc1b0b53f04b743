// Packed folders: they read like the folder itself, and damage is reported.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <chrono>
#include <fstream>

#include "catch.hpp"
#include "common/input_file.hpp"
#include "data/pack/files.hpp"
#include "data/pack/packed_folder.hpp"
#include "files.hpp"
#include "image_files.hpp"

using namespace gpunn;
using test::fs::path;

namespace {

struct Packed {
  test::BareMachine bare;
  test::TemporaryFolder root;
  path folder = root / "photos", file = root / "photos.gpack";

  Packed() {
    for (int i = 0; i < 9; ++i) {
      const std::string name = "train/c" + std::to_string(i % 3) + "/" + std::to_string(i);
      const int width = 20 + 3 * i, height = 31 - i;
      std::string pixels;
      for (int at = 0; at < width * height; ++at) pixels += static_cast<char>((at * 5 + at / width * 3 + i) % 240);
      if (i % 2 == 0) {
        test::write_file(folder / (name + ".jpg"), test::make_jpeg(width, height, pixels, JCS_GRAYSCALE, 1));
      } else {
        test::write_file(folder / (name + ".png"),
                         test::make_png(static_cast<uint32_t>(width), static_cast<uint32_t>(height), pixels));
      }
    }
    test::write_file(folder / "test/c1/a.pgm", "P5 2 2 255\nabcd");
    test::write_file(folder / "test/c1/notes.txt", "taken in May");
    test::write_file(folder / ".hidden", "x");
  }
  Dataset load(const path& from, Decoding decode = Decoding::each_epoch) const {
    DataConfig config;
    config.dataset = "image_folder";
    config.path = from;
    ImageFolderSet form;
    form.image_size = {16, 16};
    form.channels = 1;
    form.decode = decode;
    config.kind = form;
    return load_dataset(config);
  }
  std::string bytes() const { return gpunn::read_text(file); }
  void replace(const std::string& by) const {
    test::fs::remove(file);
    test::write_file(file, by);
  }
  // The folder goes, so that the file stands for itself.
  void detach() const { test::fs::rename(folder, root / "elsewhere"); }
  data::PackedFolder open() const { return data::PackedFolder(file); }
};

std::string flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  return bytes;
}

}  // namespace

TEST_CASE("a packed folder gives what the folder does") {
  const Packed p;
  const PackReport report = pack_folder(p.folder, p.file);
  CHECK(report.files == 11);
  CHECK(report.images == 10);
  CHECK(report.bytes == test::fs::file_size(p.file));
  CHECK(report.left_out.empty());
  for (const Decoding decode : {Decoding::once, Decoding::each_epoch}) {
    const Dataset folder = p.load(p.folder, decode), packed = p.load(p.file, decode);
    CHECK(packed.fields.target().names == folder.fields.target().names);
    CHECK(labels_of(packed.train) == labels_of(folder.train));
    CHECK(labels_of(packed.test) == labels_of(folder.test));
    CHECK(packed.fields.input().mean == folder.fields.input().mean);
    REQUIRE(packed.train.rows() == 9);
    for (int64_t row = 0; row < 9; ++row) CHECK(sample_of(packed.train, row) == sample_of(folder.train, row));
    CHECK(sample_of(packed.test, 0) == sample_of(folder.test, 0));
  }
  CHECK(data::files::read_text(p.file / "test/c1/notes.txt") == "taken in May");
  CHECK(data::files::is_folder(p.file));
  CHECK(data::files::is_folder(p.file / "train/c2"));
  CHECK_FALSE(data::files::is_folder(p.file / "train/c"));
  CHECK_FALSE(data::files::is_file(p.file / "train/c2"));
  CHECK_THROWS_WITH(data::files::read_text(p.file / "train/none.png"), Contains("none.png: it is not there"));
}

TEST_CASE("a packed folder of pixels gives them, scaled where that is asked for") {
  const Packed p;
  pack_folder(p.folder, p.file, {.decoded = true});
  const Dataset folder = p.load(p.folder), packed = p.load(p.file);
  for (int64_t row = 0; row < 9; ++row) CHECK(sample_of(packed.train, row) == sample_of(folder.train, row));
  const path small = p.root / "small.gpack";
  pack_folder(p.folder, small, {.decoded = true, .shorter_side = 18});
  CHECK(data::files::read_text(small / "train/c0/0.jpg").starts_with("P5 18 28 255\n"));
  CHECK(data::files::read_text(small / "test/c1/a.pgm").starts_with("P5 2 2 255\n"));
  test::write_file(p.folder / "train/c0/0.xml", "<annotation/>");
  CHECK_THROWS_WITH(pack_folder(p.folder, small, {.decoded = true}), Contains("0.xml") && Contains("without it"));
}

TEST_CASE("images that can't be read are told together, or left out") {
  const Packed p;
  test::write_file(p.folder / "train/c0/bad.jpg", "GIF89a");
  test::write_file(p.folder / "train/c1/short.png", test::make_png(4, 3, std::string(12, 'x')).substr(0, 40));
  CHECK_THROWS_WITH(pack_folder(p.folder, p.file), Contains("2 of 13 files") && Contains("bad.jpg: not an image") &&
                                                       Contains("short.png: damaged PNG"));
  CHECK_FALSE(test::fs::exists(p.file));
  const PackReport report = pack_folder(p.folder, p.file, {.leave_out_damaged = true});
  CHECK(report.images == 10);
  CHECK(report.left_out.size() == 2);
  CHECK(p.load(p.file).train.rows() == 9);
}

TEST_CASE("a packed folder that is stale, damaged or cut off is refused") {
  const Packed p;
  pack_folder(p.folder, p.file);
  const std::string whole = p.bytes();
  SECTION("its folder has one more file") {
    test::write_file(p.folder / "train/c0/new.pgm", "P5 1 1 255\na");
    CHECK_THROWS_WITH(
        p.open(), Contains("has changed since it was packed (11 files then, 12 now") && Contains("gpunn data pack"));
    p.detach();
    CHECK(p.open().files().size() == 11);
  }
  SECTION("a file of its folder is newer") {
    const path file = p.folder / "train/c0/0.jpg";
    test::fs::last_write_time(file, test::fs::last_write_time(file) + std::chrono::seconds(5));
    CHECK_THROWS_WITH(p.open(), Contains("has changed since"));
  }
  SECTION("cut off anywhere") {
    for (std::size_t size = 0; size < whole.size(); size += size < 100 ? 7 : 97) {
      p.replace(whole.substr(0, size));
      CHECK_THROWS_AS(p.open(), Error);
    }
    p.replace(whole.substr(0, whole.size() / 2));
    CHECK_THROWS_WITH(p.open(), Contains("cut off") && Contains("Pack the folder again"));
  }
  SECTION("a byte anywhere is another") {
    p.detach();
    for (std::size_t at = 0; at < whole.size(); at += 41) {
      p.replace(flipped(whole, at));
      CAPTURE(at);
      bool same = true;
      try {
        const data::PackedFolder damaged = p.open();
        for (const data::PackedFile& file : damaged.files()) {
          const std::span<const uint8_t> content = damaged.content(file);
          same = same && std::string_view(reinterpret_cast<const char*>(content.data()), content.size()) ==
                             std::string_view(whole).substr(file.offset, file.bytes);
        }
      } catch (const Error& error) {
        CHECK(std::string(error.what()).find("photos.gpack") != std::string::npos);
      }
      CHECK(same);  // what is not told was in the room between two files
    }
  }
  SECTION("it is something else") {
    p.replace(std::string(100, 'x'));
    CHECK_THROWS_WITH(p.load(p.file), Contains("it is not a packed folder"));
    p.replace("gpunn pack 9" + whole.substr(12));
    CHECK_THROWS_WITH(p.load(p.file), Contains("another version"));
  }
}

TEST_CASE("what can't be packed is refused beforehand") {
  const Packed p;
  CHECK_THROWS_WITH(pack_folder(p.folder, p.root / "x.zip"), Contains("ends in .gpack"));
  CHECK_THROWS_WITH(pack_folder(p.folder, p.folder / "x.gpack"), Contains("write it elsewhere"));
  CHECK_THROWS_WITH(pack_folder(p.root / "none", p.file), Contains("no such folder"));
  CHECK_THROWS_WITH(pack_folder(p.folder, p.file, {.shorter_side = 64}), Contains("--decoded"));
}
