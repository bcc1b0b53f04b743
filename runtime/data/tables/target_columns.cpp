#include "data/tables/target_columns.hpp"

#include <algorithm>
#include <utility>

#include "fields/kind.hpp"

namespace gpunn::data {

namespace {

constexpr const char* kWeightColumn = "data.weight_column";

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
          .label_separator = table.label_separator,
          .weight_column = table.weight_column};
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
  if (!choice.weight_column.empty()) {
    const std::size_t weight = table.find(choice.weight_column, kWeightColumn);
    if (!chosen && !choice.others.empty()) std::erase(columns, weight);
    if (std::ranges::find(columns, weight) != columns.end()) {
      table.fail("the column " + table.column(weight) + " is data.weight_column; it can't be what is learnt" +
                 (chosen ? "" : ". Name what is learnt"));
    }
  }
  if (columns.empty()) table.fail("no column is left to be learnt: all others are in data.input_columns");
  const bool list = choice.target_columns.empty() && columns.size() == 1;
  return fields::find(choice.kind)
      .cells(table, {.columns = std::move(columns), .may_be_list = list, .label_separator = choice.label_separator});
}

std::unique_ptr<fields::CellReader> weight_column_of(const Table& table, const TargetChoice& choice) {
  if (choice.weight_column.empty()) return nullptr;
  const std::size_t column = table.find(choice.weight_column, kWeightColumn);
  if (std::ranges::find(choice.others, column) != choice.others.end()) {
    table.fail("the column " + table.column(column) +
               (column == 0 ? " names the files" : " is one of data.input_columns") + "; it can't be the weights");
  }
  return fields::find("numbers").cells(table, {.columns = {column}, .key = kWeightColumn});
}

Field weight_field() {
  return {.name = kWeightField, .role = Role::weight, .kind = "numbers", .type = {DType::f32, {1}}};
}

}  // namespace gpunn::data
