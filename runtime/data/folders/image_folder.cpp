// The user's own images, a folder for each class; folder_scan.hpp says how they lie. Samples u8 [rows, C, H, W].
#include <gpunn/error.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/text.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/folders/image_decoder.hpp"
#include "data/folders/image_list.hpp"
#include "data/images/sized_images.hpp"
#include "data/registry.hpp"
#include "data/rows/own_data.hpp"
#include "data/tables/table_keys.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRowInput = "row";  // the field of data.input_columns

// A folder for each class.
Dataset read_class_folders(const DataConfig& config, ImageDecoder& decoder) {
  FolderScan scan = scan_image_folder(part_folders(config, Contents::classes));
  Dataset set;
  set.fields.target() = fields::target_field("class", std::move(scan.classes));
  set.notes = std::move(scan.notes);
  const std::size_t all = scan.train.size() + scan.validation.size() + scan.test.size();
  std::vector<fs::path> train;
  std::ranges::transform(scan.train, std::back_inserter(train), &LabelledFile::file);
  decoder.choose(all, train, config, set.notes);
  const auto decode = [&](const std::vector<LabelledFile>& labelled, Split& split) {
    if (labelled.empty()) return;
    std::vector<fs::path> files;
    std::vector<int32_t> classes;
    for (const LabelledFile& one : labelled) {
      files.push_back(one.file);
      classes.push_back(one.label);
    }
    split.fields[kLabelField] = fields::class_values(classes);
    decoder.decode(files, split, set.notes);
  };
  decode(scan.train, set.train);
  decode(scan.validation, set.validation);
  decode(scan.test, set.test);
  return set;
}

// Images that a table names, with what is learnt of each.
Dataset read_listed_images(const DataConfig& config, const ImageFolderSet& settings, ImageDecoder& decoder) {
  Dataset set;
  const TargetChoice choice = target_choice(config, settings);
  const ImageList train = read_image_list(settings.targets, config.path, settings, choice);
  Field& target = set.fields.target() = fields::target_field(config.learnt, train.targets->names());
  const auto take_values = [&](const ImageList& list, Split& split) {
    split.fields[target.name] = list.targets->values(target.names);
    if (list.inputs != nullptr) split.fields[kRowInput] = list.inputs->values(list.inputs->names());
    if (list.weights != nullptr) split.fields[kWeightField] = list.weights->values(list.weights->names());
  };
  take_values(train, set.train);
  std::optional<ImageList> test;
  if (!settings.test_targets.empty()) {
    const fs::path& folder = config.test_path.empty() ? config.path : config.test_path;
    test = read_image_list(settings.test_targets, folder, settings, choice);
    require_same_columns(settings.test_targets, test->columns, settings.targets, train.columns);
    take_values(*test, set.test);
  }
  decoder.choose(train.files.size() + (test ? test->files.size() : 0), train.files, config, set.notes);
  decoder.decode(train.files, set.train, set.notes);
  if (test) decoder.decode(test->files, set.test, set.notes);
  if (train.weights != nullptr) set.fields.fields.push_back(weight_field());
  if (train.inputs != nullptr) {
    const std::vector<std::string> columns = settings.header ? train.inputs->names() : std::vector<std::string>();
    set.fields.fields.push_back({.name = kRowInput,
                                 .kind = "numbers",
                                 .type = {DType::f32, {std::ssize(settings.input_columns)}},
                                 .names = columns});
  }
  return set;
}

Dataset read_image_folder(const DataConfig& config) {
  const ImageFolderSet settings = settings_for<ImageFolderSet>(config);
  if (settings.targets.empty() && !fields::find(config.learnt).is_named_by_folders()) {
    throw Error("the task " + config.task + " with data.dataset image_folder needs data.targets: a CSV table whose " +
                    "first column names images beneath data.path and whose others are what is learnt",
                ExitCode::usage);
  }
  ImageDecoder decoder(settings, config.path, config.damaged);
  Dataset set =
      settings.targets.empty() ? read_class_folders(config, decoder) : read_listed_images(config, settings, decoder);
  set.name = "image_folder";
  set.source = config.path.string();
  set.fields.input().fit = {.crop = true, .shorter_side = settings.shorter_side};
  decoder.settle_damaged(set, set.notes);
  decoder.settle_channels({&set.train, &set.validation, &set.test}, set.notes);
  take_test_share(set, config);
  return set;
}

config::KindOf<DataConfig> image_folder_keys() {
  using namespace config;
  using F = ImageFolderSet;
  return with_sized_keys<F>(keys_of_table_set<F>(
      optional(path("targets", &F::targets,
                    "A CSV table in place of class folders: images beneath `path` in its first column, what is learnt "
                    "of them in others.")),
      optional(path("test_targets", &F::test_targets,
                    "The same of the test samples, beneath `test_path` where that is given.")),
      optional(texts("input_columns", &F::input_columns,
                     "Columns of numbers in `targets` that models take as the input `row`, besides the input `image`: "
                     "names, or numbers from 0. They are normalised by the training samples."))));
}

// The table of the targets, or that there is none.
void check_image_table(const DataConfig& config, const ImageFolderSet& settings, const config::GivenKeys& given,
                       config::Diagnostics& found) {
  if (!settings.targets.empty()) {
    check_target_table(config, settings, given, found);
    for (const auto& [key, folder] : {std::pair{"data.train_folder", &config.train_folder},
                                      {"data.validation_folder", &config.validation_folder},
                                      {"data.test_folder", &config.test_folder}}) {
      if (folder->empty()) continue;
      found.add(given.place(key), std::string(key) + " is for class folders; the table data.targets names the images");
    }
    if (!config.test_path.empty() && settings.test_targets.empty()) {
      found.add(given.place("data.test_path"),
                "data.test_path has no classes where data.targets is given; name the table of the test samples with "
                "data.test_targets");
    } else if (!settings.test_targets.empty() && config.test_fraction > 0) {
      found.add(given.place("data.test_fraction"),
                "data.test_fraction and data.test_targets are two ways to the test samples; give one");
    }
    return;
  }
  if (!given.sound("data.targets")) return;
  std::vector<std::string> unused = changed_keys(settings);
  if (!settings.test_targets.empty()) unused.emplace_back("data.test_targets");
  if (!settings.input_columns.empty()) unused.emplace_back("data.input_columns");
  for (const std::string& key : unused) {
    found.add(given.place(key), key + " is for the table data.targets; give that too");
  }
  if (!fields::find(config.learnt).is_named_by_folders()) {
    found.add(given.place("data.dataset"), "the task " + config.task +
                                               " with data.dataset image_folder needs data.targets: a CSV table of "
                                               "images and what is learnt of them");
  }
}

void check_image_folder(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const ImageFolderSet settings = settings_for<ImageFolderSet>(config);
  check_sized_images(settings, given, found);
  check_image_table(config, settings, given, found);
  if (config.whole_images && settings.image_size.empty() && given.sound("data.image_size")) {
    found.add(given.place("data.dataset"), "augmentation.resized_crop needs data.image_size, the size of samples");
  }
}

}  // namespace

DatasetRow image_folder_row() {
  DatasetRow row;
  row.name = "image_folder";
  row.description =
      "your own images (PNG, JPEG, PGM, PPM): data.path/CLASS/*, or data.path/train/CLASS/* and .../test/CLASS/*, or "
      "those that the table data.targets lists";
  row.origin = Origin::user;
  row.make = read_image_folder;
  row.keys = image_folder_keys;
  row.check = check_image_folder;
  return row;
}

}  // namespace gpunn::data
