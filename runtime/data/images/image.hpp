#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/images/pixels.hpp"

namespace gpunn::data {

// Pixels of 1 (grey) or 3 (red, green, blue) bytes, left to right, top to bottom.
struct Image {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<uint8_t> values;
  bool from_16_bits = false;  // scaled down from 16 bits a channel
  bool first_frame = false;   // of an animation
  bool turned = false;        // as the camera noted (EXIF)
};

// A rectangle of a picture, in its pixels.
struct ImageRegion {
  int64_t top = 0, left = 0, height = 0, width = 0;
};
// The part that is wanted of a picture of this size; it lies within.
using RegionChoice = std::function<ImageRegion(int64_t height, int64_t width)>;

inline constexpr std::size_t kMostImageFileBytes = std::size_t{256} << 20;
inline constexpr int64_t kMostSide = 16384;
inline constexpr int64_t kMostPixels = int64_t{256} << 20;

// The decoders take a file's bytes, and its name for errors. They throw Error if the bytes are damaged, truncated or of
// an unsupported kind. They also throw, before they allocate memory, if the picture is larger than the bounds above or
// has more than `most_pixels`. decode_image() takes any of these kinds, and turns a picture as the camera noted (EXIF).
//
// A file is sound if each of its pixels is there, even if its last bytes are missing. With `damage`, a damaged file
// gives the pixels that can be read, and `damage` becomes the error; they still throw if no pixels can be read.
Image decode_image(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels = kMostPixels,
                   std::string* damage = nullptr);
Image decode_image_as_stored(std::span<const uint8_t> bytes, const std::filesystem::path& file,
                             int64_t most_pixels = kMostPixels, std::string* damage = nullptr);
Image read_image_file(const std::filesystem::path& file, std::string* damage = nullptr);
// The sides of what decode_image() gives, read from the file's header alone: the rest may be damaged.
struct ImageSides {
  int64_t height = 0, width = 0;
};
ImageSides sides_of_image(std::span<const uint8_t> bytes, const std::filesystem::path& file);
ImageSides sides_of_png(std::span<const uint8_t> bytes, const std::filesystem::path& file);
ImageSides sides_of_jpeg(std::span<const uint8_t> bytes, const std::filesystem::path& file);
ImageSides sides_of_pnm(std::span<const uint8_t> bytes, const std::filesystem::path& file);
// A part of the picture of decode_image(), scaled to height by width. Of a JPEG, only that part is decoded, at an
// eighth, a quarter or a half of its size if that is still as large as the result.
Image decode_region(std::span<const uint8_t> bytes, const std::filesystem::path& file, const RegionChoice& choose,
                    int64_t height, int64_t width, std::string* damage = nullptr);
// The same of a JPEG, neither turned nor scaled further. `choose` sees the picture as it is stored. `found` becomes the
// part that was chosen, in pixels of the result.
struct ScaledRegion {
  double top = 0, left = 0, bottom = 0, right = 0;
};
Image decode_jpeg_region(std::span<const uint8_t> bytes, const std::filesystem::path& file, const RegionChoice& choose,
                         int64_t height, int64_t width, ScaledRegion& found, Pixels pixels);
Image decode_png(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels, Pixels pixels);
Image decode_jpeg(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels,
                  Pixels pixels);
Image decode_pnm(std::span<const uint8_t> bytes, const std::filesystem::path& file, int64_t most_pixels, Pixels pixels);

// A PNG file's bytes. 2 and 4 channels are grey and colours with how opaque they are.
std::string encode_png(const Image& image);
// A PNG file's bytes whose pixels are places in a palette of red, green and blue. `places` has one channel.
using Palette = std::array<std::array<uint8_t, 3>, 256>;
std::string encode_png(const Image& places, const Palette& palette);

// Throws Error, with the file's name, if a picture of this size is beyond the bounds.
void require_size(int64_t height, int64_t width, const std::filesystem::path& file, int64_t most_pixels);
// An Image of this size, zeroed. Throws as require_size().
Image make_image(int64_t height, int64_t width, int64_t channels, const std::filesystem::path& file,
                 int64_t most_pixels = kMostPixels);

// Grey from colour by the luminance weights of Rec. 601 (0.299, 0.587, 0.114), rounded as Pillow's convert("L") does;
// colour from grey by repetition.
Image convert_channels(Image image, int64_t channels);

// Bilinear, and antialiased where it shrinks. The values are those of Pillow's Image.resize((width, height), BILINEAR).
Image resize(const Image& image, int64_t height, int64_t width);

// The same of a part of the picture, of which nothing outside counts.
Image resize_region(const Image& image, const ScaledRegion& region, int64_t height, int64_t width);

// A file's picture in colours, its longer side scaled to `longer_side`; 0: as it is.
Image read_colours(const std::filesystem::path& file, int64_t longer_side, std::string* damage = nullptr);

// The middle of the picture, height by width pixels, once its shorter side has been scaled to `shorter_side`, which is
// at least both; 0: once it has been scaled to the least size that covers height by width. The values are those of
// torchvision's Resize(shorter_side) and CenterCrop((height, width)) on a Pillow image.
Image resize_and_crop(const Image& image, int64_t height, int64_t width, int64_t shorter_side);
// The size that a picture of this size is scaled to then, and where the middle `count` of `whole` pixels begin.
ImageSides covering_sides(const ImageSides& image, int64_t height, int64_t width, int64_t shorter_side);
int64_t middle_start(int64_t whole, int64_t count);

// The whole picture, as large as it can be within height by width pixels, its proportions kept, at the top left of grey
// ones.
Image fit_inside(const Image& image, int64_t height, int64_t width);
// By how much its sides are multiplied then.
double fit_inside_scale(const Image& image, int64_t height, int64_t width);
// The size that a picture of this size has then.
ImageSides inside_sides(const ImageSides& image, int64_t height, int64_t width);
inline constexpr uint8_t kGreyAround = 114;

// The picture's values channel by channel, as samples have them, at `target`: channels * height * width bytes.
void write_planes(const Image& image, std::byte* target);

// Whether the picture's border is light on average: dark ink on paper.
bool has_light_background(const Image& image);

}  // namespace gpunn::data
