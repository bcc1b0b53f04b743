// Any of several labels of each sample, [labels]: f32 on the device, 1 for each label that the sample has, else 0.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "fields/kind.hpp"
#include "fields/moments.hpp"
#include "fields/standardise.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

// A column for each label.
class LabelFlagCells : public CellReader {
 public:
  LabelFlagCells(const CellTable& table, std::vector<std::size_t> columns) : columns_(std::move(columns)) {
    for (auto column = columns_.begin(); column != columns_.end(); ++column) {
      if (std::find(columns_.begin(), column, *column) != column) {
        table.fail("data.target_columns has the column " + table.column(*column) + " twice");
      }
      names_.push_back(table.columns()[*column]);
    }
  }
  bool has(std::size_t column) const override { return std::ranges::find(columns_, column) != columns_.end(); }
  std::string text() const override {
    return "the target" + std::string(names_.size() == 1 ? " " : "s ") + shown(join(names_, ", ")) +
           " (data.target_columns)";
  }
  void add(const CellTable& table, const std::vector<std::string>& cells) override {
    for (const std::size_t column : columns_) {
      const std::optional<double> value = number_of(cells[column]);
      if (!value || (*value != 0 && *value != 1)) {
        table.refuse(cells[column], column, "0 or 1",
                     "the task multi_label has a column for each label in data.target_columns, 1 where the sample "
                     "has it; lists of labels are named by data.label_column");
      }
      flags_.push_back(static_cast<float>(*value));
    }
  }
  std::vector<std::string> names() const override { return names_; }
  FieldValues values(const std::vector<std::string>& names) const override {
    return label_values(flags_, std::ssize(names));
  }

 private:
  std::vector<std::size_t> columns_;
  std::vector<std::string> names_;
  std::vector<float> flags_;
};

// A column whose cells are lists of labels: "cat|dog"; an empty one has none.
class LabelListCells : public CellReader {
 public:
  LabelListCells(const CellTable& table, const ChosenColumns& chosen)
      : file_(table.file()),
        column_(chosen.columns.front()),
        shown_(table.column(column_)),
        separator_(chosen.label_separator) {}
  bool has(std::size_t column) const override { return column == column_; }
  std::string text() const override { return "that of the labels, " + shown_ + " (data.label_column),"; }
  void add(const CellTable& table, const std::vector<std::string>& cells) override {
    std::vector<std::string> labels;
    const std::string& cell = cells[column_];
    for (std::size_t at = 0; !cell.empty() && at <= cell.size();) {
      const std::size_t end = std::min(cell.find(separator_, at), cell.size());
      std::string label = trimmed(cell.substr(at, end - at));
      if (label.empty()) {
        table.refuse(cell, column_, "labels with " + in_quotes(separator_) + " (data.label_separator) between them",
                     "a label of the list is empty");
      }
      labels.push_back(std::move(label));
      at = end + separator_.size();
    }
    lists_.push_back(std::move(labels));
    lines_.push_back(table.line());
  }
  std::vector<std::string> names() const override {
    std::set<std::string> different;
    for (const auto& labels : lists_) different.insert(labels.begin(), labels.end());
    const std::string column = file_.string() + ": the column of the labels, " + shown_;
    if (different.empty()) {
      throw Error(column + ", is empty in all rows; expected lists of labels with " + in_quotes(separator_) +
                  " between them");
    }
    if (std::ranges::all_of(different, [](const auto& one) { return one == "0" || one == "1"; })) {
      throw Error(column +
                  ", holds 0 and 1 alone; expected lists of labels. Name the columns that have a 0 or 1 for each "
                  "label with data.target_columns");
    }
    if (different.size() > kMostClasses) {
      throw Error(column + ", has " + std::to_string(different.size()) + " different labels; at most " +
                  std::to_string(kMostClasses) +
                  " are supported. What is between two labels is said by data.label_separator");
    }
    return sorted_names({different.begin(), different.end()});
  }
  FieldValues values(const std::vector<std::string>& names) const override {
    const NameIndex index(names);
    std::vector<float> flags(lists_.size() * names.size());
    for (std::size_t row = 0; row < lists_.size(); ++row) {
      for (const std::string& label : lists_[row]) {
        const int32_t number = index.of(label, "label", file_, lines_[row]);
        flags[row * names.size() + static_cast<std::size_t>(number)] = 1;
      }
    }
    return label_values(flags, std::ssize(names));
  }

