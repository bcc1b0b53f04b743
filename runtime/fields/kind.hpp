#pragma once

#include <gpunn/field.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fields/array_source.hpp"
#include "fields/cells.hpp"

namespace gpunn::fields {

// Rows that are shown together.
struct RowGroup {
  std::string name;
  std::vector<int64_t> rows;
};

// The behaviour of a kind of field; it holds no state. A kind is a file in this folder: CMake finds it.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual std::string_view name() const = 0;                    // Field::kind
  virtual std::string_view help() const = 0;                    // one clause: the values of a sample
  virtual std::string of_sample(const Field& field) const = 0;  // "a class a sample", for messages
  virtual std::string amount(const Field& field) const = 0;     // "10 classes", for messages
  virtual std::string_view data() const = 0;                    // data sets that have it: "images with boxes"

  // A field of this kind that is learnt, with a value for each name.
  virtual Field target(std::vector<std::string> names) const;
  // Values that stand for data: of the type that the device takes, mostly zeros.
  virtual FieldValues blank(const Field& field, int64_t rows) const;
  // Throws Error(usage) if these are not values of `rows` samples. `part` is the part's name, for messages.
  virtual void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const = 0;
  virtual FieldSummary summarize(const Field& field, const FieldValues& values, int64_t rows) const;
  // The rows for a contact sheet, at most `most` of each group; empty: samples of this kind are not grouped.
  virtual std::vector<RowGroup> groups(const Field& field, const FieldValues& values, std::size_t most) const;
  // The value that all rows have, for messages: "the class 'cat'". Nothing: they differ, or may be equal.
  virtual std::optional<std::string> common_value(const Field& field, const FieldValues& values) const;

  // Whether models take values as (value - mean) / stddev, in f32. Others they take as they are.
  virtual bool is_normalised() const { return false; }
  // Whether models learn values as (value - mean) / stddev, with data.scale_targets.
  virtual bool is_scaled() const { return false; }
  // Whether the names of folders give the values.
  virtual bool is_named_by_folders() const { return false; }
  // Whether equal shares can be drawn of each value: data.stratify.
  virtual bool is_class() const { return false; }
  // Whether every value belongs to a place of the picture, and moves with it.
  virtual bool lies_in_picture() const { return false; }

  // The keys of a table's columns that this kind is read from: "data.label_column", ... Empty: tables do not have it.
  virtual std::vector<std::string_view> table_keys() const { return {}; }
  // Reads the values from columns of a table. Throws Error if the kind is not in tables.
  virtual std::unique_ptr<CellReader> cells(const CellTable& table, const ChosenColumns& columns) const;
  // Reads the values from an array of a file. Throws Error if its numbers are not of this kind.
  virtual FieldValues read(const ArraySource& array) const;
};

const std::vector<const Kind*>& kinds();
// Adds a kind of the program, which must outlive all uses. Throws Error(usage) if there is a kind of this name.
void add(const Kind& kind);
const Kind& find(std::string_view name);  // throws Error(usage) if there is none
inline const Kind& kind_of(const Field& field) { return find(field.kind); }
// The kind of an input of such samples, where nothing else says it: an image, numbers, or integers for layers that take
// them as they are.
std::string_view input_kind(const TensorType& sample);
// A sample of an input as models take it. A kind that is not known yet is that of an image or of numbers.
TensorType taken_type(const Field& input);
inline Field target_field(std::string_view kind, std::vector<std::string> names) {
  return find(kind).target(std::move(names));
}

}  // namespace gpunn::fields
