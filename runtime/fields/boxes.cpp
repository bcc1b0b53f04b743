// Boxes around the objects of an image, [boxes, numbers]; rows of fewer boxes are filled up.
#include <gpunn/error.hpp>

#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

class BoxesKind : public Kind {
 public:
  std::string_view name() const override { return "boxes"; }
  std::string_view help() const override { return "boxes around the objects of each image, with their classes"; }
  std::string_view data() const override { return "images with boxes"; }
  std::string of_sample(const Field& field) const override { return amount(field); }
  std::string amount(const Field& field) const override {
    return "boxes of " + std::to_string(field.count()) + " classes";
  }
  bool lies_in_picture() const override { return true; }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    Shape shape = field.type.shape;
    shape.insert(shape.begin(), rows);
    require_type(values, {DType::f32, shape}, part + " boxes");
  }
};

}  // namespace

const Kind& boxes_kind() {
  static const BoxesKind kind;
  return kind;
}

}  // namespace gpunn::fields
