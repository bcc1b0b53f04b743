// A class of each pixel, [H, W]: u8 in memory, Field::ignored for pixels that do not count.
#include <gpunn/error.hpp>

#include <algorithm>
#include <array>

#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

class LabelMapKind : public Kind {
 public:
  std::string_view name() const override { return "label_map"; }
  std::string_view help() const override { return "a class of each pixel"; }
  std::string_view data() const override { return "images with label maps"; }
  std::string of_sample(const Field& field) const override {
    return "a label map of " + std::to_string(field.count()) + " classes a sample";
  }
  std::string amount(const Field& field) const override {
    return "label maps of " + std::to_string(field.count()) + " classes";
  }
  bool lies_in_picture() const override { return true; }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    Shape shape = field.type.shape;
    shape.insert(shape.begin(), rows);
    require_type(values, {DType::u8, shape}, part + " label maps");
    const std::span<const std::byte> pixels = values.bytes();
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const auto id = std::to_integer<int64_t>(pixels[i]);
      if (id < field.count() || (field.ignored && id == *field.ignored)) continue;
      throw Error("the " + part + " label map of " + row_text(static_cast<int64_t>(i) / field.type.elements()) +
                      " holds " + std::to_string(id) + "; with " + std::to_string(field.count()) +
                      " classes, pixels are 0 to " + std::to_string(field.count() - 1) +
                      (field.ignored ? " or " + std::to_string(*field.ignored) + ", which is ignored" : ""),
                  ExitCode::usage);
    }
  }

  // Pixels of each class.
  FieldSummary summarize(const Field& field, const FieldValues& values, int64_t) const override {
    std::array<int64_t, 256> counts = {};
    for (const std::byte pixel : values.bytes()) ++counts[std::to_integer<std::size_t>(pixel)];
    FieldSummary summary{.counted = "class"};
    summary.counts.assign(counts.begin(), counts.begin() + std::min<int64_t>(field.count(), std::ssize(counts)));
    return summary;
  }

  // The samples that have most of each class.
  std::vector<RowGroup> groups(const Field& field, const FieldValues& values, std::size_t most) const override {
    const auto pixels = static_cast<std::size_t>(std::max<int64_t>(field.type.elements(), 1));
    const std::size_t rows = values.bytes().size() / pixels;
    std::vector<RowGroup> groups;
    for (int64_t i = 0; i < field.count(); ++i) {
      std::vector<std::pair<std::ptrdiff_t, int64_t>> shares;
      for (std::size_t row = 0; row < rows; ++row) {
        const std::span<const std::byte> map = values.bytes().subspan(row * pixels, pixels);
        const auto count = std::ranges::count(map, static_cast<std::byte>(i));
        if (count > 0) shares.emplace_back(-count, static_cast<int64_t>(row));
      }
      std::ranges::sort(shares);
      RowGroup group{field.names[static_cast<std::size_t>(i)], {}};
      for (std::size_t k = 0; k < std::min(most, shares.size()); ++k) group.rows.push_back(shares[k].second);
      groups.push_back(std::move(group));
    }
    return groups;
  }
};

}  // namespace

const Kind& label_map_kind() {
  static const LabelMapKind kind;
  return kind;
}

}  // namespace gpunn::fields
