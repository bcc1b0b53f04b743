#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "data/tables/table.hpp"
#include "fields/cells.hpp"

namespace gpunn::data {

// The target columns of a table, as the user names them.
struct TargetChoice {
  std::string kind = "class";               // of the field that the task learns
  std::string label_column;                 // empty: the last
  std::vector<std::string> target_columns;  // empty: see `others`
  std::string label_separator;
  std::string weight_column;  // empty: there is none
  // Columns to exclude from the targets. If no target is chosen, every other column is one. Empty: the last column is
  // the target.
  std::vector<std::size_t> others = {};
};

TargetChoice target_choice(const DataConfig& config, const TargetTable& table);

// Gathers the targets of a table, row by row.
std::unique_ptr<fields::CellReader> target_columns_of(const Table& table, const TargetChoice& choice);

// Gathers the weights of a table's rows; null: they have none.
std::unique_ptr<fields::CellReader> weight_column_of(const Table& table, const TargetChoice& choice);

// The field of the weights of rows.
Field weight_field();

}  // namespace gpunn::data
