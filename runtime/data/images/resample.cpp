// How a picture takes another size: as Pillow's Image.resize with BILINEAR and torchvision's Resize and CenterCrop, to
// the bit.
#include <algorithm>
#include <cmath>
#include <vector>

#include "data/images/image.hpp"
#include "data/images/resample_rows.hpp"

namespace gpunn::data {

namespace {

std::size_t image_row_bytes(const Image& image) { return static_cast<std::size_t>(image.width * image.channels); }

Image blank_image(int64_t height, int64_t width, const Image& like) {
  Image image{height, width, like.channels, {}, like.from_16_bits, like.first_frame, like.turned};
  image.values.resize(static_cast<std::size_t>(height) * image_row_bytes(image));
  return image;
}

// The rows from `first` to before `end`, each as `width` pixels.
Image resize_across(const Image& image, const TriangleFilter& across, int64_t width, int64_t first, int64_t end) {
  Image result = blank_image(end - first, width, image);
  const std::size_t row_bytes = image_row_bytes(image), target_bytes = image_row_bytes(result);
  std::vector<uint8_t> last;  // with bytes behind it that may be read
  for (int64_t y = first; y < end; ++y) {
    const uint8_t* source = image.values.data() + static_cast<std::size_t>(y) * row_bytes;
    if (image.values.data() + image.values.size() < source + row_bytes + kReadBeyond) {
      last.assign(source, source + row_bytes);
      last.resize(row_bytes + kReadBeyond);
      source = last.data();
    }
    weigh_across(across, source, width, image.channels,
                 result.values.data() + static_cast<std::size_t>(y - first) * target_bytes);
  }
  return result;
}

// The columns, each as `height` pixels. The image's rows begin with row `first` of the filter's source.
Image resize_down(const Image& image, const TriangleFilter& down, int64_t height, int64_t first) {
  Image result = blank_image(height, image.width, image);
  const std::size_t row_bytes = image_row_bytes(image);
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* const source =
        image.values.data() + static_cast<std::size_t>(down.taps(y).first - first) * row_bytes;
    weigh_down(down, y, source, row_bytes, result.values.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  return result;
}

// Two passes, with values of 8 bits between them. Across comes first but where the height shrinks by more than twice as
// many pixels as the width, which is the rule of Pillow 13; before it, across always came first. The order changes a
// value by 1 at most, here and there.
Image resized(const Image& image, const ResizedSide& rows, const ResizedSide& columns) {
  const TriangleFilter down(rows), across(columns);
  const double fewer_rows = rows.to - rows.from - static_cast<double>(rows.target);
  const double fewer_columns = columns.to - columns.from - static_cast<double>(columns.target);
  if (fewer_rows > 0 && fewer_rows > 2 * fewer_columns) {
    return resize_across(resize_down(image, down, rows.count, 0), across, columns.count, 0, rows.count);
  }
  const auto& begin = down.taps(0);
  const auto& last = down.taps(rows.count - 1);
  return resize_down(resize_across(image, across, columns.count, begin.first, last.first + last.count), down,
                     rows.count, begin.first);
}

ResizedSide whole_side(int64_t source, int64_t target) { return {0, static_cast<double>(source), target, 0, target}; }

ResizedSide middle_of_side(int64_t source, int64_t target, int64_t count) {
  return {0, static_cast<double>(source), target, middle_start(target, count), count};
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  return resized(image, whole_side(image.height, height), whole_side(image.width, width));
}

Image resize_region(const Image& image, const ScaledRegion& region, int64_t height, int64_t width) {
  return resized(image, {region.top, region.bottom, height, 0, height}, {region.left, region.right, width, 0, width});
}

int64_t middle_start(int64_t whole, int64_t count) {
  return std::llrint(static_cast<double>(whole - count) / 2);  // half a pixel goes to the even side
}

ImageSides covering_sides(const ImageSides& image, int64_t height, int64_t width, int64_t shorter_side) {
  // The least size that covers the part: exactly as wide, or exactly as high. The other side is rounded down.
  int64_t rows = height, columns = width;
  if (shorter_side > 0) rows = columns = shorter_side;
  if (columns * image.height >= rows * image.width) {
    rows = columns * image.height / image.width;
  } else {
    columns = rows * image.width / image.height;
  }
  return {rows, columns};
}

Image resize_and_crop(const Image& image, int64_t height, int64_t width, int64_t shorter_side) {
  const auto [rows, columns] = covering_sides({image.height, image.width}, height, width, shorter_side);
  if (rows == image.height && columns == image.width && rows == height && columns == width) return image;
  return resized(image, middle_of_side(image.height, rows, height), middle_of_side(image.width, columns, width));
}

Image read_colours(const std::filesystem::path& file, int64_t longer_side, std::string* damage) {
  Image image = convert_channels(read_image_file(file, damage), 3);
  const int64_t longer = std::max(image.height, image.width);
  if (longer_side == 0 || longer_side == longer) return image;
  const auto scaled = [&](int64_t side) { return std::max<int64_t>(1, (side * longer_side + longer / 2) / longer); };
  return resize(image, scaled(image.height), scaled(image.width));
}

namespace {

double inside_scale(const ImageSides& image, int64_t height, int64_t width) {
  return std::min(static_cast<double>(height) / static_cast<double>(image.height),
                  static_cast<double>(width) / static_cast<double>(image.width));
}

}  // namespace

double fit_inside_scale(const Image& image, int64_t height, int64_t width) {
  return inside_scale({image.height, image.width}, height, width);
}

ImageSides inside_sides(const ImageSides& image, int64_t height, int64_t width) {
  const double scale = inside_scale(image, height, width);
  const auto side = [&](int64_t size, int64_t most) {
    return std::clamp<int64_t>(std::lround(static_cast<double>(size) * scale), 1, most);
  };
  return {side(image.height, height), side(image.width, width)};
}

Image fit_inside(const Image& image, int64_t height, int64_t width) {
  const auto [rows, columns] = inside_sides({image.height, image.width}, height, width);
  const Image fitted = resize(image, rows, columns);
  Image canvas{height, width, image.channels, {}};
  canvas.values.assign(static_cast<std::size_t>(height * width * image.channels), kGreyAround);
  const int64_t row_bytes = fitted.width * image.channels;
  for (int64_t y = 0; y < fitted.height; ++y) {
    std::copy_n(fitted.values.begin() + y * row_bytes, row_bytes, canvas.values.begin() + y * width * image.channels);
  }
  return canvas;
}

}  // namespace gpunn::data
