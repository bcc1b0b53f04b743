// An image of each sample, [C, H, W].
#include "fields/kind.hpp"
#include "fields/moments.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

class ImageKind : public Kind {
 public:
  std::string_view name() const override { return "image"; }
  std::string_view help() const override { return "an image of each sample"; }
  std::string_view data() const override { return "photographs"; }
  std::string of_sample(const Field&) const override { return "an image to be made of each sample"; }
  std::string amount(const Field& field) const override {
    return "for images " + std::to_string(field.scale) + " times as large";
  }
  bool is_normalised() const override { return true; }
  bool lies_in_picture() const override { return true; }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    Shape shape = field.type.shape;
    shape.insert(shape.begin(), rows);
    require_type(values, {values.type.dtype, shape}, part + " images");
    require_finite(values.type.dtype, values.bytes(), field.type.elements(), part + " images");
  }

  FieldSummary summarize(const Field& field, const FieldValues& values, int64_t rows) const override {
    FieldSummary summary;
    if (field.role == Role::input && rows > 0) summary.columns = summaries_of(values.type, values.bytes());
    return summary;
  }
};

}  // namespace

const Kind& image_kind() {
  static const ImageKind kind;
  return kind;
}

}  // namespace gpunn::fields
