// The user's own table: a row a sample, a column of classes, all other columns numbers. Samples f32 [rows, features].
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "data/csv.hpp"
#include "data/own_data.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostCsvClasses = 10000;
constexpr std::size_t kLongestShown = 40;

// What one file holds.
struct Table {
  std::vector<std::string> columns;  // names, or numbers where there are none
  std::size_t label_column = 0;
  std::vector<float> values;  // of all columns but that of the labels
  std::vector<std::string> labels;
  std::vector<int64_t> lines;  // of the rows
  std::size_t features() const { return columns.size() - 1; }
};

std::optional<int64_t> integer_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shown(const std::string& text) {
  return text.size() <= kLongestShown ? in_quotes(text) : in_quotes(text.substr(0, kLongestShown) + "...");
}

class TableReader {
 public:
  TableReader(const fs::path& file, const CsvSet& settings)
      : file_(file), settings_(settings), reader_(file, delimiter_of(settings.delimiter)) {}

  Table read() {
    std::vector<std::string> fields;
    if (!reader_.next(fields)) throw Error(file_.string() + ": the file has no lines; expected a CSV table");
    name_columns(fields);
    LongWork work("reading " + file_.filename().string(), reader_.bytes(), WorkUnit::bytes);
    bool more = true;
    if (settings_.header) more = reader_.next(fields);
    for (; more; more = reader_.next(fields), work.reach(reader_.position())) add_row(fields);
    if (table_.labels.empty()) throw Error(file_.string() + ": the table has no rows behind its header");
    return std::move(table_);
  }

 private:
  void name_columns(const std::vector<std::string>& first) {
    if (first.size() < 2) {
      reader_.fail("expected two columns or more, of numbers and of classes, found one: " + shown(first.front()) +
                   "; if the columns are not separated by a " + delimiter_word() + ", say so with data.delimiter");
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      table_.columns.push_back(settings_.header ? first[i] : std::to_string(i));
    }
    const auto is_number = [](const std::string& field) { return number_of(field).has_value(); };
    if (settings_.header && std::all_of(first.begin(), first.end(), is_number)) {
      reader_.fail("expected the names of the columns, found numbers alone; if the table has no such line, set " +
                   std::string("data.header: false"));
    }
    table_.label_column = find_label_column();
  }

  std::string delimiter_word() const {
    return settings_.delimiter == Delimiter::comma ? "comma"
                                                   : (settings_.delimiter == Delimiter::tab ? "tab" : "semicolon");
  }

  std::size_t find_label_column() const {
    const std::vector<std::string>& columns = table_.columns;
    const std::string& wanted = settings_.label_column;
    if (wanted.empty()) return columns.size() - 1;
    const auto count = std::count(columns.begin(), columns.end(), wanted);
    if (count > 1) reader_.fail("the column " + in_quotes(wanted) + " is there " + std::to_string(count) + " times");
    if (count == 1) {
      return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), wanted) - columns.begin());
    }
    const std::optional<int64_t> number = integer_of(wanted);
    if (number && *number >= 0 && *number < static_cast<int64_t>(columns.size())) {
      return static_cast<std::size_t>(*number);
    }
    reader_.fail("there is no column " + in_quotes(wanted) + " (data.label_column) among the " +
                 std::to_string(columns.size()) + did_you_mean_or_list(wanted, columns));
  }

  void add_row(const std::vector<std::string>& fields) {
    if (fields.size() != table_.columns.size()) {
      reader_.fail("expected " + std::to_string(table_.columns.size()) + " fields as in the first line, found " +
                   std::to_string(fields.size()));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i == table_.label_column) continue;
      const std::optional<float> value = number_of(fields[i]);
      if (!value) refuse(fields[i], i);
      table_.values.push_back(*value);
    }
    const std::string& label = fields[table_.label_column];
    if (label.empty()) reader_.fail("the column of the classes, " + column(table_.label_column) + ", is empty");
    table_.labels.push_back(label);
    table_.lines.push_back(reader_.line());
  }

  std::string column(std::size_t index) const {
    return settings_.header ? in_quotes(table_.columns[index]) : "number " + std::to_string(index);
  }

  [[noreturn]] void refuse(const std::string& field, std::size_t index) const {
    const std::string found = field.empty() ? "nothing" : shown(field);
    std::string advice = "every column but that of the classes, " + column(table_.label_column) +
                         " (data.label_column), has to hold finite numbers";
    if (!settings_.header && table_.labels.empty()) advice += "; if this line has names, leave data.header out";
    reader_.fail("column " + column(index) + ": expected a number, found " + found + "; " + advice);
  }

  fs::path file_;
  const CsvSet& settings_;
  CsvReader reader_;
  Table table_;
};

