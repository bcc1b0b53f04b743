// A class of each sample: i32 on the device.
#include <gpunn/error.hpp>

#include <algorithm>
#include <set>

#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

constexpr int64_t kMostClassesOfArray = 10000;

std::string class_name(const Field& field, int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  return at < field.names.size() ? field.names[at] : std::to_string(index);
}

class ClassCells : public CellReader {
 public:
  ClassCells(const CellTable& table, std::size_t column)
      : file_(table.file()), column_(column), name_(table.columns()[column]), shown_(table.column(column)) {}
  bool has(std::size_t column) const override { return column == column_; }
  std::string text() const override { return "that of the classes, " + shown_ + " (data.label_column),"; }
  void add(const CellTable& table, const std::vector<std::string>& cells) override {
    const std::string& label = cells[column_];
    if (label.empty()) table.fail("the column of the classes, " + shown_ + ", is empty");
    labels_.push_back(label);
    lines_.push_back(table.line());
  }
  std::vector<std::string> names() const override {
    const std::set<std::string> different(labels_.begin(), labels_.end());
    if (different.size() > kMostClasses) {
      throw Error(file_.string() + ": the column of the classes, " + in_quotes(name_) + ", has " +
                  std::to_string(different.size()) + " different values; at most " + std::to_string(kMostClasses) +
                  " classes are supported. Choose another with data.label_column, or learn its numbers with " +
                  "task: regression");
    }
    return sorted_names({different.begin(), different.end()});
  }
  FieldValues values(const std::vector<std::string>& names) const override {
    const NameIndex index(names);
    std::vector<int32_t> classes;
    for (std::size_t row = 0; row < labels_.size(); ++row) {
      classes.push_back(index.of(labels_[row], "class", file_, lines_[row]));
    }
    return class_values(classes);
  }

 private:
  std::filesystem::path file_;
  std::size_t column_;
  std::string name_, shown_;
  std::vector<std::string> labels_;
  std::vector<int64_t> lines_;
};

class ClassKind : public Kind {
 public:
  std::string_view name() const override { return "class"; }
  std::string_view help() const override { return "a class of each sample"; }
  std::string_view data() const override { return "classes"; }
  std::string of_sample(const Field&) const override { return "a class a sample"; }
  std::string amount(const Field& field) const override { return std::to_string(field.count()) + " classes"; }
  bool is_named_by_folders() const override { return true; }
  bool is_class() const override { return true; }

  Field target(std::vector<std::string> names) const override {
    return {.name = kLabelField,
            .role = Role::target,
            .kind = "class",
            .type = {DType::i32, {}},
            .names = std::move(names)};
  }

  FieldValues blank(const Field& field, int64_t rows) const override {
    std::vector<int32_t> classes;
    for (int64_t row = 0; row < rows; ++row) {
      classes.push_back(static_cast<int32_t>(row % std::max<int64_t>(field.count(), 1)));
    }
    return class_values(classes);
  }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    const std::vector<int32_t> classes = numbers_in<int32_t>(values);
    if (values.type.dtype != DType::i32 || std::ssize(classes) != rows) {
      throw Error("the " + part + " part has " + std::to_string(rows) + " samples and " +
                      std::to_string(classes.size()) + " labels; there must be one for each",
                  ExitCode::usage);
    }
    const int64_t count = field.count();
    const auto bad = std::ranges::find_if(classes, [&](int32_t one) { return one < 0 || one >= count; });
    if (bad == classes.end()) return;
    throw Error("the " + part + " label of " + row_text(bad - classes.begin()) + " is " + std::to_string(*bad) +
                    "; with " + std::to_string(count) + " classes labels are 0 to " + std::to_string(count - 1),
                ExitCode::usage);
  }

  FieldSummary summarize(const Field& field, const FieldValues& values, int64_t) const override {
    FieldSummary summary{.counted = "class"};
    summary.counts.resize(static_cast<std::size_t>(field.count()));
    for (const int32_t one : numbers_in<int32_t>(values)) {
      if (one >= 0 && one < field.count()) ++summary.counts[static_cast<std::size_t>(one)];
    }
    return summary;
  }

  std::vector<RowGroup> groups(const Field& field, const FieldValues& values, std::size_t most) const override {
    std::vector<RowGroup> groups;
    for (int64_t i = 0; i < field.count(); ++i) groups.push_back({class_name(field, i), {}});
    int64_t row = 0;
    for (const int32_t one : numbers_in<int32_t>(values)) {
      std::vector<int64_t>& rows = groups.at(static_cast<std::size_t>(one)).rows;
      if (rows.size() < most) rows.push_back(row);
      ++row;
    }
    return groups;
  }

  std::optional<std::string> common_value(const Field& field, const FieldValues& values) const override {
    const std::vector<int32_t> classes = numbers_in<int32_t>(values);
    if (classes.empty() && field.count() != 1) return std::nullopt;  // of batches that come later, nothing is known
    if (std::ranges::any_of(classes, [&](int32_t one) { return one != classes.front(); })) return std::nullopt;
    const auto index = static_cast<std::size_t>(classes.empty() ? 0 : classes.front());
    return "the class " + (index < field.names.size() ? shown(field.names[index]) : std::to_string(index));
  }

  std::vector<std::string_view> table_keys() const override { return {"data.label_column"}; }
  std::unique_ptr<CellReader> cells(const CellTable& table, const ChosenColumns& chosen) const override {
    return std::make_unique<ClassCells>(table, chosen.columns.back());
  }

  FieldValues read(const ArraySource& array) const override {
    const Shape& shape = array.shape();
    if (shape.size() > 2 || (shape.size() == 2 && shape[1] != 1)) {
      throw Error(array.name() + ": expected a class a row, [rows], found " + to_string(shape) +
                  (shape.size() == 2 ? "; of one-hot rows write the number of the 1" : ""));
    }
    if (!array.integers()) throw Error(array.name() + ": expected classes as integers, found floating-point numbers");
    require_host_memory(static_cast<uint64_t>(shape[0]) * sizeof(int64_t), array.name() + ": the classes");
    const std::vector<int64_t> wide = array.read_integers();
    std::vector<int32_t> classes;
    for (std::size_t row = 0; row < wide.size(); ++row) {
      if (wide[row] < 0 || wide[row] >= kMostClassesOfArray) {
        throw Error(array.name() + ": the class of row " + std::to_string(row) + " is " + std::to_string(wide[row]) +
                    "; expected 0 to " + std::to_string(kMostClassesOfArray - 1));
      }
      classes.push_back(static_cast<int32_t>(wide[row]));
    }
    return class_values(classes);
  }
};

}  // namespace

const Kind& class_kind() {
  static const ClassKind kind;
  return kind;
}

}  // namespace gpunn::fields
