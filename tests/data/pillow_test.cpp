// Images become the samples that Pillow and torchvision make of them, value by value.
#include <gpunn/data.hpp>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "files.hpp"

namespace {

const std::string kFixtures = std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/";

std::vector<uint8_t> from_hexadecimal(const std::string& digits) {
  std::vector<uint8_t> bytes(digits.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, bytes[i], 16).ptr != at + 2) FAIL("no hexadecimal digits: " << at);
  }
  return bytes;
}

void compare(const test::fs::path& cases) {
  const test::TemporaryFolder folder;
  std::ifstream file(cases);
  const nlohmann::json all = nlohmann::json::parse(file);
  REQUIRE(all.size() >= 20);
  for (const nlohmann::json& one : all) {
    INFO(one["name"]);
    const std::vector<uint8_t> image = from_hexadecimal(one["file"]);
    test::write_file(folder / "image", std::string(image.begin(), image.end()));
    const bool same = gpunn::read_image(folder / "image", one["channels"], one["height"], one["width"], false,
                                        {.crop = one["crop"], .shorter_side = one["shorter_side"]}) ==
                      from_hexadecimal(one["values"]);  // not in CHECK, which would print thousands of bytes
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("images are decoded, made grey and resampled as Pillow does it") { compare(kFixtures + "images.json"); }

TEST_CASE("images of any size are resampled as the Pillow of this machine does it") {
  const test::TemporaryFolder folder;
  const unsigned seed = std::random_device{}();
  const std::string call = "python3 '" + kFixtures + "images.py' " + std::to_string(seed) + " > '" +
                           (folder / "cases.json").string() + "' 2> /dev/null";
  if (std::system(call.c_str()) != 0) {
    std::cout << "skipped: Pillow (python3 does not import PIL)\n";
    return;
  }
  INFO("seed " << seed);
  compare(folder / "cases.json");
}
