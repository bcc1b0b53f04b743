#include "data/images/sized_images.hpp"

#include <algorithm>
#include <string>

#include "config/key_builders.hpp"

namespace gpunn::data {

namespace {

using S = SizedImages;

constexpr double kLargestSide = 16384;
constexpr int64_t kRefusedSide = 0;  // what the key makes of a size that is no whole number

void check_shorter_side(const SizedImages& settings, const config::GivenKeys& given, config::Diagnostics& found) {
  if (!given.sound("data.image_size") || !given.sound("data.shorter_side") || settings.shorter_side == 0) return;
  const SourceLocation& place = given.place("data.shorter_side");
  if (settings.image_size.empty()) {
    found.add(place, "data.shorter_side needs data.image_size, which is cut out of the scaled image");
    return;
  }
  const int64_t least = std::ranges::max(settings.image_size);
  if (settings.shorter_side >= least) return;
  found.add(place, "data.shorter_side: expected at least " + std::to_string(least) +
                       ", the longer side of data.image_size, found " + std::to_string(settings.shorter_side));
}

}  // namespace

config::KeyOf<SizedImages> image_size_key() {
  using namespace config;
  return pixels(
      "image_size", &S::image_size, between(1, kLargestSide), kRefusedSide,
      "Rows and columns, or one number for both, that images are scaled and cropped to. Default: the size that "
      "all have.");
}

std::vector<config::KeyOf<SizedImages>> sized_image_keys() {
  using namespace config;
  return {
      image_size_key(),
      integer("shorter_side", &S::shorter_side, between(0, kLargestSide),
              "Pixels that the shorter side of images is scaled to before `image_size` is cut out of the middle; 0: as "
              "few as cover `image_size`."),
      integer("channels", &S::channels, between(0, 3),
              "1: grey, 3: colour; 0: as the images, colour where any of them is."),
      choice("decode", &S::decode, {"auto", "once", "each_epoch"},
             "When files become samples: all `once`, kept in memory, or `each_epoch` anew. `auto`: anew where "
             "`augmentation.resized_crop` cuts them or where they would take more than half of the free memory.")};
}

void check_sized_images(const SizedImages& settings, const config::GivenKeys& given, config::Diagnostics& found) {
  const std::vector<int64_t>& size = settings.image_size;
  if (given.sound("data.image_size") && (size.size() > 2 || std::ranges::count(size, kRefusedSide) != 0)) {
    found.add(given.place("data.image_size"), "data.image_size: expected one integer or two, [rows, columns]");
  }
  check_shorter_side(settings, given, found);
  if (given.sound("data.channels") && settings.channels == 2) {
    found.add(given.place("data.channels"), "data.channels: expected 1 (grey), 3 (colour) or 0 (as the images)");
  }
}

}  // namespace gpunn::data
