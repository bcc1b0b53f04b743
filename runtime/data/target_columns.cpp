#include "data/target_columns.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "tasks/task.hpp"

namespace gpunn::data {

namespace {

constexpr std::size_t kMostCsvClasses = 10000;

// By value where all are integers, else by their letters.
std::vector<std::string> sorted_names(const std::set<std::string>& different) {
  std::vector<std::string> names(different.begin(), different.end());
  if (std::ranges::all_of(names, [](const auto& name) { return parse_number<int64_t>(name).has_value(); })) {
    std::ranges::stable_sort(names, {}, [](const auto& name) { return *parse_number<int64_t>(name); });
  }
  return names;
}

// The place of each name.
class Numbers {
 public:
  explicit Numbers(const std::vector<std::string>& names) : names_(names) {
    for (std::size_t i = 0; i < names.size(); ++i) numbers_.emplace_back(names[i], static_cast<int32_t>(i));
    std::ranges::sort(numbers_);
  }
  // `what` is the name of, and `where` the file and line.
  int32_t of(const std::string& name, const char* what, const std::string& where) const {
    const auto found = std::ranges::lower_bound(numbers_, std::string_view(name), {}, &Number::first);
    if (found != numbers_.end() && found->first == name) return found->second;
    throw Error(where + ": the " + what + " " + shown(name) + " is not among those of the training samples" +
                did_you_mean_or_list(name, names_));
  }

 private:
  using Number = std::pair<std::string_view, int32_t>;
  const std::vector<std::string>& names_;
  std::vector<Number> numbers_;
};

std::string place_of(const std::filesystem::path& file, int64_t line) {
  return file.string() + ":" + std::to_string(line);
}

class ClassColumn : public TargetColumns {
 public:
  ClassColumn(const Table& table, std::size_t column)
      : file_(table.file()), column_(column), name_(table.columns()[column]), shown_(table.column(column)) {}
  bool has(std::size_t column) const override { return column == column_; }
  std::string text() const override { return "that of the classes, " + shown_ + " (data.label_column),"; }
  void add(const Table& table, const std::vector<std::string>& fields) override {
    const std::string& label = fields[column_];
    if (label.empty()) table.fail("the column of the classes, " + shown_ + ", is empty");
    labels_.push_back(label);
    lines_.push_back(table.line());
  }
  std::vector<std::string> names() const override {
    const std::set<std::string> different(labels_.begin(), labels_.end());
    if (different.size() > kMostCsvClasses) {
      throw Error(file_.string() + ": the column of the classes, " + in_quotes(name_) + ", has " +
                  std::to_string(different.size()) + " different values; at most " + std::to_string(kMostCsvClasses) +
                  " classes are supported. Choose another with data.label_column, or learn its numbers with " +
                  "task: regression");
    }
    return sorted_names(different);
  }
  void put_into(Split& split, const std::vector<std::string>& names) const override {
    const Numbers numbers(names);
    for (std::size_t row = 0; row < labels_.size(); ++row) {
      split.labels.push_back(numbers.of(labels_[row], "class", place_of(file_, lines_[row])));
    }
  }

