// The images that super-resolution is usually trained and measured on, and the user's own.
#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"
#include "config/key_builders.hpp"
#include "data/folder_scan.hpp"
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
  std::vector<fs::path> train;
  for (const std::string& name : settings.train_sets) train.push_back(folder / name);
  Dataset set = photograph_dataset(train, {}, read_pairs(folder / settings.test_set, {}, settings, false), config);
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

Dataset read_own_photographs(const DataConfig& config) {
  const auto settings = settings_for<PhotographSet>(config);
  std::vector<ImagePair> test;
  if (!config.test_path.empty()) test = read_pairs(config.test_path, settings.test_small_path, settings, false);
  Dataset set = photograph_dataset({config.path}, settings.small_path, test, config);
  set.name = "photograph_folder";
  set.source = config.path.string();
  return set;
}

void check_own(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  check_photographs(config, given, found);
  const auto settings = settings_for<PhotographSet>(config);
  if (config.test_path.empty() && given.sound("data.test_path")) {
    found.add(given.place("data.dataset"),
              "data.dataset photograph_folder needs data.test_path, a folder of images to evaluate on");
  }
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
  row.learnt = TargetKind::image;
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
      "on";
  row.origin = Origin::user;
  row.make = read_own_photographs;
  row.learnt = TargetKind::image;
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