 private:
  static std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
  }

  std::filesystem::path file_;
  std::size_t column_;
  std::string shown_, separator_;
  std::vector<std::vector<std::string>> lists_;
  std::vector<int64_t> lines_;
};

class LabelSetKind : public Kind {
 public:
  std::string_view name() const override { return "label_set"; }
  std::string_view help() const override { return "any of several labels of each sample"; }
  std::string_view data() const override { return "labels"; }
  std::string of_sample(const Field& field) const override {
    return "any of " + std::to_string(field.count()) + " labels a sample";
  }
  std::string amount(const Field& field) const override { return std::to_string(field.count()) + " labels"; }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    require_type(values, {DType::f32, {rows, field.count()}}, part + " targets");
    require_finite(DType::f32, values.bytes(), field.count(), part + " targets");
    const std::vector<float> flags = numbers_in<float>(values);
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (flags[i] == 0 || flags[i] == 1) continue;
      throw Error("the " + part + " labels of " + row_text(static_cast<int64_t>(i) / field.count()) + " hold " +
                      std::to_string(flags[i]) + "; each must be 0 or 1",
                  ExitCode::usage);
    }
  }

  FieldSummary summarize(const Field& field, const FieldValues& values, int64_t rows) const override {
    FieldSummary summary{.counted = "label"};
    summary.counts.resize(rows == 0 ? static_cast<std::size_t>(field.count()) : 0);
    if (rows == 0) return summary;
    for (const Moments& column : moments_of(values.type, values.bytes())) {
      summary.counts.push_back(std::llround(column.mean() * static_cast<double>(rows)));
    }
    return summary;
  }

  std::vector<RowGroup> groups(const Field& field, const FieldValues& values, std::size_t most) const override {
    const std::vector<float> flags = numbers_in<float>(values);
    const auto labels = static_cast<std::size_t>(field.count());
    std::vector<RowGroup> groups;
    for (std::size_t i = 0; i < labels; ++i) {
      RowGroup group{i < field.names.size() ? field.names[i] : std::to_string(i), {}};
      for (std::size_t row = 0; row < flags.size() / labels && group.rows.size() < most; ++row) {
        if (flags[row * labels + i] > 0) group.rows.push_back(static_cast<int64_t>(row));
      }
      groups.push_back(std::move(group));
    }
    return groups;
  }

  std::optional<std::string> common_value(const Field& field, const FieldValues& values) const override {
    const std::span<const std::byte> bytes = values.bytes();
    if (bytes.empty()) return std::nullopt;
    const std::size_t row = static_cast<std::size_t>(field.count()) * sizeof(float);
    // Each number is that of the row before.
    if (!std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(row), bytes.end(), bytes.begin())) return std::nullopt;
    return "the same labels";
  }

  std::vector<std::string_view> table_keys() const override {
    return {"data.label_column", "data.target_columns", "data.label_separator"};
  }
  std::unique_ptr<CellReader> cells(const CellTable& table, const ChosenColumns& chosen) const override {
    if (chosen.may_be_list) return std::make_unique<LabelListCells>(table, chosen);
    return std::make_unique<LabelFlagCells>(table, chosen.columns);
  }

  FieldValues read(const ArraySource& array) const override {
    const Shape& shape = array.shape();
    if (shape.size() != 2) {
      throw Error(array.name() + ": expected a 0 or 1 for each label of a row, [rows, labels], found " +
                  to_string(shape));
    }
    if (shape[1] > static_cast<int64_t>(kMostClasses)) {
      throw Error(array.name() + ": expected at most " + std::to_string(kMostClasses) + " targets a row, found " +
                  std::to_string(shape[1]));
    }
    require_host_memory(static_cast<uint64_t>(shape[0] * shape[1]) * sizeof(double), array.name() + ": the targets");
    const std::vector<double> numbers = array.read_numbers();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 0 || numbers[i] == 1) continue;
      const auto labels = static_cast<std::size_t>(shape[1]);
      throw Error(
          array.name() + ": row " + std::to_string(i / labels) + ", column " + std::to_string(i % labels) +
          ": expected 0 or 1, found " +
          (std::isfinite(static_cast<float>(numbers[i])) ? std::to_string(numbers[i]) : non_finite_text(numbers[i])) +
          "; the task multi_label has a column for each label, 1 where the row has it");
    }
    return label_values({numbers.begin(), numbers.end()}, shape[1]);
  }
};

}  // namespace

const Kind& label_set_kind() {
  static const LabelSetKind kind;
  return kind;
}

}  // namespace gpunn::fields
