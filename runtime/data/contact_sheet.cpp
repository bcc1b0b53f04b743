// write_contact_sheet(): what is in a data set, at a glance.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/files.hpp"
#include "data/images/image.hpp"
#include "data/images/letters.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"

namespace gpunn {

using fields::element_of;

namespace {

constexpr int64_t kSmallestTile = 48;  // smaller images are shown in larger pixels
constexpr int64_t kLargestTile = 128;  // larger ones are scaled down
constexpr int64_t kGap = 2;
constexpr int64_t kSheetMargin = 8;  // on both sides of the names
constexpr std::size_t kMostGroups = 100;
constexpr uint8_t kBackground = 255, kSheetInk = 32;
constexpr std::size_t kLongestLabel = 24;  // bytes of a class's name; a longer one is cut

// Images of one split as pictures of 8 bits.
class Pictures {
 public:
  explicit Pictures(const Split& split) : split_(split), shape_(split.samples.shape) {
    if (split.samples.dtype == DType::u8) return;
    const std::size_t count = split.sample_bytes().size() / size_of(split.samples.dtype);
    for (std::size_t i = 0; i < count; ++i) {
      const double number = fields::element_of(split.samples.dtype, split.sample_bytes(), i);
      low_ = i == 0 ? number : std::min(low_, number);
      high_ = i == 0 ? number : std::max(high_, number);
    }
  }

  data::Image operator[](std::size_t row) const {
    data::Image image;
    image.channels = shape_[1] == 3 ? 3 : 1;
    image.height = shape_[2];
    image.width = shape_[3];
    const auto pixels = static_cast<std::size_t>(image.height * image.width);
    const auto channels = static_cast<std::size_t>(image.channels);
    image.values.resize(channels * pixels);
    const std::vector<std::byte> sample = sample_of(split_, static_cast<int64_t>(row));
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t i = 0; i < pixels; ++i) image.values[i * channels + c] = value(sample, c * pixels + i);
    }
    return image;
  }

 private:
  // Of float samples, the smallest is black and the largest white.
  uint8_t value(std::span<const std::byte> sample, std::size_t at) const {
    if (split_.samples.dtype == DType::u8) return std::to_integer<uint8_t>(sample[at]);
    const double number = fields::element_of(split_.samples.dtype, sample, at);
    const double range = high_ - low_;
    return range > 0 ? static_cast<uint8_t>(std::lround(255 * (number - low_) / range)) : uint8_t{0};
  }

  const Split& split_;
  const Shape& shape_;
  double low_ = 0, high_ = 0;
};

void paint(const data::Image& picture, int64_t magnified, int64_t top, int64_t left, data::Image& sheet) {
  for (int64_t y = 0; y < picture.height * magnified; ++y) {
    for (int64_t x = 0; x < picture.width * magnified; ++x) {
      const int64_t from = ((y / magnified) * picture.width + x / magnified) * picture.channels;
      const int64_t to = ((y + top) * sheet.width + x + left) * sheet.channels;
      for (int64_t c = 0; c < sheet.channels; ++c) {
        sheet.values[static_cast<std::size_t>(to + c)] = picture.values[static_cast<std::size_t>(from + c)];
      }
    }
  }
}

// Groups with at least a name, which is cut if it is long.
std::vector<fields::RowGroup> sheet_rows(const Dataset& set, int64_t columns) {
  const Field& target = set.fields.target();
  const auto values = set.train.fields.find(target.name);
  std::vector<fields::RowGroup> groups;
  if (values != set.train.fields.end()) {
    groups = fields::kind_of(target).groups(target, values->second, static_cast<std::size_t>(columns));
  }
  if (groups.size() > kMostGroups) groups.resize(kMostGroups);
  for (fields::RowGroup& group : groups) {
    if (group.name.size() > kLongestLabel) group.name = group.name.substr(0, kLongestLabel - 3) + "...";
  }
  return groups;
}

}  // namespace

void write_contact_sheet(const Dataset& set, const std::filesystem::path& file, int64_t columns) {
  const Split& split = set.train;
  if (set.batches != nullptr) {
    throw Error(
        "a contact sheet is of samples that are there beforehand; those of '" + set.name + "' are made while training",
        ExitCode::usage);
  }
  const Shape& shape = split.samples.shape;
  if (shape.size() != 4) {
    throw Error("a contact sheet is of images; the samples of '" + set.name + "' are " + to_string(split.samples),
                ExitCode::usage);
  }
  const int64_t longer = std::max(shape[2], shape[3]);
  const int64_t magnified = longer >= kSmallestTile ? 1 : (kSmallestTile + longer - 1) / longer;
  const double scale = longer <= kLargestTile ? 1 : static_cast<double>(kLargestTile) / static_cast<double>(longer);
  const auto scaled = [&](int64_t side) {
    return std::max<int64_t>(1, std::llround(scale * static_cast<double>(side)));
  };
  const int64_t rows_of_picture = scaled(shape[2]), columns_of_picture = scaled(shape[3]);
  const data::Lettering lettering{.ink = kSheetInk};
  const std::vector<fields::RowGroup> rows = sheet_rows(set, columns);
  int64_t label_width = 0;
  for (const fields::RowGroup& row : rows) label_width = std::max(label_width, lettering.width(row.name));
  const int64_t left = kSheetMargin + label_width + kSheetMargin;
  const int64_t tile_height = std::max(rows_of_picture * magnified, lettering.height()) + kGap;
  const int64_t tile_width = columns_of_picture * magnified + kGap;

  const Pictures pictures(split);
  data::Image sheet = data::make_image(static_cast<int64_t>(rows.size()) * tile_height + kGap,
                                       left + columns * tile_width, shape[1] == 3 ? 3 : 1, file);
  std::fill(sheet.values.begin(), sheet.values.end(), kBackground);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int64_t top = kGap + static_cast<int64_t>(i) * tile_height;
    lettering.draw(rows[i].name, top + (tile_height - kGap - lettering.height()) / 2, kSheetMargin, sheet);
    for (std::size_t column = 0; column < rows[i].rows.size(); ++column) {
      paint(data::resize(pictures[static_cast<std::size_t>(rows[i].rows[column])], rows_of_picture, columns_of_picture),
            magnified, top, left + static_cast<int64_t>(column) * tile_width, sheet);
    }
  }
  require_writable(file);
  write_atomically(file, data::encode_png(sheet));
}

}  // namespace gpunn
