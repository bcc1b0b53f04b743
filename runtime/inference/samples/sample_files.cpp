#include "inference/samples/sample_files.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <glob.h>

#include "common/input_file.hpp"
#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/registry.hpp"
#include "data/tables/csv.hpp"
#include "fields/cells.hpp"
#include "inference/samples/input_files.hpp"

namespace gpunn::inference {

namespace fs = std::filesystem;

namespace {

bool has_ending(const fs::path& file, std::initializer_list<std::string_view> endings) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::ranges::find(endings, ending) != endings.end();
}

// What a pattern matches, sorted; empty: nothing.
std::vector<fs::path> matches_of(const fs::path& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<fs::path> paths(found.gl_pathv, found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  return paths;
}

// The lines of a table as rows of features.
class FeatureTable {
 public:
  FeatureTable(const fs::path& file, const ModelInfo& info, const DataConfig& data)
      : file_(file),
        info_(info),
        table_(data::settings_for<CsvSet>(data)),
        reader_(file, data::delimiter_of(table_.delimiter)) {
    if (info.fields.input().type.shape.size() != 1 || info.fields.input().type.dtype != DType::f32) {
      throw Error(file.string() + ": the model takes " + to_string(info.fields.input().type) +
                      ", not rows of a table; give it images",
                  ExitCode::usage);
    }
  }

  std::vector<FileSample> read() {
    std::vector<FileSample> samples;
    std::vector<std::string> fields;
    if (!reader_.next(fields)) throw Error(file_.string() + ": the file has no lines; expected a CSV table");
    width_ = fields.size();
    const bool header = is_header(fields);
    if (header && !info_.fields.input().names.empty()) {
      find_by_name(fields);
    } else {
      find_by_place();
    }
    bool more = true;
    if (header) more = reader_.next(fields);
    for (; more; more = reader_.next(fields)) samples.push_back(sample_of(fields));
    if (samples.empty()) throw Error(file_.string() + ": the table has no rows behind its header");
    return samples;
  }

 private:
  std::size_t features() const { return static_cast<std::size_t>(info_.fields.input().type.shape.front()); }

  bool fits_by_place() const { return width_ == features() || width_ == features() + 1; }

  // A label may be a word, so that it does not tell names from a first row; neither do names that are numbers.
  bool is_header(const std::vector<std::string>& fields) {
    const auto is_number = [](const std::string& field) { return fields::number_of(field).has_value(); };
    const std::vector<std::string>& columns = info_.fields.input().names;
    const auto is_there = [&](const auto& column) { return std::ranges::find(fields, column) != fields.end(); };
    if (!columns.empty() && std::ranges::all_of(columns, is_there)) return true;
    if (!fits_by_place()) return !std::ranges::all_of(fields, is_number);
    find_by_place();
    return !std::ranges::all_of(places_, [&](std::size_t place) { return is_number(fields[place]); });
  }

  // Of columns with the same name the first of the model's is the first of the table's, and so on.
  void find_by_name(const std::vector<std::string>& names) {
    places_.clear();
    label_.reset();
    std::vector<std::string> missing;
    const std::vector<std::string>& columns = info_.fields.input().names;
    for (auto wanted = columns.begin(); wanted != columns.end(); ++wanted) {
      if (std::ranges::count(names, *wanted) > std::ranges::count(columns, *wanted)) {
        reader_.fail("the column " + in_quotes(*wanted) + " is there " +
                     std::to_string(std::ranges::count(names, *wanted)) + " times; the model knows " +
                     std::to_string(std::ranges::count(columns, *wanted)) + "; rename the others");
      }
      auto found = std::ranges::find(names, *wanted);
      for (auto again = std::count(columns.begin(), wanted, *wanted); again > 0 && found != names.end(); --again) {
        found = std::find(found + 1, names.end(), *wanted);
      }
      if (found == names.end()) missing.push_back(in_quotes(*wanted));
      places_.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    if (!missing.empty()) {
      reader_.fail("the model's columns " + join(missing, ", ") + " are missing; the table has " + join(names, ", "));
    }
    const auto label = std::ranges::find(names, table_.label_column);
    if (label != names.end()) {
      label_ = static_cast<std::size_t>(label - names.begin());
    } else if (table_.label_column.empty() && width_ == features() + 1 &&
               std::ranges::find(places_, width_ - 1) == places_.end()) {
      label_ = width_ - 1;
    }
  }

  // The features alone, or one column more, which is that of the labels.
  void find_by_place() {
    places_.clear();
    label_.reset();
    if (!fits_by_place()) {
      reader_.fail("the model takes " + std::to_string(features()) + " columns of numbers, found " +
                   std::to_string(width_) + " columns; if they are not separated by a '" +
                   std::string(1, data::delimiter_of(table_.delimiter)) + "', say so with --set data.delimiter=...");
    }
    if (width_ == features() + 1) {
      label_ = width_ - 1;
      const std::optional<std::size_t> number = parse_number<std::size_t>(table_.label_column);
      if (number && *number < width_) label_ = *number;
    }
    for (std::size_t i = 0; i < width_; ++i) {
      if (label_ != i) places_.push_back(i);
    }
  }

  FileSample sample_of(const std::vector<std::string>& fields) const {
    if (fields.size() != width_) {
      reader_.fail("expected " + std::to_string(width_) + " fields as in the first line, found " +
                   std::to_string(fields.size()));
    }
    FileSample sample;
    InputRow& row = sample.inputs.emplace_back();
    row.dtype = DType::f64;
    sample.source = file_.string() + ":" + std::to_string(reader_.line());
    for (const std::size_t place : places_) {
      const std::optional<double> value = fields::number_of(fields[place]);
      if (!value) {
        reader_.fail("column " + std::to_string(place) + ": expected a number, found " +
                     (fields[place].empty() ? "nothing" : in_quotes(fields[place])));
      }
      const auto bytes = std::as_bytes(std::span(&*value, 1));
      row.values.insert(row.values.end(), bytes.begin(), bytes.end());
    }
    if (label_) {
      const auto found = std::ranges::find(info_.fields.target().names, fields[*label_]);
      if (found != info_.fields.target().names.end()) sample.label = found - info_.fields.target().names.begin();
    }
    return sample;
  }

  fs::path file_;
  const ModelInfo& info_;
  CsvSet table_;
  data::CsvReader reader_;
  std::size_t width_ = 0;
  std::vector<std::size_t> places_;  // of the model's features, in its order
  std::optional<std::size_t> label_;
};

class Finder {
 public:
  Finder(const ModelInfo& info, const DataConfig& data) : info_(info), data_(data) {}

  void add(const fs::path& input) {
    if (is_folder(input)) {
      const std::vector<fs::path> images = data::images_beneath(input);
      if (images.empty()) {
        throw Error(input.string() + ": the folder has no images (.png, .jpg, .jpeg, .pgm, .ppm, .pnm)",
                    ExitCode::missing);
      }
      for (const fs::path& image : images) add_file(image);
    } else if (path_exists(input) || input.native().find_first_of("*?[") == std::string::npos) {
      add_file(input);  // which says so where it is not there
    } else {
      const std::vector<fs::path> matches = matches_of(input);
      if (matches.empty()) throw Error("no file matches " + in_quotes(input.string()), ExitCode::missing);
      for (const fs::path& match : matches) add(match);
    }
  }

  std::vector<FileSample> samples() { return std::move(samples_); }

 private:
  void add_file(const fs::path& file) {
    const std::vector<const Field*> inputs = info_.fields.of(Role::input);
    if (has_ending(file, {".csv", ".tsv"})) {
      return add_all(inputs.size() > 1 ? samples_in_table(file, info_, data_)
                                       : FeatureTable(file, info_, data_).read());
    }
    if (inputs.size() > 1) {
      std::vector<std::string> names;
      for (const Field* input : inputs) names.push_back(input->name);
      throw Error(file.string() + ": the model takes the inputs " + join(names, ", ") +
                      "; give it a CSV file whose columns have them, or --row for a row of its test set",
                  ExitCode::usage);
    }
    if (info_.fields.input().type.shape.size() != 3 || info_.fields.input().type.dtype != DType::u8) {
      throw Error(file.string() + ": the model takes rows of " + to_string(info_.fields.input().type) +
                      ", not images; give it a CSV file, or use --row for a row of its test set",
                  ExitCode::usage);
    }
    samples_.push_back({.source = file.string(), .inputs = {{.image = file}}});
  }

  void add_all(std::vector<FileSample> samples) {
    for (FileSample& sample : samples) samples_.push_back(std::move(sample));
  }

  const ModelInfo& info_;
  const DataConfig& data_;
  std::vector<FileSample> samples_;
};

}  // namespace

std::vector<FileSample> samples_in(const std::vector<fs::path>& inputs, const ModelInfo& info, const DataConfig& data) {
  Finder finder(info, data);
  for (const fs::path& input : inputs) finder.add(input);
  return finder.samples();
}

}  // namespace gpunn::inference
