#include "inference/pictures/content_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "data/images/image.hpp"
#include "inference/pictures/pictures.hpp"

namespace gpunn::inference {

using data::Planes;

namespace {

// As a viewer shows it on paper, in three colours.
Planes on_white(const data::Picture& picture) {
  const Planes given = planes_of(picture), opacity = opacity_of(picture);
  Planes colours{3, given.height, given.width};
  for (int64_t c = 0; c < colours.channels; ++c) {
    const std::span<const float> plane = given.channel(std::min(c, given.channels - 1));
    for (std::size_t i = 0; i < plane.size(); ++i) {
      const float share = opacity.values.empty() ? 1.0F : opacity.values[i];
      colours.values.push_back(plane[i] * share + (1.0F - share));
    }
  }
  return colours;
}

}  // namespace

ContentPicture read_content(const std::filesystem::path& file, int64_t longer_side, std::string* damage) {
  data::Picture picture = data::read_picture(file, damage);
  ContentPicture content;
  const auto is_clear = [&](uint16_t value) { return value < picture.most(); };
  if (std::ranges::any_of(picture.opacity, is_clear)) {
    content.notes.emplace_back("its transparent pixels lie on white: the result is opaque");
  }
  const bool scaled = longer_side > 0 && longer_side != std::max(picture.height, picture.width);
  if (picture.bits == 16 && !scaled) {
    content.colours = on_white(picture);
  } else {
    const data::Image image = data::read_colours(file, longer_side, damage);
    content.colours = planes_of_bytes(image.values, image.channels, image.height, image.width);
    if (std::exchange(picture.bits, 8) == 16) {
      content.notes.emplace_back("it was scaled in 8 bits a channel, so the result has 8 where it has 16");
    }
  }
  content.like.bits = picture.bits;
  content.like.tags = picture.tags.for_picture(false);
  std::ranges::move(picture.notes(false), std::back_inserter(content.notes));
  return content;
}

}  // namespace gpunn::inference
