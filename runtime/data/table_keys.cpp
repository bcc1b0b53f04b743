#include "data/table_keys.hpp"

#include <algorithm>

#include "data/target_columns.hpp"

namespace gpunn::data {

std::vector<std::string> changed_keys(const TargetTable& table) {
  const TargetTable usual;
  std::vector<std::string> keys;
  if (table.label_column != usual.label_column) keys.emplace_back("data.label_column");
  if (table.target_columns != usual.target_columns) keys.emplace_back("data.target_columns");
  if (table.label_separator != usual.label_separator) keys.emplace_back("data.label_separator");
  if (table.header != usual.header) keys.emplace_back("data.header");
  if (table.delimiter != usual.delimiter) keys.emplace_back("data.delimiter");
  return keys;
}

void check_target_table(const DataConfig& config, const TargetTable& table, const config::GivenKeys& given,
                        config::Diagnostics& found) {
  if (!given.sound("task")) return;
  const TargetKind kind = target_kind(config);
  const std::vector<std::string> changed = changed_keys(table);
  const auto only_of = [&](const std::string& key, bool fits, const std::string& instead) {
    if (fits || std::ranges::find(changed, key) == changed.end()) return;
    found.add(given.place(key), key + " is not for the task " + config.task + "; " + instead);
  };
  only_of("data.target_columns", kind != TargetKind::one_class, "data.label_column names the column of the classes");
  only_of("data.label_column", kind != TargetKind::numbers, "data.target_columns names the columns of the numbers");
  only_of("data.label_separator", kind == TargetKind::labels, "it is for lists of labels, of the task multi_label");
  if (kind == TargetKind::labels && !table.label_column.empty() && !table.target_columns.empty()) {
    found.add(given.place("data.target_columns"),
              "data.label_column names a column of lists, data.target_columns a column for each label; give one of "
              "them");
  }
}

}  // namespace gpunn::data
