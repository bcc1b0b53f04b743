#include "data/rows/one_class.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "common/text.hpp"
#include "fields/kind.hpp"

namespace gpunn::data {

namespace {

std::string column_text(const TargetTable& table) {
  if (!table.target_columns.empty())
    return "the columns " + join(table.target_columns, ", ") + " (data.target_columns)";
  return (table.label_column.empty() ? "the last column" : "the column " + fields::shown(table.label_column)) +
         " (data.label_column)";
}

// Where the labels of the training rows are, and what to do about them.
struct PlaceOfLabels {
  std::string place, advice;
};

PlaceOfLabels place_of_labels(const Dataset& set, const DataConfig& config) {
  if (const auto* table = std::get_if<CsvSet>(&config.kind); table != nullptr && set.name == "csv") {
    return {set.source + ", " + column_text(*table), "Name the column of the classes, or add rows of another class"};
  }
  if (const auto* images = std::get_if<ImageFolderSet>(&config.kind); images != nullptr && set.name == "image_folder") {
    if (!images->targets.empty()) {
      return {images->targets.string() + ", " + column_text(*images),
              "Name the column of the classes, or add images of another class"};
    }
    return {set.source,
            "Put the images of each class into a folder of its own, next to each other, or set data.path "
            "to the folder that holds these folders"};
  }
  if (const auto* arrays = std::get_if<Hdf5Set>(&config.kind); arrays != nullptr && set.name == "hdf5") {
    return {set.source + ", the array " + in_quotes(arrays->train_labels) + " (data.train_labels)",
            "Name the array of the classes, or add rows of another class"};
  }
  if (set.name == kArrays) return {"the training labels", "Add rows of another class"};
  return {set.source, "Check the files with `gpunn data inspect`"};
}

}  // namespace

void require_several_classes(Dataset& set, const DataConfig& config) {
  const Field& target = set.fields.target();
  const auto values = set.train.fields.find(target.name);
  const std::optional<std::string> common =
      fields::kind_of(target).common_value(target, values == set.train.fields.end() ? FieldValues() : values->second);
  if (!common) return;
  const PlaceOfLabels labels_are = place_of_labels(set, config);
  const std::string limit =
      config.train_limit > 0 ? ", of which data.train_limit takes the first " + std::to_string(config.train_limit) : "";
  const std::string text = labels_are.place + limit + ": all " + std::to_string(set.train.rows()) +
                           " training rows have " + *common + "; a model learns nothing from rows that do not differ";
  if (set.name == kArrays && target.count() > 1) {
    set.notes.push_back("WARNING: " + text);
    return;
  }
  throw Error(text + ". " + labels_are.advice, ExitCode::usage);
}

}  // namespace gpunn::data