 private:
  std::filesystem::path file_;
  std::size_t column_;
  std::string name_, shown_;
  std::vector<std::string> labels_;
  std::vector<int64_t> lines_;
};

// Columns of numbers, or of 0 and 1.
class NumberColumns : public TargetColumns {
 public:
  NumberColumns(const Table& table, std::vector<std::size_t> columns, TargetKind kind)
      : columns_(std::move(columns)), kind_(kind) {
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
  void add(const Table& table, const std::vector<std::string>& fields) override {
    for (const std::size_t column : columns_) {
      const std::optional<double> value = number_of(fields[column]);
      if (kind_ == TargetKind::labels) {
        if (!value || (*value != 0 && *value != 1)) {
          table.refuse(fields[column], column, "0 or 1",
                       "the task multi_label has a column for each label in data.target_columns, 1 where the sample "
                       "has it; lists of labels are named by data.label_column");
        }
      } else if (!value) {
        table.refuse(fields[column], column, "a finite number",
                     "the task regression learns numbers up to 3.4e38 (data.target_columns). Leave such rows out, or "
                     "choose other "
                     "columns; classes are learnt by task: classification");
      }
      values_.push_back(*value);
    }
  }
  std::vector<std::string> names() const override { return names_; }
  void put_into(Split& split, const std::vector<std::string>& names) const override {
    const auto outputs = static_cast<int64_t>(names.size());
    if (kind_ == TargetKind::labels) return set_label_targets(split, {values_.begin(), values_.end()}, outputs);
    set_number_targets(split, values_, outputs);
  }

 private:
  std::vector<std::size_t> columns_;
  TargetKind kind_;
  std::vector<std::string> names_;
  std::vector<double> values_;
};

// A column whose fields are lists of labels: "cat|dog"; an empty one has none.
class LabelLists : public TargetColumns {
 public:
  LabelLists(const Table& table, std::size_t column, const TargetChoice& choice)
      : file_(table.file()), column_(column), shown_(table.column(column)), separator_(choice.label_separator) {}
  bool has(std::size_t column) const override { return column == column_; }
  std::string text() const override { return "that of the labels, " + shown_ + " (data.label_column),"; }
  void add(const Table& table, const std::vector<std::string>& fields) override {
    std::vector<std::string> labels;
    const std::string& field = fields[column_];
    for (std::size_t at = 0; !field.empty() && at <= field.size();) {
      const std::size_t end = std::min(field.find(separator_, at), field.size());
      std::string label = trimmed(field.substr(at, end - at));
      if (label.empty()) {
        table.refuse(field, column_, "labels with " + in_quotes(separator_) + " (data.label_separator) between them",
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
    if (different.empty()) {
      throw Error(file_.string() + ": the column of the labels, " + shown_ + ", is empty in all rows; " +
                  "expected lists of labels with " + in_quotes(separator_) + " between them");
    }
    if (std::ranges::all_of(different, [](const auto& one) { return one == "0" || one == "1"; })) {
      throw Error(file_.string() + ": the column of the labels, " + shown_ +
                  ", holds 0 and 1 alone; expected lists of labels. Name the columns that have a 0 or 1 for each "
                  "label with data.target_columns");
    }
    if (different.size() > kMostCsvClasses) {
      throw Error(file_.string() + ": the column of the labels, " + shown_ + ", has " +
                  std::to_string(different.size()) + " different labels; at most " + std::to_string(kMostCsvClasses) +
                  " are supported. What is between two labels is said by data.label_separator");
    }
    return sorted_names(different);
  }
  void put_into(Split& split, const std::vector<std::string>& names) const override {
    const Numbers numbers(names);
    std::vector<float> values(lists_.size() * names.size());
    for (std::size_t row = 0; row < lists_.size(); ++row) {
      for (const std::string& label : lists_[row]) {
        const int32_t number = numbers.of(label, "label", place_of(file_, lines_[row]));
        values[row * names.size() + static_cast<std::size_t>(number)] = 1;
      }
    }
    set_label_targets(split, values, static_cast<int64_t>(names.size()));
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

// The columns that may be learnt where none is named.
std::vector<std::size_t> columns_by_default(const Table& table, const TargetChoice& choice) {
  if (choice.others.empty()) return {table.columns().size() - 1};
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    if (std::ranges::find(choice.others, i) == choice.others.end()) columns.push_back(i);
  }
  return columns;
}

}  // namespace

TargetKind target_kind(const DataConfig& config) { return tasks::find(config.task).target_kind(); }

TargetChoice target_choice(const DataConfig& config, const TargetTable& table) {
  return {.kind = target_kind(config),
          .label_column = table.label_column,
          .target_columns = table.target_columns,
          .label_separator = table.label_separator};
}

std::unique_ptr<TargetColumns> target_columns_of(const Table& table, const TargetChoice& choice) {
  std::vector<std::size_t> columns;
  for (const std::string& name : choice.target_columns) columns.push_back(table.find(name, "data.target_columns"));
  if (!choice.label_column.empty()) columns = {table.find(choice.label_column, "data.label_column")};
  for (const std::size_t column : columns) {
    if (std::ranges::find(choice.others, column) != choice.others.end()) {
      table.fail("the column " + table.column(column) + " names the files; it can't be what is learnt");
    }
  }
  const bool chosen = !columns.empty();
  if (!chosen) columns = columns_by_default(table, choice);
  const bool list = choice.target_columns.empty() && columns.size() == 1;
  if (choice.kind == TargetKind::one_class) return std::make_unique<ClassColumn>(table, columns.back());
  if (choice.kind == TargetKind::labels && list) return std::make_unique<LabelLists>(table, columns.front(), choice);
  return std::make_unique<NumberColumns>(table, std::move(columns), choice.kind);
}

namespace {

template <class T>
void set_target_field(Split& split, const std::vector<T>& values, int64_t outputs, DType type) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  Field& field = split.fields[kTargetField];
  field.type = {type, {static_cast<int64_t>(values.size()) / outputs, outputs}};
  field.values.assign(bytes.begin(), bytes.end());
}

}  // namespace

void set_label_targets(Split& split, const std::vector<float>& values, int64_t labels) {
  set_target_field(split, values, labels, DType::f32);
}

void set_number_targets(Split& split, const std::vector<double>& values, int64_t outputs) {
  set_target_field(split, values, outputs, DType::f64);
}

}  // namespace gpunn::data
