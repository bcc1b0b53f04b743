#pragma once

#include <gpunn/data_config.hpp>

#include <string>
#include <utility>
#include <vector>

#include "config/given_keys.hpp"
#include "config/key_builders.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

// The keys of a set whose settings are a TargetTable, after the set's own keys.
template <class Set, class... Keys>
config::KindOf<DataConfig> keys_of_table_set(Keys... keys) {
  using namespace config;
  using T = TargetTable;
  return keys_of_set<Set>(
      std::move(keys)...,
      optional(text("label_column", &T::label_column,
                    "The column of the classes, or of lists of labels: its name, or its number from 0. Default: the "
                    "last.")),
      optional(texts("target_columns", &T::target_columns,
                     "The columns of the numbers that are learnt, or of a 0 or 1 for each label: names, or numbers "
                     "from 0. Default: the last, or all of `targets` but the first.")),
      optional(text("weight_column", &T::weight_column,
                    "The column of the rows' weights, which multiply their losses: its name, or its number from 0.")),
      text("label_separator", &T::label_separator, "Separator of two labels in a list."),
      boolean("header", &T::header, "The first line has the names of the columns."),
      choice("delimiter", &T::delimiter, {"comma", "semicolon", "tab"}, "Separator of two columns."));
}

// The keys of a table that are not as they begin.
std::vector<std::string> changed_keys(const TargetTable& table);

// Reports keys that name targets of another kind than the task's.
void check_target_table(const DataConfig& config, const TargetTable& table, const config::GivenKeys& given,
                        config::Diagnostics& found);

}  // namespace gpunn::data
