#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/images/exif.hpp"
#include "data/images/fitted_sample.hpp"
#include "data/images/image.hpp"
#include "data/pack/files.hpp"

namespace gpunn {

namespace {

// What a file that is not read begins with, for an error that helps.
std::string kind_of(std::string_view start) {
  if (start.empty()) return "the file is empty";
  if (start.starts_with("GIF8")) return "it is a GIF, whatever its name says";
  if (start.starts_with("BM")) return "it is a BMP, whatever its name says";
  if (start.starts_with("II*") || start.starts_with("MM")) return "it is a TIFF, whatever its name says";
  if (start.starts_with("RIFF") && start.substr(std::min<std::size_t>(8, start.size())).starts_with("WEBP")) {
    return "it is a WebP, whatever its name says";
  }
  if (start.size() > 2 && start[0] == 'P' && start[1] >= '1' && start[1] <= '4') {
    return "it is a PBM, or a PGM or PPM in text";
  }
  if (start.starts_with("<")) return "it is text, as a page that a server sends instead of an image";
  return "its first bytes are those of no image format";
}

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum class Format { png, jpeg, pnm };

// By its first bytes, whatever its name is.
Format format_of(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  using namespace std::string_view_literals;
  const std::string_view start = text_of(bytes);
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return Format::png;
  if (start.starts_with("\xff\xd8\xff"sv)) return Format::jpeg;
  if (start.starts_with("P5"sv) || start.starts_with("P6"sv)) return Format::pnm;
  throw Error(file.string() + ": not an image that can be read: " + kind_of(start) +
              "; expected a PNG, a JPEG or a binary PGM or PPM (P5 or P6). Convert it or remove it");
}

}  // namespace

data::Image data::decode_image_as_stored(std::span<const uint8_t> bytes, const std::filesystem::path& file,
                                         int64_t most_pixels, std::string* damage) {
  const Format format = format_of(bytes, file);
  return decoded(damage, [&](Pixels pixels) {
    switch (format) {
      case Format::png:
        return decode_png(bytes, file, most_pixels, pixels);
      case Format::jpeg:
        return decode_jpeg(bytes, file, most_pixels, pixels);
      case Format::pnm:
        break;
    }
    return decode_pnm(bytes, file, most_pixels, pixels);
  });
}

data::ImageSides data::sides_of_image(std::span<const uint8_t> bytes, const std::filesystem::path& file) {
  switch (format_of(bytes, file)) {
    case Format::png:
      return sides_of_png(bytes, file);
    case Format::pnm:
      return sides_of_pnm(bytes, file);
    case Format::jpeg:
      break;
  }
  const ImageSides stored = sides_of_jpeg(bytes, file);
  return swaps_sides(exif_orientation(text_of(bytes))) ? ImageSides{stored.width, stored.height} : stored;
}

data::Image data::decode_image(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
                               std::string* damage) {
  Image image = decode_image_as_stored(bytes, file, most_pixels, damage);
  const int orientation = exif_orientation(text_of(bytes));
  return orientation > 1 ? turned_by_orientation(image, orientation) : image;
}

data::Image data::decode_region(std::span<const uint8_t> bytes, const std::filesystem::path& file,
                                const RegionChoice& choose, int64_t height, int64_t width, std::string* damage) {
  if (!text_of(bytes).starts_with("\xff\xd8\xff")) {
    const Image image = decode_image(bytes, file, kMostPixels, damage);
    const ImageRegion part = choose(image.height, image.width);
    const auto top = static_cast<double>(part.top), left = static_cast<double>(part.left);
    return resize_region(image,
                         {top, left, top + static_cast<double>(part.height), left + static_cast<double>(part.width)},
                         height, width);
  }
  const int orientation = exif_orientation(text_of(bytes));
  const bool lying = swaps_sides(orientation);
  const int64_t rows = lying ? width : height, columns = lying ? height : width;
  std::optional<ImageRegion> chosen;  // once: a choice may draw random numbers
  const auto of_stored = [&](int64_t stored_height, int64_t stored_width) {
    if (!chosen) chosen = lying ? choose(stored_width, stored_height) : choose(stored_height, stored_width);
    return stored_region(*chosen, orientation, stored_height, stored_width);
  };
  ScaledRegion part;
  const Image stored = decoded(
      damage, [&](Pixels pixels) { return decode_jpeg_region(bytes, file, of_stored, rows, columns, part, pixels); });
  const Image image = resize_region(stored, part, rows, columns);
  return orientation > 1 ? turned_by_orientation(image, orientation) : image;
}

data::Image data::read_image_file(const std::filesystem::path& file, std::string* damage) {
  return decode_image(files::read(file, kMostImageFileBytes).bytes(), file, kMostPixels, damage);
}

namespace {

void require_sample_of_pixels(int64_t channels, int64_t height, int64_t width) {
  if ((channels != 1 && channels != 3) || height < 1 || width < 1 || height > data::kMostSide ||
      width > data::kMostSide) {
    throw Error("an image can be read as 1 (grey) or 3 (colour) channels of 1 to " + std::to_string(data::kMostSide) +
                    " pixels a side; asked for " + std::to_string(channels) + " channel(s) of " +
                    std::to_string(height) + " by " + std::to_string(width),
                ExitCode::usage);
  }
}

}  // namespace

std::vector<uint8_t> data::fitted_sample(Image image, int64_t channels, int64_t height, int64_t width,
                                         bool invert_light_background, const ImageFit& fit) {
  image = data::convert_channels(std::move(image), channels);
  const bool invert = invert_light_background && channels == 1 && data::has_light_background(image);
  if (fit.inside) {
    image = data::fit_inside(image, height, width);
  } else {
    image =
        fit.crop ? data::resize_and_crop(image, height, width, fit.shorter_side) : data::resize(image, height, width);
  }
  if (invert)
    std::transform(image.values.begin(), image.values.end(), image.values.begin(), [](uint8_t v) { return 255 - v; });

  std::vector<uint8_t> planes(image.values.size());
  data::write_planes(image, reinterpret_cast<std::byte*>(planes.data()));
  return planes;
}

std::vector<uint8_t> read_image(const std::filesystem::path& file, int64_t channels, int64_t height, int64_t width,
                                bool invert_light_background, const ImageFit& fit) {
  require_sample_of_pixels(channels, height, width);
  return data::fitted_sample(data::read_image_file(file), channels, height, width, invert_light_background, fit);
}

std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name, int64_t channels,
                                int64_t height, int64_t width, bool invert_light_background, const ImageFit& fit,
                                int64_t most_pixels) {
  require_sample_of_pixels(channels, height, width);
  return data::fitted_sample(data::decode_image(bytes, name, most_pixels), channels, height, width,
                             invert_light_background, fit);
}

}  // namespace gpunn
