#include "inference/input_files.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/input_file.hpp"
#include "common/text.hpp"
#include "data/csv.hpp"
#include "data/npz.hpp"
#include "fields/cells.hpp"
#include "fields/kind.hpp"

namespace gpunn::inference {

namespace fs = std::filesystem;

namespace {

// How the data's table is written; the usual way if the data has none.
TargetTable table_of(const DataConfig& data) {
  return std::visit(
      [](const auto& set) -> TargetTable {
        if constexpr (std::is_base_of_v<TargetTable, std::decay_t<decltype(set)>>) return set;
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

// The values of an array as the model takes them: integers of another size are converted.
InputRow whole_array(const fs::path& file, data::NpzArray array, const Field& input) {
  Shape row(array.type.shape.begin() + (array.type.shape.empty() ? 0 : 1), array.type.shape.end());
  const auto refuse = [&](const std::string& what) {
    throw Error(file.string() + ": the array " + in_quotes(array.name) + " is " + to_string(array.type) +
                    "; the model takes rows of " + to_string(input.type) + what,
                ExitCode::usage);
  };
  if (array.type.shape.empty() || row != input.type.shape) refuse("");
  const bool wider = !takes_integers(input) && input.type.dtype == DType::f32 && array.type.dtype == DType::f64;
  if (array.type.dtype == input.type.dtype || wider)
    return {.image = {}, .values = std::move(array.values), .dtype = array.type.dtype};
  InputRow whole{.image = {}, .values = {}, .dtype = input.type.dtype};
  const auto count = static_cast<std::size_t>(array.type.elements());
  const auto convert = [&]<class From, class To>(From /*from*/, To /*to*/) {
    for (std::size_t i = 0; i < count; ++i) {
      From number;
      std::memcpy(&number, array.values.data() + i * sizeof(From), sizeof(From));
      if (std::cmp_less(number, std::numeric_limits<To>::min()) ||
          std::cmp_greater(number, std::numeric_limits<To>::max())) {
        refuse(", and one of its numbers is " + std::to_string(number));
      }
      append(whole.values, static_cast<To>(number));
    }
  };
  const auto is = [&](DType from, DType to) { return array.type.dtype == from && input.type.dtype == to; };
  if (is(DType::i64, DType::i32)) {
    convert(int64_t{}, int32_t{});
  } else if (is(DType::i32, DType::i64)) {
    convert(int32_t{}, int64_t{});
  } else {
    refuse("");
  }
  return whole;
}

std::vector<int64_t> labels_in(const data::NpzArray& array) {
  std::vector<int64_t> labels;
  const std::size_t size = size_of(array.type.dtype);
  if (array.type.dtype != DType::i32 && array.type.dtype != DType::i64 && array.type.dtype != DType::u8) return labels;
  for (std::size_t at = 0; at + size <= array.values.size(); at += size) {
    int64_t label = 0;
    std::memcpy(&label, array.values.data() + at, size);
    labels.push_back(size == sizeof(int32_t) ? static_cast<int32_t>(label) : label);
  }
  return labels;
}

}  // namespace

std::vector<FileSample> samples_in_table(const fs::path& file, const ModelInfo& info, const DataConfig& data) {
  return InputTable(file, info, data).read();
}

std::vector<FileSample> samples_in_npz(const fs::path& file, const ModelInfo& info) {
  std::map<std::string, data::NpzArray> arrays;
  for (data::NpzArray& array : data::read_npz(file)) {
    std::string name = array.name;
    arrays.insert_or_assign(std::move(name), std::move(array));
  }
  std::vector<int64_t> labels;
  if (const auto found = arrays.find(info.fields.target().name); found != arrays.end()) {
    labels = labels_in(found->second);
    arrays.erase(found);
  }
  std::vector<std::string> found_names;
  for (const auto& [name, array] : arrays) found_names.push_back(name);
  const std::vector<const Field*> inputs = info.fields.of(Role::input);
  std::vector<InputRow> wholes;
  int64_t rows = 0;
  for (const Field* input : inputs) {
    auto found = arrays.find(input->name);
    if (found == arrays.end() && inputs.size() == 1 && arrays.size() == 1) found = arrays.begin();
    if (found == arrays.end()) {
      throw Error(file.string() + ": no array is called " + in_quotes(input->name) + ", an input of the model" +
                      did_you_mean_or_list(input->name, found_names),
                  ExitCode::usage);
    }
    const int64_t these = found->second.type.shape.empty() ? 0 : found->second.type.shape.front();
    if (wholes.empty()) rows = these;
    if (these != rows) {
      throw Error(file.string() + ": the arrays have different numbers of rows: " + std::to_string(rows) + " and " +
                      std::to_string(these) + " of " + in_quotes(found->first),
                  ExitCode::usage);
    }
    wholes.push_back(whole_array(file, std::move(found->second), *input));
  }
  std::vector<FileSample> samples;
  for (int64_t row = 0; row < rows; ++row) {
    FileSample sample;
    sample.source = file.string() + " row " + std::to_string(row);
    for (const InputRow& whole : wholes) {
      const std::size_t bytes = whole.values.size() / static_cast<std::size_t>(rows);
      const auto first = whole.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes);
      sample.inputs.push_back(
          {.image = {}, .values = {first, first + static_cast<std::ptrdiff_t>(bytes)}, .dtype = whole.dtype});
    }
    if (labels.size() == static_cast<std::size_t>(rows)) sample.label = labels[static_cast<std::size_t>(row)];
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace gpunn::inference
