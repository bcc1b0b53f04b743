// The images that super-resolution is usually trained and measured on, and the user's own.
#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"
#include "config/key_builders.hpp"
#include "data/folders/folder_parts.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/photographs/image_pairs.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

// Each a folder of images.
const std::vector<std::string> kTrainSets = {"t91", "bsds200"};
const std::vector<std::string> kTestSets = {"set5", "set14"};

std::string why_not_in(const fs::path& folder) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::vector<std::string>* sets : {&kTrainSets, &kTestSets}) {
    const auto here = [&](const std::string& name) { return fs::is_directory(folder / name, ignored); };
    if (std::ranges::none_of(*sets, here)) missing.push_back(join(*sets, " or "));
  }
  return missing.empty() ? "" : "no folder " + join(missing, ", no ");
}

Dataset read_photographs(const fs::path& folder, const DataConfig& config) {
  const auto settings = settings_for<PhotographSet>(config);
  std::vector<PhotographFolder> train;
  for (const std::string& name : settings.train_sets) train.push_back({.folder = folder / name});
  DamagedFiles damaged(config.damaged);
  const std::vector<ImagePair> test = read_pairs({.folder = folder / settings.test_set}, settings, false, damaged);
  Dataset set = photograph_dataset(train, test, config, damaged);
  set.name = "photographs";
  set.source = (folder / join(settings.train_sets, "+")).string() + " and " + settings.test_set;
  return set;
}

void check_published(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  check_photographs(config, given, found);
  const auto settings = settings_for<PhotographSet>(config);
  if (!given.sound("data.train_sets")) return;
  if (settings.train_sets.empty()) found.add(given.place("data.train_sets"), "data.train_sets: expected at least one");
  for (const std::string& name : settings.train_sets) {
    if (std::ranges::find(kTrainSets, name) != kTrainSets.end()) continue;
    found.add(given.place("data.train_sets"),
              "data.train_sets: expected any of " + join(kTrainSets, ", ") + ", found " + in_quotes(name));
  }
}

// The small images of a part lie beneath data.small_path as the images lie beneath data.path.
fs::path small_of_part(const fs::path& part, const fs::path& root, const PhotographSet& settings) {
  const fs::path below = part.lexically_relative(root);
  if (settings.small_path.empty() || below.empty() || *below.begin() == "..") return {};
  return below == "." ? settings.small_path : settings.small_path / below;
}

Dataset read_own_photographs(const DataConfig& config) {
  const auto settings = settings_for<PhotographSet>(config);
  const PartFolders parts = part_folders(config, Contents::images);
  if (parts.test.empty() && parts.validation.empty()) {
    throw Error(config.path.string() +
                    ": no images to evaluate on; put the parts into folders train and test there, or "
                    "set data.test_path",
                ExitCode::usage);
  }
  DamagedFiles damaged(config.damaged);
  const auto pairs_in = [&](const fs::path& folder, const fs::path& small) {
    if (folder.empty()) return std::vector<ImagePair>();
    return read_pairs({.folder = folder, .small = small}, settings, false, damaged);
  };
  const fs::path& test_small = settings.test_small_path;
  const std::vector<ImagePair> test =
      pairs_in(parts.test, test_small.empty() ? small_of_part(parts.test, parts.root, settings) : test_small);
  const std::vector<ImagePair> validation =
      pairs_in(parts.validation, small_of_part(parts.validation, parts.root, settings));
  Dataset set = photograph_dataset(
      {{.folder = parts.train, .small = small_of_part(parts.train, parts.root, settings), .apart = parts.apart}}, test,
      config, damaged);
  set.validation = split_of_pairs(validation);
  set.notes.insert(set.notes.end(), parts.notes.begin(), parts.notes.end());
  set.name = "photograph_folder";
  set.source = config.path.string();
  return set;
}

void check_own(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  check_photographs(config, given, found);
  const auto settings = settings_for<PhotographSet>(config);
  if (!settings.small_path.empty() && !settings.also_scaled.empty()) {
    found.add(given.place("data.also_scaled"),
              "data.also_scaled is for small images that are made by bicubic; with data.small_path leave it out");
  }
}

}  // namespace

DatasetRow photographs_row() {
  DatasetRow row;
  row.name = "photographs";
  row.description =
      "for task super_resolution: T91 and BSDS200 to train on, Set5 and Set14 to evaluate on; not downloaded, put the "
      "folders t91, bsds200, set5, set14 into one";
  row.folder_names = {"super_resolution", "photographs"};
  row.why_not_in = why_not_in;
  row.read = read_photographs;
  row.stand_in = "drawn_photographs";
  row.learnt = "image";
  row.keys = [] {
    using P = PhotographSet;
    return photograph_keys(
        {decode_key(),
         config::texts("train_sets", &P::train_sets, "The folders to train on: `t91`, `bsds200`, or both."),
         config::word("test_set", &P::test_set, kTestSets, "The folder to evaluate on.")});
  };
  row.check = check_published;
  return row;
}

DatasetRow photograph_folder_row() {
  DatasetRow row;
  row.name = "photograph_folder";
  row.description =
      "your own photographs of any sizes for task super_resolution: data.path to train on, data.test_path to evaluate "
      "on, or both in folders train and test of data.path";
  row.origin = Origin::user;
  row.make = read_own_photographs;
  row.learnt = "image";
  row.keys = [] {
    using P = PhotographSet;
    return photograph_keys(
        {decode_key(),
         config::optional(config::path("small_path", &P::small_path,
                                       "A folder of the small images, called as those of `path`. Default: they are "
                                       "made by bicubic.")),
         config::optional(config::path("test_small_path", &P::test_small_path, "The same of the test images."))});
  };
  row.check = check_own;
  return row;
}

}  // namespace gpunn::data
