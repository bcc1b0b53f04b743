#include "data/folders/image_list.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
#include <system_error>

#include "data/pack/files.hpp"
#include "fields/kind.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostMissingNamed = 5;

struct Missing {
  int64_t line = 0;
  std::string name;
};

[[noreturn]] void refuse_missing(const fs::path& table, const fs::path& folder, std::size_t rows,
                                 const std::vector<Missing>& missing) {
  std::string text = table.string() + ":" + std::to_string(missing.front().line) + ": " +
                     std::to_string(missing.size()) + " of the " + std::to_string(rows) + " images listed are not in " +
                     folder.string() + ":";
  for (std::size_t i = 0; i < std::min(missing.size(), kMostMissingNamed); ++i) {
    text += (i > 0 ? ", " : " ") + fields::shown(missing[i].name) + " (line " + std::to_string(missing[i].line) + ")";
  }
  if (missing.size() > kMostMissingNamed) text += ", ...";
  throw Error(text + "; names are relative to data.path. Put the files there or leave their lines out",
              ExitCode::missing);
}

std::vector<std::size_t> input_columns_of(const Table& table, const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) {
    columns.push_back(table.find(name, "data.input_columns"));
    if (columns.back() == 0) {
      table.fail("the column " + table.column(0) + " names the images; it can't be one of data.input_columns");
    }
  }
  return columns;
}

}  // namespace

ImageList read_image_list(const fs::path& table_file, const fs::path& folder, const ImageFolderSet& form,
                          TargetChoice choice) {
  Table table(table_file, form.header, form.delimiter);
  const std::vector<std::size_t> inputs = input_columns_of(table, form.input_columns);
  choice.others = {0};
  choice.others.insert(choice.others.end(), inputs.begin(), inputs.end());
  ImageList list{.columns = table.columns(),
                 .files = {},
                 .targets = target_columns_of(table, choice),
                 .inputs = inputs.empty()
                               ? nullptr
                               : fields::find("numbers").cells(table, {.columns = inputs, .key = "data.input_columns"}),
                 .weights = weight_column_of(table, choice)};
  std::map<fs::path, int64_t> lines;
  std::vector<Missing> missing;
  for (std::vector<std::string> fields; table.next(fields);) {
    const std::string& name = fields.front();
    if (name.empty()) table.fail("the first column, " + table.column(0) + ", names an image; it is empty");
    const fs::path file = (folder / name).lexically_normal();
    const auto [other, is_new] = lines.emplace(file, table.line());
    if (!is_new)
      table.fail("the image " + fields::shown(name) + " is in line " + std::to_string(other->second) + ", too");
    if (!files::is_file(file)) missing.push_back({table.line(), name});
    list.files.push_back(file);
    list.targets->add(table, fields);
    if (list.inputs != nullptr) list.inputs->add(table, fields);
    if (list.weights != nullptr) list.weights->add(table, fields);
  }
  if (list.files.empty()) throw Error(table_file.string() + ": the table has no rows behind its header");
  if (!missing.empty()) refuse_missing(table_file, folder, list.files.size(), missing);
  return list;
}

}  // namespace gpunn::data
