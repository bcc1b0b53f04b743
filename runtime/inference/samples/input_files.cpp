#include "inference/samples/input_files.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/input_file.hpp"
#include "common/text.hpp"
#include "data/tables/csv.hpp"
#include "fields/cells.hpp"
#include "fields/kind.hpp"

namespace gpunn::inference {

namespace fs = std::filesystem;

namespace {

// How the data's table is written; the usual way if the data has none.
TargetTable table_of(const DataConfig& data) {
  return std::visit(
      [](const auto& set) -> TargetTable {
        if constexpr (std::is_base_of_v<TargetTable, std::decay_t<decltype(set)>>) {
          return static_cast<const TargetTable&>(set);
        }
        return {};
      },
      data.kind);
}

template <class T>
void append(std::vector<std::byte>& values, T number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  values.insert(values.end(), bytes.begin(), bytes.end());
}

bool is_picture(const Field& input) { return input.type.shape.size() == 3 && input.type.dtype == DType::u8; }

bool takes_integers(const Field& input) { return !fields::kind_of(input).is_normalised(); }

std::vector<std::string> column_names(const Field& input) {
  if (is_picture(input)) return {input.name};
  if (!input.names.empty() && !takes_integers(input)) return input.names;
  if (input.type.shape.empty()) return {input.name};
  std::vector<std::string> names;
  for (int64_t i = 0; i < input.type.elements(); ++i) names.push_back(input.name + "." + std::to_string(i));
  return names;
}

class InputTable {
 public:
  InputTable(const fs::path& file, const ModelInfo& info, const DataConfig& data)
      : file_(file),
        info_(info),
        data_(data),
        table_(table_of(data)),
        reader_(file, data::delimiter_of(table_.delimiter)) {}

  std::vector<FileSample> read() {
    std::vector<std::string> cells;
    if (!reader_.next(cells)) throw Error(file_.string() + ": the file has no lines; expected a CSV table");
    find_columns(cells);
    std::vector<FileSample> samples;
    while (reader_.next(cells)) samples.push_back(sample_of(cells));
    if (samples.empty()) throw Error(file_.string() + ": the table has no rows behind its header");
    return samples;
  }

 private:
  struct Columns {
    const Field* input = nullptr;
    std::vector<std::size_t> places;
  };

  void find_columns(const std::vector<std::string>& names) {
    width_ = names.size();
    std::vector<std::string> missing;
    const std::vector<const Field*> inputs = info_.fields.of(Role::input);
    const auto pictures = std::ranges::count_if(inputs, [](const Field* input) { return is_picture(*input); });
    for (const Field* input : inputs) {
      Columns columns{input, {}};
      for (const std::string& name : column_names(*input)) {
        auto found = std::ranges::find(names, name);
        if (found == names.end() && is_picture(*input) && pictures == 1) found = names.begin();  // as data.targets
        if (found == names.end()) missing.push_back(in_quotes(name));
        columns.places.push_back(static_cast<std::size_t>(found - names.begin()));
      }
      columns_.push_back(std::move(columns));
    }
    if (!missing.empty()) {
      reader_.fail("the model takes the columns " + join(missing, ", ") + ", and the table has " + join(names, ", ") +
                   "; its first line has to name them");
    }
    const std::string& label = table_.label_column.empty() ? info_.fields.target().name : table_.label_column;
    const auto found = std::ranges::find(names, label);
    if (found != names.end()) label_ = static_cast<std::size_t>(found - names.begin());
  }

  FileSample sample_of(const std::vector<std::string>& cells) const {
    if (cells.size() != width_) {
      reader_.fail("expected " + std::to_string(width_) + " fields as in the first line, found " +
                   std::to_string(cells.size()));
    }
    FileSample sample;
    sample.source = file_.string() + ":" + std::to_string(reader_.line());
    for (const Columns& columns : columns_) sample.inputs.push_back(row_of(columns, cells));
    if (label_) {
      const std::vector<std::string>& names = info_.fields.target().names;
      const auto found = std::ranges::find(names, cells[*label_]);
      if (found != names.end()) sample.label = found - names.begin();
    }
    return sample;
  }

  InputRow row_of(const Columns& columns, const std::vector<std::string>& cells) const {
    const Field& input = *columns.input;
    InputRow row;
    if (is_picture(input)) {
      row.image = image_file(cells[columns.places.front()]);
      return row;
    }
    row.dtype = takes_integers(input) ? input.type.dtype : DType::f64;
    for (const std::size_t place : columns.places) {
      const std::optional<double> value = fields::number_of(cells[place]);
      if (!value || (row.dtype != DType::f64 && *value != std::floor(*value))) {
        reader_.fail("column " + std::to_string(place) + ": expected " +
                     (row.dtype == DType::f64 ? "a number" : "an integer") + ", found " +
                     (cells[place].empty() ? "nothing" : in_quotes(cells[place])));
      }
      append_number(row, *value);
    }
    return row;
  }

  void append_number(InputRow& row, double value) const {
    const auto append_integer = [&]<class T>(T /*type*/) {
      if (value < static_cast<double>(std::numeric_limits<T>::min()) ||
          value > static_cast<double>(std::numeric_limits<T>::max())) {
        reader_.fail("the model takes " + std::string(name_of(row.dtype)) + ", found " + std::to_string(value));
      }
      append(row.values, static_cast<T>(value));
    };
    if (row.dtype == DType::u8) return append_integer(uint8_t{});
    if (row.dtype == DType::i32) return append_integer(int32_t{});
    if (row.dtype == DType::i64) return append_integer(int64_t{});
    append(row.values, value);
  }

  fs::path image_file(const std::string& name) const {
    fs::path beside = file_.parent_path() / name;
    if (is_file(beside) || data_.path.empty()) return beside;
    const fs::path in_data = data_.path / name;
    return is_file(in_data) ? in_data : beside;
  }

  fs::path file_;
  const ModelInfo& info_;
  const DataConfig& data_;
  TargetTable table_;
  data::CsvReader reader_;
  std::size_t width_ = 0;
  std::vector<Columns> columns_;
  std::optional<std::size_t> label_;
};

}  // namespace

std::vector<FileSample> samples_in_table(const fs::path& file, const ModelInfo& info, const DataConfig& data) {
  return InputTable(file, info, data).read();
}

}  // namespace gpunn::inference
