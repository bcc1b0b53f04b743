#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "data/images/image.hpp"

namespace gpunn {

namespace {

constexpr std::size_t kMostFileBytes = std::size_t{256} << 20;

data::Image decode(const std::string& text, const std::filesystem::path& file) {
  using namespace std::string_view_literals;
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  const std::string_view start(text);
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return data::decode_png(bytes, file);
  if (start.starts_with("\xff\xd8\xff"sv)) return data::decode_jpeg(bytes, file);
  if (start.starts_with("P5"sv) || start.starts_with("P6"sv)) return data::decode_pnm(bytes, file);
  if (start.size() > 2 && start[0] == 'P' && start[1] >= '1' && start[1] <= '4') {
    throw Error(file.string() + ": a PBM or a PGM or PPM in text; expected a binary one (P5 or P6), a PNG or a JPEG");
  }
  throw Error(file.string() + ": not an image that can be read; expected a PNG, a JPEG or a binary PGM or PPM");
}

}  // namespace

std::vector<uint8_t> read_image(const std::filesystem::path& file, int64_t channels, int64_t height, int64_t width,
                                bool invert_light_background) {
  if ((channels != 1 && channels != 3) || height < 1 || width < 1 || height > data::kMostSide ||
      width > data::kMostSide) {
    throw Error("an image can be read as 1 (grey) or 3 (colour) channels of 1 to " + std::to_string(data::kMostSide) +
                    " pixels a side; asked for " + std::to_string(channels) + " channel(s) of " +
                    std::to_string(height) + " by " + std::to_string(width),
                ExitCode::usage);
  }
  data::Image image = data::convert_channels(decode(read_text(file, kMostFileBytes), file), channels);
  const bool invert = invert_light_background && channels == 1 && data::has_light_background(image);
  image = data::resize(image, height, width);
  if (invert)
    std::transform(image.values.begin(), image.values.end(), image.values.begin(), [](uint8_t v) { return 255 - v; });

  if (channels == 1) return std::move(image.values);
  // From pixel by pixel to channel by channel.
  const auto pixels = static_cast<std::size_t>(height * width);
  std::vector<uint8_t> planes(image.values.size());
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) planes[c * pixels + i] = image.values[3 * i + c];
  }
  return planes;
}

}  // namespace gpunn
