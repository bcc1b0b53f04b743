// Numbers of each sample, [columns]: f32 on the device, f64 or f32 before.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "fields/kind.hpp"
#include "fields/moments.hpp"
#include "fields/standardise.hpp"
#include "fields/values.hpp"

namespace gpunn::fields {

namespace {

constexpr std::size_t kMostNumberGroups = 10;
constexpr std::string_view kTargetColumns = "data.target_columns";

class NumberCells : public CellReader {
 public:
  NumberCells(const CellTable& table, const ChosenColumns& chosen)
      : columns_(chosen.columns), key_(chosen.key.empty() ? kTargetColumns : chosen.key) {
    for (auto column = columns_.begin(); column != columns_.end(); ++column) {
      if (std::find(columns_.begin(), column, *column) != column) {
        table.fail(std::string(key_) + " has the column " + table.column(*column) + " twice");
      }
      names_.push_back(table.columns()[*column]);
    }
  }
  bool has(std::size_t column) const override { return std::ranges::find(columns_, column) != columns_.end(); }
  std::string text() const override {
    return "the " + std::string(is_target() ? "target" : "column") + (names_.size() == 1 ? " " : "s ") +
           shown(join(names_, ", ")) + " (" + std::string(key_) + ")";
  }
  void add(const CellTable& table, const std::vector<std::string>& cells) override {
    for (const std::size_t column : columns_) {
      const std::optional<double> value = number_of(cells[column]);
      if (!value) {
        table.refuse(cells[column], column, "a finite number",
                     (is_target() ? "the task regression learns" : "models take") +
                         std::string(" numbers up to 3.4e38 (") + std::string(key_) +
                         "). Leave such rows out, or choose other columns" +
                         (is_target() ? "; classes are learnt by task: classification" : ""));
      }
      values_.push_back(*value);
    }
  }
  std::vector<std::string> names() const override { return names_; }
  FieldValues values(const std::vector<std::string>& names) const override {
    return number_values(values_, std::ssize(names));
  }

 private:
  bool is_target() const { return key_ == kTargetColumns; }

  std::vector<std::size_t> columns_;
  std::string_view key_;
  std::vector<std::string> names_;
  std::vector<double> values_;
};

class NumbersKind : public Kind {
 public:
  std::string_view name() const override { return "numbers"; }
  std::string_view help() const override { return "numbers of each sample, one for each column"; }
  std::string_view data() const override { return "numbers"; }
  std::string of_sample(const Field& field) const override {
    return std::to_string(field.count()) + " numbers a sample";
  }
  std::string amount(const Field& field) const override {
    return std::to_string(field.count()) + (field.count() == 1 ? " target" : " targets");
  }
  bool is_normalised() const override { return true; }
  bool is_scaled() const override { return true; }

  void require(const Field& field, const FieldValues& values, int64_t rows, const std::string& part) const override {
    const bool learnt = field.role == Role::target;
    const std::string what = part + (learnt ? " targets" : " '" + field.name + "'");
    Shape shape = learnt ? Shape{field.count()} : field.type.shape;
    shape.insert(shape.begin(), rows);
    const DType given = values.type.dtype;
    const bool known = given == DType::f64 || (given == DType::u8 && !learnt);
    const DType dtype = known ? given : DType::f32;
    require_type(values, {dtype, shape}, what);
    require_finite(dtype, values.bytes(), element_count(shape) / std::max<int64_t>(rows, 1), what);
  }

  FieldSummary summarize(const Field&, const FieldValues& values, int64_t rows) const override {
    FieldSummary summary;
    if (rows > 0) summary.columns = summaries_of(values.type, values.bytes());
    return summary;
  }

  // Equal parts of the samples by their first column, the smallest first.
  std::vector<RowGroup> groups(const Field&, const FieldValues& values, std::size_t most) const override {
    const auto columns = static_cast<std::size_t>(values.type.shape.at(1));
    std::vector<std::size_t> order(static_cast<std::size_t>(values.type.shape.at(0)));
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto number = [&](std::size_t row) { return element_of(values.type.dtype, values.bytes(), row * columns); };
    std::ranges::stable_sort(order, {}, number);
    const std::size_t parts = std::min(order.size(), kMostNumberGroups);
    std::vector<RowGroup> groups;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t first = i * order.size() / parts, end = (i + 1) * order.size() / parts;
      std::ostringstream label;
      label << std::setprecision(4) << number(order[first]) << " to " << number(order[end - 1]);
      RowGroup group{label.str(), {}};
      for (std::size_t at = first; at < std::min(end, first + most); ++at) {
        group.rows.push_back(static_cast<int64_t>(order[at]));
      }
      groups.push_back(std::move(group));
    }
    return groups;
  }

  std::vector<std::string_view> table_keys() const override { return {kTargetColumns}; }
  std::unique_ptr<CellReader> cells(const CellTable& table, const ChosenColumns& chosen) const override {
    return std::make_unique<NumberCells>(table, chosen);
  }

  FieldValues read(const ArraySource& array) const override {
    const Shape& shape = array.shape();
    if (shape.size() != 1 && shape.size() != 2) {
      throw Error(array.name() + ": expected numbers, [rows] or [rows, columns], found " + to_string(shape));
    }
    const int64_t columns = shape.size() == 2 ? shape[1] : 1;
    if (columns > static_cast<int64_t>(kMostClasses)) {
      throw Error(array.name() + ": expected at most " + std::to_string(kMostClasses) + " targets a row, found " +
                  std::to_string(columns));
    }
    require_host_memory(static_cast<uint64_t>(shape[0] * columns) * sizeof(double), array.name() + ": the targets");
    const std::vector<double> numbers = array.read_numbers();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (std::isfinite(static_cast<float>(numbers[i]))) continue;
      const auto each = static_cast<std::size_t>(columns);
      throw Error(array.name() + ": row " + std::to_string(i / each) + ", column " + std::to_string(i % each) +
                  ": expected a finite number, found " + non_finite_text(numbers[i]) +
                  "; the task regression learns numbers. Leave such rows out");
    }
    return number_values(numbers, columns);
  }
};

}  // namespace

const Kind& numbers_kind() {
  static const NumbersKind kind;
  return kind;
}

}  // namespace gpunn::fields
