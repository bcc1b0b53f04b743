#pragma once

#include <gpunn/field.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::fields {

// A table of cells that is read row by row, whatever the file's format.
class CellTable {
 public:
  virtual ~CellTable() = default;
  virtual const std::filesystem::path& file() const = 0;
  virtual const std::vector<std::string>& columns() const = 0;  // names, or numbers if there are none
  virtual std::string column(std::size_t index) const = 0;      // for messages: "'length'", or "number 3"
  virtual int64_t line() const = 0;                             // of the row in hand
  // Throws Error: "FILE:LINE: what".
  [[noreturn]] virtual void fail(const std::string& what) const = 0;
  // Throws Error: "FILE:LINE: column C: expected <expected>, found <cell>; advice".
  [[noreturn]] virtual void refuse(const std::string& cell, std::size_t column, const std::string& expected,
                                   const std::string& advice) const = 0;
};

// The columns of a field, and how they are written.
struct ChosenColumns {
  std::vector<std::size_t> columns;
  bool may_be_list = false;          // one column, which the user did not name as a number
  std::string label_separator = {};  // between the labels of a list
  // The experiment's key that names the columns, where they are not what is learnt: "data.input_columns".
  std::string_view key = {};
};

// Gathers the values of a field from the rows of a table.
class CellReader {
 public:
  virtual ~CellReader() = default;
  virtual bool has(std::size_t column) const = 0;
  virtual std::string text() const = 0;  // for messages: "that of the classes, 'species' (data.label_column)"
  // Takes the row that the table is at. Throws Error with its line.
  virtual void add(const CellTable& table, const std::vector<std::string>& cells) = 0;
  // From the rows so far: the classes, labels or columns, in the models' order.
  virtual std::vector<std::string> names() const = 0;
  // Throws Error, with the line, if a row has a class or label that is not in `names`.
  virtual FieldValues values(const std::vector<std::string>& names) const = 0;
};

// The number that a cell holds, if the cell holds nothing else and f32 has the number's magnitude.
std::optional<double> number_of(std::string_view cell);
// In quotes; a long cell is cut.
std::string shown(const std::string& cell);
// By value if all are integers, else by their letters.
std::vector<std::string> sorted_names(std::vector<std::string> different);

inline constexpr std::size_t kMostClasses = 10000;  // of a table

// The place of each name in a list.
class NameIndex {
 public:
  explicit NameIndex(const std::vector<std::string>& names);
  // Throws Error at this line of the file, if the name is not in the list. `what` is the name of: "class".
  int32_t of(const std::string& name, const char* what, const std::filesystem::path& file, int64_t line) const;

 private:
  const std::vector<std::string>& names_;
  std::vector<std::pair<std::string_view, int32_t>> places_;
};

}  // namespace gpunn::fields
