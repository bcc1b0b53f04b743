// The user's own table: a row a sample, one column or several of what is learnt, all other columns numbers. Samples f64
// [rows, features].
#include <gpunn/error.hpp>

#include <cstring>
#include <memory>
#include <utility>

#include "data/registry.hpp"
#include "data/rows/own_data.hpp"
#include "data/rows/room.hpp"
#include "data/tables/table.hpp"
#include "data/tables/table_keys.hpp"
#include "data/tables/target_columns.hpp"
#include "fields/kind.hpp"

namespace gpunn::data {

namespace {

// One file, read.
struct Rows {
  std::vector<std::string> columns;
  std::vector<double> values;                            // of the features
  std::unique_ptr<fields::CellReader> targets, weights;  // `weights`: null if there are none
  int64_t rows = 0, features = 0;
  bool is_feature(std::size_t column) const {
    return !targets->has(column) && (weights == nullptr || !weights->has(column));
  }
};

Rows read_rows(const std::filesystem::path& file, const CsvSet& settings, const TargetChoice& choice) {
  Table table(file, settings.header, settings.delimiter);
  Rows rows{.columns = table.columns(),
            .values = {},
            .targets = target_columns_of(table, choice),
            .weights = weight_column_of(table, choice)};
  for (std::size_t i = 0; i < rows.columns.size(); ++i) rows.features += rows.is_feature(i) ? 1 : 0;
  if (rows.features == 0) {
    table.fail("no column is left for the samples: each is one of " + rows.targets->text());
  }
  for (std::vector<std::string> fields; table.next(fields); ++rows.rows) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!rows.is_feature(i)) continue;
      const std::optional<double> value = fields::number_of(fields[i]);
      if (!value) {
        table.refuse(fields[i], i, "a number",
                     "every column but " + rows.targets->text() + " has to hold finite numbers, up to 3.4e38");
      }
      rows.values.push_back(*value);
    }
    rows.targets->add(table, fields);
    if (rows.weights != nullptr) rows.weights->add(table, fields);
  }
  if (rows.rows == 0) throw Error(file.string() + ": the table has no rows behind its header");
  return rows;
}

Split split_of(const Rows& rows, const Field& target) {
  Split split;
  split.samples = {DType::f64, {rows.rows, rows.features}};
  make_room(split);
  std::memcpy(split.values.data(), rows.values.data(), split.values.size());
  split.fields[target.name] = rows.targets->values(target.names);
  if (rows.weights != nullptr) split.fields[kWeightField] = rows.weights->values(rows.weights->names());
  return split;
}

Dataset read_csv(const DataConfig& config) {
  const CsvSet settings = settings_for<CsvSet>(config);
  const TargetChoice choice = target_choice(config, settings);
  const Rows train = read_rows(config.path, settings, choice);
  Dataset set;
  set.name = "csv";
  set.source = config.path.string();
  const Field& target = set.fields.target() = fields::target_field(choice.kind, train.targets->names());
  for (std::size_t i = 0; settings.header && i < train.columns.size(); ++i) {
    if (train.is_feature(i)) set.fields.input().names.push_back(train.columns[i]);
  }
  set.train = split_of(train, target);
  if (!config.test_path.empty()) {
    const Rows test = read_rows(config.test_path, settings, choice);
    require_same_columns(config.test_path, test.columns, config.path, train.columns);
    set.test = split_of(test, target);
  }
  if (train.weights != nullptr) set.fields.fields.push_back(weight_field());  // target is a part of them
  take_test_share(set, config);
  return set;
}

config::KindOf<DataConfig> csv_keys() { return keys_of_table_set<CsvSet>(); }

void check_csv(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  check_target_table(config, settings_for<CsvSet>(config), given, found);
}

}  // namespace

DatasetRow csv_row() {
  DatasetRow row;
  row.name = "csv";
  row.description = "your own table (data.path, a CSV file): columns of numbers, and what is learnt in one or several";
  row.origin = Origin::user;
  row.make = read_csv;
  row.keys = csv_keys;
  row.check = check_csv;
  return row;
}

}  // namespace gpunn::data
