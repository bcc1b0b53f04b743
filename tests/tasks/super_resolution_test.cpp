// The protocol of super-resolution: bicubic as MATLAB has it, luma, PSNR and SSIM.
#include <cmath>

#include "catch.hpp"
#include "data/images/bicubic.hpp"
#include "tasks/super_resolution/quality.hpp"

using namespace gpunn::data;
using namespace gpunn::tasks;

namespace {

constexpr double kSixDigits = 1e-6;

// Waves and edges of many directions, as a photograph has them.
Planes drawn(int64_t height, int64_t width) {
  Planes image{1, height, width};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto u = static_cast<double>(x), v = static_cast<double>(y);
      const double wave = 0.2 * std::sin(0.3 * u + 0.1 * v) + 0.1 * std::sin(0.05 * u * v / 10);
      image.values.push_back(static_cast<float>(0.5 + wave + (u > v ? 0.2 : -0.2)));
    }
  }
  return image;
}

Planes row_of(std::vector<float> values) {
  const auto width = static_cast<int64_t>(values.size());
  return {1, 1, width, std::move(values)};
}

}  // namespace

TEST_CASE("halving spreads a pixel with the antialiased kernel, which is Keys' at a = -0.5 stretched by two") {
  std::vector<float> line(16, 0);
  line[8] = 1;
  const Planes half = resize_bicubic(row_of(line), 0.5);
  REQUIRE(half.width == 8);
  // Results lie between two pixels: the distances are 0.25, 0.75, 1.25 and 1.75 of the stretched kernel.
  const std::vector<double> expected = {0, 0, -0.01171875, 0.11328125, 0.43359375, -0.03515625, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(static_cast<double>(half.values[i]) == Approx(expected[i]).margin(kSixDigits));
  }
}

TEST_CASE("pixels beyond the border are mirrored ones, and a flat image stays flat at any factor") {
  std::vector<float> line(8, 0);
  line[0] = 1;
  // The first pixel counts twice: as itself and as its mirror image.
  CHECK(static_cast<double>(resize_bicubic(row_of(line), 0.5).values[0]) ==
        Approx(0.43359375 + 0.11328125).margin(kSixDigits));
  const Planes flat{1, 12, 9, std::vector<float>(12 * 9, 0.25F)};
  for (const double factor : {1.0 / 3, 0.5, 0.9, 2.0, 3.0, 4.0}) {
    const Planes other = resize_bicubic(flat, factor);
    CHECK(other.height == static_cast<int64_t>(std::ceil(12 * factor - kSixDigits)));
    CHECK(other.width == static_cast<int64_t>(std::ceil(9 * factor - kSixDigits)));
    for (const float value : other.values) CHECK(static_cast<double>(value) == Approx(0.25).margin(kSixDigits));
  }
}

TEST_CASE("enlarging goes through straight lines, and two channels do not mix") {
  Planes ramp{2, 1, 12};
  for (int i = 0; i < 12; ++i) ramp.values.push_back(static_cast<float>(i) / 16);
  for (int i = 0; i < 12; ++i) ramp.values.push_back(1);
  const Planes larger = resize_bicubic(ramp, 3);
  REQUIRE(larger.width == 36);
  for (std::size_t x = 9; x < 27; ++x) {
    CHECK(static_cast<double>(larger.values[x]) == Approx((static_cast<double>(x) - 1) / 3 / 16).margin(kSixDigits));
    CHECK(larger.channel(1)[x] == 1);
  }
}

TEST_CASE("luma has MATLAB's range and rounding") {
  CHECK(luma(0, 0, 0) == 16);
  CHECK(luma(255, 255, 255) == 235);
  CHECK(luma(255, 0, 0) == 81);  // 16 + 65.481 = 81.481
  CHECK(luma(0, 255, 0) == 145);
  CHECK(luma(0, 0, 255) == 41);
  CHECK(measured_plane({3, 1, 1, {1, 0, 0}}) == std::vector<uint8_t>{81});
  CHECK(to_bytes(std::vector<float>{-1, 0.5, 2, NAN}) == std::vector<uint8_t>{0, 128, 255, 0});
}

TEST_CASE("PSNR is of the squared error within the border") {
  std::vector<uint8_t> original(36, 100), image = original;
  const ComparedPlanes planes{image, original, 6, 6, 1};
  CHECK(std::isinf(psnr(planes)));
  image[0] = 0;  // in the border
  CHECK(std::isinf(psnr(planes)));
  image[7] = 104;  // 16 in one of 16 pixels
  CHECK(psnr(planes) == Approx(20 * std::log10(255.0)).margin(kSixDigits));
  CHECK(std::isnan(psnr({image, original, 6, 6, 3})));
}

TEST_CASE("SSIM is 1 of the same image, and what its formula gives of flat ones") {
  const std::vector<uint8_t> dark(400, 50), light(400, 80);
  CHECK(ssim({dark, dark, 20, 20, 2}) == Approx(1).margin(kSixDigits));
  const double c1 = 2.55 * 2.55;
  CHECK(ssim({dark, light, 20, 20, 2}) ==
        Approx((2 * 50.0 * 80 + c1) / (50.0 * 50 + 80.0 * 80 + c1)).margin(kSixDigits));
  CHECK(std::isnan(ssim({dark, dark, 20, 20, 5})));
}

TEST_CASE("bicubic of a drawn image loses what MATLAB's would") {
  const Planes original = drawn(48, 60);
  double before = 100;
  for (const int64_t scale : {2, 3, 4}) {
    const auto factor = static_cast<double>(scale);
    const Planes image = resize_bicubic(resize_bicubic(original, 1 / factor), factor);
    REQUIRE(image.values.size() == original.values.size());
    const std::vector<uint8_t> a = measured_plane(image), b = measured_plane(original);
    const ComparedPlanes planes{a, b, original.height, original.width, scale};
    CHECK(psnr(planes) < before);
    CHECK(psnr(planes) > 20);
    CHECK(ssim(planes) > 0.7);
    before = psnr(planes);
  }
}

TEST_CASE("a crop to a multiple keeps the top left") {
  const Planes image{1, 3, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  const Planes cropped = cropped_to_multiple(image, 2);
  CHECK(cropped.height == 2);
  CHECK(cropped.values == std::vector<float>{1, 2, 3, 4, 6, 7, 8, 9});
}
