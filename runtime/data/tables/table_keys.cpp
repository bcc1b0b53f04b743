#include "data/tables/table_keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "data/tables/target_columns.hpp"
#include "fields/kind.hpp"

namespace gpunn::data {

std::vector<std::string> changed_keys(const TargetTable& table) {
  const TargetTable usual;
  std::vector<std::string> keys;
  if (table.label_column != usual.label_column) keys.emplace_back("data.label_column");
  if (table.target_columns != usual.target_columns) keys.emplace_back("data.target_columns");
  if (table.label_separator != usual.label_separator) keys.emplace_back("data.label_separator");
  if (table.weight_column != usual.weight_column) keys.emplace_back("data.weight_column");
  if (table.header != usual.header) keys.emplace_back("data.header");
  if (table.delimiter != usual.delimiter) keys.emplace_back("data.delimiter");
  return keys;
}

void check_target_table(const DataConfig& config, const TargetTable& table, const config::GivenKeys& given,
                        config::Diagnostics& found) {
  if (!given.sound("task")) return;
  const std::vector<std::string_view> known = fields::find(config.learnt).table_keys();
  const auto is_known = [&](std::string_view key) { return std::ranges::find(known, key) != known.end(); };
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kColumnKeys = {
      {{"data.target_columns", "data.label_column names the column of the classes"},
       {"data.label_column", "data.target_columns names the columns of the numbers"},
       {"data.label_separator", "it is for lists of labels, of the task multi_label"}}};
  const std::vector<std::string> changed = changed_keys(table);
  for (const auto& [key, instead] : kColumnKeys) {
    if (is_known(key) || std::ranges::find(changed, key) == changed.end()) continue;
    found.add(given.place(std::string(key)),
              std::string(key) + " is not for the task " + config.task + "; " + std::string(instead));
  }
  if (is_known("data.label_separator") && !table.label_column.empty() && !table.target_columns.empty()) {
    found.add(given.place("data.target_columns"),
              "data.label_column names a column of lists, data.target_columns a column for each label; give one of "
              "them");
  }
}

}  // namespace gpunn::data