// The different labels: by value where all are integers, else by their letters.
std::vector<std::string> classes_of(const std::vector<std::string>& labels, const fs::path& file,
                                    const std::string& column) {
  const std::set<std::string> different(labels.begin(), labels.end());
  if (different.size() > kMostCsvClasses) {
    throw Error(file.string() + ": the column of the classes, " + in_quotes(column) + ", has " +
                std::to_string(different.size()) + " different values; at most " + std::to_string(kMostCsvClasses) +
                " classes are supported. Choose another with data.label_column");
  }
  std::vector<std::string> classes(different.begin(), different.end());
  if (std::all_of(classes.begin(), classes.end(), [](const auto& label) { return integer_of(label).has_value(); })) {
    std::stable_sort(classes.begin(), classes.end(),
                     [](const auto& a, const auto& b) { return *integer_of(a) < *integer_of(b); });
  }
  return classes;
}

Split split_of(Table table, const std::vector<std::string>& classes, const fs::path& file) {
  std::vector<std::pair<std::string_view, int32_t>> numbers;
  for (std::size_t i = 0; i < classes.size(); ++i) numbers.emplace_back(classes[i], static_cast<int32_t>(i));
  std::sort(numbers.begin(), numbers.end());
  Split split;
  split.samples = {DType::f32, {static_cast<int64_t>(table.labels.size()), static_cast<int64_t>(table.features())}};
  split.values.resize(split.samples.bytes());
  std::memcpy(split.values.data(), table.values.data(), split.values.size());
  for (std::size_t row = 0; row < table.labels.size(); ++row) {
    const std::pair<std::string_view, int32_t> wanted(table.labels[row], 0);
    const auto found = std::lower_bound(numbers.begin(), numbers.end(), wanted);
    if (found == numbers.end() || found->first != wanted.first) {
      throw Error(file.string() + ":" + std::to_string(table.lines[row]) + ": the class " + shown(table.labels[row]) +
                  " is not among those of the training samples" + did_you_mean_or_list(table.labels[row], classes));
    }
    split.labels.push_back(found->second);
  }
  return split;
}

Dataset read_csv(const DataConfig& config) {
  const CsvSet settings = settings_for<CsvSet>(config);
  Table train = TableReader(config.path, settings).read();
  Dataset set;
  set.name = "csv";
  set.source = config.path.string();
  set.class_names = classes_of(train.labels, config.path, train.columns[train.label_column]);
  set.classes = static_cast<int64_t>(set.class_names.size());
  const std::vector<std::string> columns = train.columns;
  if (settings.header) {
    set.columns = columns;
    set.columns.erase(set.columns.begin() + static_cast<std::ptrdiff_t>(train.label_column));
  }
  set.train = split_of(std::move(train), set.class_names, config.path);
  if (!config.test_path.empty()) {
    Table test = TableReader(config.test_path, settings).read();
    if (test.columns != columns) {
      throw Error(config.test_path.string() + ": expected the " + std::to_string(columns.size()) + " columns of " +
                  config.path.string() + " (" + shown(join(columns, ", ")) + "), found " +
                  std::to_string(test.columns.size()) + " (" + shown(join(test.columns, ", ")) + ")");
    }
    set.test = split_of(std::move(test), set.class_names, config.test_path);
  }
  take_test_share(set, config);
  return set;
}

config::KindOf<DataConfig> csv_keys() {
  using namespace config;
  return keys_of_set<CsvSet>(
      optional(text("label_column", &CsvSet::label_column,
                    "The column of the classes: its name, or its number from 0. Default: the last.")),
      boolean("header", &CsvSet::header, "The first line has the names of the columns."),
      choice("delimiter", &CsvSet::delimiter, {"comma", "semicolon", "tab"}, "What is between two columns."));
}

}  // namespace

DatasetRow csv_row() {
  DatasetRow row;
  row.name = "csv";
  row.description = "your own table (data.path, a CSV file): columns of numbers and one of classes";
  row.origin = Origin::user;
  row.make = read_csv;
  row.keys = csv_keys;
  return row;
}

}  // namespace gpunn::data
