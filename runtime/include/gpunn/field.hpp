#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The use of a field: models take inputs and learn targets, a weight scales the loss of a sample, an id names it.
enum class Role { input, target, weight, id };

// How an image of another size becomes a sample.
struct ImageFit {
  bool crop = false;         // keep the proportions, scale, and cut out the middle; else stretch
  bool inside = false;       // keep the proportions, scale to fit, and place at the top left; the rest is grey
  int64_t shorter_side = 0;  // crop: length of the shorter side before the cut; 0: the least that covers the sample
};

// A named part of every sample of a data set. `kind` names the behaviour of its values: "class", "numbers",
// "label_set", "image", "label_map", "boxes" or "tokens".
struct Field {
  std::string name;
  Role role = Role::input;
  std::string kind = {};
  // One sample's values on the device: u8[3, 32, 32] of an image, f32[4] of four numbers, i32[] of a class. Empty shape
  // and u8: unknown so far.
  TensorType type = {};
  std::vector<std::string> names = {};         // of the classes, labels or columns, in order
  std::vector<int64_t> ids = {};               // COCO's category id of each name; empty: the data has none
  std::vector<double> mean = {}, stddev = {};  // of each channel or column: models see (value - mean) / stddev. u8
                                               // values are scaled by 1/255 first. Empty: values stay
  ImageFit fit = {};                           // of images: how files became samples
  bool light_on_dark = false;                  // bright on dark, as MNIST's digits; dark-on-light pictures are inverted
  int64_t scale = 1;                           // of target images: how many times larger they are than the input
  std::optional<int64_t> ignored = {};         // the value of a label map that losses and metrics pass over

  // The classes, labels or columns; without names, the numbers of a sample.
  int64_t count() const { return names.empty() ? type.elements() : static_cast<int64_t>(names.size()); }
};

// The usual names of targets: of classes, and of all other kinds.
inline constexpr const char* kLabelField = "label";
inline constexpr const char* kTargetField = "target";
inline constexpr const char* kWeightField = "weight";

// The fields of a data set's samples, or of those that a model was trained on. There are always an input and a target.
struct Schema {
  std::vector<Field> fields = {Field{.name = "image", .role = Role::input},
                               Field{.name = "target", .role = Role::target}};

  auto begin() const { return fields.begin(); }
  auto end() const { return fields.end(); }
  Field& input() { return first(Role::input); }  // the first one
  const Field& input() const { return const_cast<Schema*>(this)->input(); }
  Field& target() { return first(Role::target); }
  const Field& target() const { return const_cast<Schema*>(this)->target(); }
  const Field* find(std::string_view name) const {
    for (const Field& field : fields) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }
  std::vector<const Field*> of(Role role) const {
    std::vector<const Field*> found;
    for (const Field& field : fields) {
      if (field.role == role) found.push_back(&field);
    }
    return found;
  }

 private:
  Field& first(Role role) {
    for (Field& field : fields) {
      if (field.role == role) return field;
    }
    return fields.emplace_back(Field{.name = role == Role::input ? "image" : "target", .role = role});
  }
};

// The values of a field for some rows, in host memory.
struct FieldValues {
  TensorType type;                // [rows, ...]; of a ragged field [items, ...]
  std::vector<std::byte> values;  // type.bytes()
  // Of a ragged field, such as the boxes of images: row i has the items offsets[i] to offsets[i + 1]. Else empty.
  std::vector<int64_t> offsets = {};
  // Replaces `values`: packed values in the caller's memory, which must not change.
  std::shared_ptr<const std::byte> lent = {};
  std::span<const std::byte> bytes() const {
    return lent == nullptr ? std::span<const std::byte>(values) : std::span(lent.get(), type.bytes());
  }
};

// Statistics of an image channel or a column, in the units of the values: 0 to 255 for u8.
struct ChannelSummary {
  double min = 0, max = 0, mean = 0, stddev = 0;
};

// Statistics of a field over the rows of a split.
struct FieldSummary {
  std::string counted = {};                  // "class", "label": the things that are counted
  std::vector<int64_t> counts = {};          // of each of Field::names: the rows, or pixels, that have it
  std::vector<ChannelSummary> columns = {};  // of each column of numbers
};

}  // namespace gpunn
