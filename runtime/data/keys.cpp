#include "data/keys.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "common/text.hpp"
#include "config/key_builders.hpp"
#include "config/kinds.hpp"
#include "data/registry.hpp"
#include "fields/kind.hpp"

namespace gpunn::data {

namespace {

using D = DataConfig;

constexpr double kMostSamples = 2147483647;  // an index of a sample is an i32
constexpr double kLargestBatch = 1 << 20;
const std::vector<std::string> kOwnImages = {"image_folder", "photograph_folder", "detection_folder",
                                             "segmentation_folder"};
const std::vector<std::string> kImageFiles = {"image_folder", "photographs", "photograph_folder", "detection_folder",
                                              "segmentation_folder"};

// The keys that data sets have of their own, and what chooses each set by its name.
std::vector<config::KindOf<D>> registered_kinds() {
  std::vector<config::KindOf<D>> kinds;
  for (const DatasetRow& row : registry()) {
    config::KindOf<D> kind = row.keys ? row.keys() : config::make_kind<NamedSet, D>({});
    kind.name = row.name;
    kind.select = [name = row.name, select = kind.select](D& config) {
      config.dataset = name;
      select(config);
    };
    kind.selected = [name = row.name](const D& config) { return config.dataset == name; };
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::vector<std::string> names_of(Origin origin) {
  std::vector<std::string> names;
  for (const DatasetRow& row : registry()) {
    if (row.origin == origin) names.push_back(row.name);
  }
  return names;
}

}  // namespace

std::vector<config::KeyOf<DataConfig>> data_keys() {
  using namespace config;
  const std::vector<KindOf<D>> kinds = registered_kinds();
  const std::vector<std::string> own = names_of(Origin::user);
  std::vector<std::string> of_user = own;
  std::ranges::move(names_of(Origin::memory), std::back_inserter(of_user));
  std::vector<KeyOf<D>> keys = {
      required(kind_key("dataset", kinds, "The data set.")),
      optional(path("path", &D::path, "A folder to search first; for your own data, the folder or file itself.")),
      only(own, optional(path("test_path", &D::test_path, "The folder or file of the test samples."))),
      only(kOwnImages, optional(text("train_folder", &D::train_folder,
                                     "The folder below `path` that is the training part; `.` is `path` itself. "
                                     "Default: the parts are recognised by the names of their folders."))),
      only(kOwnImages,
           optional(text("validation_folder", &D::validation_folder, "Like `train_folder`, for the validation part."))),
      only(kOwnImages, optional(text("test_folder", &D::test_folder, "Like `train_folder`, for the test part."))),
      only(kImageFiles, choice("damaged", &D::damaged, {"error", "skip", "repair"},
                               "What becomes of damaged images. `error`: all of them are named, and the run does not "
                               "start; `skip`: they are left out; `repair`: the pixels that can be read are used.")),
  };
  for (KeyOf<D>& key : keys_of_kinds(kinds)) keys.push_back(std::move(key));
  for (KeyOf<D>& key : std::vector{
           only(of_user, boolean("scale_targets", &D::scale_targets,
                                 "Learn numbers as (target - mean) / standard deviation of the training rows; "
                                 "evaluations and predictions use the data's own units.")),
           only(own, number("test_fraction", &D::test_fraction, from_to_below(0, 1),
                            "The share of the samples that becomes the test part, if there is none.")),
           number("validation_fraction", &D::validation_fraction, from_to_below(0, 1),
                  "The share of the training samples that is put aside and evaluated while training; the test samples "
                  "are then left to `gpunn eval`."),
           boolean("stratify", &D::stratify, "Both fractions take the same share of each class."),
           optional(word("offline_fallback", &D::offline_fallback, names_of(Origin::synthetic),
                         "The synthetic set to train on if the data set is not available; a warning says so.")),
           integer("batch_size", &D::batch_size, between(1, kLargestBatch), "Samples in a training step."),
           integer("eval_batch_size", &D::eval_batch_size, between(0, kLargestBatch),
                   "Samples in a batch of the evaluation; 0: `batch_size`."),
           boolean("shuffle", &D::shuffle, "Draw a new order of the training samples for each epoch."),
           boolean("drop_last", &D::drop_last, "Skip the last training batch if it is not full."),
           optional(numbers("mean", &D::mean, {},
                            "Subtracted from the pixels of each channel, scaled to [0, 1]. Default: the data "
                            "set's own mean.")),
           optional(numbers("stddev", &D::stddev, above(0),
                            "Divides the pixels after the mean is subtracted, for each channel. Default: the data "
                            "set's own standard deviation.")),
           integer("train_limit", &D::train_limit, between(0, kMostSamples),
                   "Train on this many samples, the first ones; 0: on all."),
           integer("test_limit", &D::test_limit, between(0, kMostSamples),
                   "Evaluate on this many samples, the first ones; 0: on all."),
           integer("seed", &D::seed, at_least(0),
                   "Seed of the synthetic sets, and of which samples the fractions take."),
           integer("synthetic_train", &D::synthetic_train, between(0, kMostSamples),
                   "Training samples of a synthetic set; 0: the set's own number."),
           integer("synthetic_test", &D::synthetic_test, between(0, kMostSamples),
                   "Test samples of a synthetic set; 0: the set's own number."),
           choice("residency", &D::residency, {"auto", "device", "stream"},
                  "Place of the samples: all on the `device`, or on the host with a `stream` of batches to the device; "
                  "`auto`: see below.")}) {
    keys.push_back(std::move(key));
  }
  return keys;
}

void check_data(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  if (given.sound("data.mean") && given.sound("data.stddev") && config.mean.size() != config.stddev.size()) {
    found.add(given.place(config.mean.empty() ? "data.stddev" : "data.mean"),
              "data.mean and data.stddev go together, a number a channel each; found " +
                  std::to_string(config.mean.size()) + " and " + std::to_string(config.stddev.size()));
  }
  if (given.sound("data.batch_size") && config.train_limit > 0 && config.train_limit < config.batch_size) {
    found.add(given.place("data.train_limit"),
              "data.train_limit (" + std::to_string(config.train_limit) +
                  ") is less than one batch (data.batch_size: " + std::to_string(config.batch_size) + ")");
  }
  if (!config.scale_targets && given.sound("task") && !fields::find(config.learnt).is_scaled()) {
    found.add(given.place("data.scale_targets"),
              "data.scale_targets is not for the task " + config.task + "; it is for numbers, of the task regression");
  }
  if (!given.sound("data.dataset") || config.dataset.empty()) return;
  const DatasetRow& row = find_dataset(config.dataset);
  if (row.check != nullptr) row.check(config, given, found);
  if (row.origin != Origin::user) return;
  if (config.path.empty() && given.sound("data.path")) {
    found.add(given.place("data.dataset"), "data.dataset " + row.name + " needs data.path, where your data is");
  }
  if (!config.test_path.empty() && config.test_fraction > 0) {
    found.add(given.place("data.test_fraction"),
              "data.test_fraction and data.test_path are two ways to the test samples; give one");
  }
}

}  // namespace gpunn::data
