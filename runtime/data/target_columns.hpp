#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/table.hpp"

namespace gpunn::data {

// The target columns of a table, as the user names them.
struct TargetChoice {
  TargetKind kind = TargetKind::one_class;
  std::string label_column;                 // empty: the last
  std::vector<std::string> target_columns;  // empty: see `others`
  std::string label_separator;
  // Columns that are no targets; where nothing is chosen, all but these are. Empty: the last column is the target.
  std::vector<std::size_t> others = {};
};

// The kind of target that the experiment's task learns.
TargetKind target_kind(const DataConfig& config);
TargetChoice target_choice(const DataConfig& config, const TargetTable& table);

// The targets of a table, gathered row by row.
class TargetColumns {
 public:
  virtual ~TargetColumns() = default;
  virtual bool has(std::size_t column) const = 0;
  virtual std::string text() const = 0;  // for messages: "that of the classes, 'species' (data.label_column)"
  // The row that the table is at. Throws Error with its line.
  virtual void add(const Table& table, const std::vector<std::string>& fields) = 0;
  // From the rows so far: the classes, labels or target columns, in the models' order.
  virtual std::vector<std::string> names() const = 0;
  // Throws Error, with the line, if a row has a class or label that is not in `names`.
  virtual void put_into(Split& split, const std::vector<std::string>& names) const = 0;
};

std::unique_ptr<TargetColumns> target_columns_of(const Table& table, const TargetChoice& choice);

// Gives the rows of a split the targets [rows, labels]: 0 or 1 in f32, as the device has them.
void set_label_targets(Split& split, const std::vector<float>& values, int64_t labels);
// Gives the rows of a split the targets [rows, outputs]: numbers in f64.
void set_number_targets(Split& split, const std::vector<double>& values, int64_t outputs);

}  // namespace gpunn::data
