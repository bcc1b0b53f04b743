#include "data/target_columns.hpp"

#include <algorithm>
#include <utility>

#include "fields/kind.hpp"

namespace gpunn::data {

namespace {

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

TargetChoice target_choice(const DataConfig& config, const TargetTable& table) {
  return {.kind = config.learnt,
          .label_column = table.label_column,
          .target_columns = table.target_columns,
          .label_separator = table.label_separator};
}

std::unique_ptr<fields::CellReader> target_columns_of(const Table& table, const TargetChoice& choice) {
  std::vector<std::size_t> columns;
  for (const std::string& name : choice.target_columns) columns.push_back(table.find(name, "data.target_columns"));
  if (!choice.label_column.empty()) columns = {table.find(choice.label_column, "data.label_column")};
  for (const std::size_t column : columns) {
    if (std::ranges::find(choice.others, column) != choice.others.end()) {
      table.fail("the column " + table.column(column) +
                 (column == 0 ? " names the files" : " is one of data.input_columns") + "; it can't be what is learnt");
    }
  }
  const bool chosen = !columns.empty();
  if (!chosen) columns = columns_by_default(table, choice);
  if (columns.empty()) table.fail("no column is left to be learnt: all others are in data.input_columns");
  const bool list = choice.target_columns.empty() && columns.size() == 1;
  return fields::find(choice.kind)
      .cells(table, {.columns = std::move(columns), .may_be_list = list, .label_separator = choice.label_separator});
}

}  // namespace gpunn::data
