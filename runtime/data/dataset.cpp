// The public face of the room: which set is asked for, where it comes from, how much of it.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>

#include "data/download/download.hpp"
#include "data/download/locate.hpp"
#include "data/registry.hpp"
#include "data/rows/arrays.hpp"
#include "data/rows/own_data.hpp"
#include "data/rows/room.hpp"
#include "data/rows/rows.hpp"
#include "data/statistics.hpp"
#include "fields/kind.hpp"

namespace gpunn {

namespace {

bool offline() {
  const char* value = std::getenv("GPUNN_OFFLINE");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

void keep_first(Split& split, int64_t limit, const char* key) {
  if (limit < 0) {
    throw Error(std::string("data.") + key + " is " + std::to_string(limit) + "; expected 0 (all) or more",
                ExitCode::usage);
  }
  if (limit == 0 || limit >= split.rows()) return;
  std::vector<int64_t> rows(static_cast<std::size_t>(limit));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  data::keep_rows(split, rows);
}

const data::DatasetRow& find_fallback(const DataConfig& config) {
  const data::DatasetRow& row = data::find_dataset(config.offline_fallback);
  if (row.origin != data::Origin::synthetic) {
    throw Error(
        "data.offline_fallback: '" + row.name + "' is itself a set in files; expected one that is made, as 'digits'",
        ExitCode::usage);
  }
  return row;
}

std::string where_it_is_not(const data::DatasetRow& row, const data::Search& search, const std::string& download) {
  return "data set '" + row.name + "' is not on this machine. Looked in:\n" + data::list_of(search) + "\n" + download +
         "\nDo one of these: " +
         (row.mirrors.empty() ? "" : "`gpunn data get " + row.name + "` where there is a network; ") +
         "set GPUNN_DATA_DIR to a folder that holds it or a subfolder '" + row.folder_names.front() + "'" +
         (row.stand_in.empty() ? ""
                               : "; or put `offline_fallback: " + row.stand_in +
                                     "` under `data:` in the experiment to train on a set that is drawn instead");
}

Dataset load_from_files(const data::DatasetRow& row, const DataConfig& config) {
  const data::Search search = data::locate(row, config.path);
  if (!search.found.empty()) return row.read(search.found, config);
  std::string download;
  if (row.mirrors.empty()) {
    download = "It can't be downloaded: no address is known.";
  } else if (offline()) {
    download = "Not downloaded: GPUNN_OFFLINE is set.";
  } else {
    std::filesystem::path folder;
    try {
      folder = download_dataset(row.name);
    } catch (const Error& error) {
      download = std::string("The download failed: ") + error.what();
    }
    if (!folder.empty()) return row.read(folder, config);
  }
  if (config.offline_fallback.empty()) throw Error(where_it_is_not(row, search, download), ExitCode::missing);
  Dataset set = find_fallback(config).make(config);
  set.fallback_of = row.name;
  return set;
}

const data::DatasetRow& find_checked(const DataConfig& config) {
  const data::DatasetRow& row = data::find_dataset(config.dataset);
  if (!config.offline_fallback.empty()) find_fallback(config);  // a wrong name is told even where it isn't needed
  return row;
}

Split blank_split(const TensorType& samples, const data::DatasetSizes& sizes) {
  Split split;
  split.samples = samples;
  data::make_room(split);
  const auto add = [&](const Field& field) {
    split.fields[field.name] = fields::kind_of(field).blank(field, split.rows());
  };
  add(sizes.target);
  for (const Field& input : sizes.inputs) add(input);
  return split;
}

// Samples that are all 0, in the sizes that the registry knows.
Dataset blank(const data::DatasetRow& row, const DataConfig& config) {
  const data::DatasetSizes sizes = row.sizes(config);
  const auto channels = static_cast<std::size_t>(sizes.train.shape[1]);
  Dataset set;
  set.name = row.name;
  set.source = "the registry";
  set.from_registry = row.origin == data::Origin::published;
  set.train = blank_split(sizes.train, sizes);
  set.test = blank_split(sizes.test, sizes);
  set.fields.target() = sizes.target;
  for (const Field& input : sizes.inputs) set.fields.fields.push_back(input);
  set.fields.input().mean.assign(channels, 0.0);
  set.fields.input().stddev.assign(channels, 1.0);
  return set;
}

// What the keys of `data` make of a set.
Dataset as_configured(Dataset set, const DataConfig& config) {
  data::take_validation_share(set, config);
  keep_first(set.train, config.train_limit, "train_limit");
  keep_first(set.test, config.test_limit, "test_limit");
  keep_first(set.validation, config.test_limit, "test_limit");
  if (set.fields.input().mean.empty() && config.mean.empty()) data::normalise_by_training_samples(set);
  data::normalise_further_inputs(set);
  if (!fields::kind_of(set.fields.target()).is_scaled()) return set;
  if (config.scale_targets) {
    data::measure_targets(set);
  } else {
    data::note_rounded_targets(set);
  }
  return set;
}

}  // namespace

Dataset load_dataset(const DataConfig& config) {
  const data::DatasetRow& row = find_checked(config);
  return as_configured(row.origin == data::Origin::published ? load_from_files(row, config) : row.make(config), config);
}

Dataset load_sizes(const DataConfig& config) {
  const data::DatasetRow& row = find_checked(config);
  if (!row.learnt.empty()) {  // whose sizes are those of the images
    if (row.origin != data::Origin::published) return as_configured(row.make(config), config);
    const data::Search search = data::locate(row, config.path);
    return as_configured(
        search.found.empty() ? data::find_dataset(row.stand_in).make(config) : row.read(search.found, config), config);
  }
  if (row.sizes == nullptr) return as_configured(row.make(config), config);
  if (row.origin == data::Origin::synthetic) return as_configured(blank(row, config), config);
  const data::Search search = data::locate(row, config.path);
  if (!search.found.empty()) return as_configured(row.read(search.found, config), config);
  return as_configured(blank(row, config), config);
}

Dataset prepare_arrays(Dataset dataset, const DataConfig& config) {
  data::require_arrays(dataset);
  if (dataset.batches != nullptr) {
    if (config.validation_fraction > 0) {
      throw Error(
          "data.validation_fraction takes samples of arrays; these are batches that come while training: give "
          "validation samples of their own",
          ExitCode::usage);
    }
    if (fields::kind_of(dataset.fields.target()).is_scaled() && config.scale_targets &&
        dataset.fields.target().mean.empty()) {
      dataset.notes.push_back("WARNING: " + dataset.source +
                              ": batches that come while training are not measured, so targets keep their units in "
                              "place of data.scale_targets: true. Scale them, or train on arrays first");
    }
    bool measured = true;
    for (Field& field : dataset.fields.fields) {
      const bool first = &field == &dataset.fields.input();
      if (field.role != Role::input || !field.mean.empty()) continue;
      if (!first && !fields::kind_of(field).is_normalised()) continue;
      const auto channels = static_cast<std::size_t>(first ? dataset.train.samples.shape[1] : field.type.shape.front());
      field.mean.assign(channels, 0.0);
      field.stddev.assign(channels, 1.0);
      measured = false;
    }
    if (!measured) {
      dataset.notes.push_back("WARNING: " + dataset.source +
                              ": batches that come while training are not measured, so samples keep their units. Give "
                              "their mean and standard deviation, or train on arrays first");
    }
    return dataset;
  }
  return as_configured(std::move(dataset), config);
}

std::vector<DatasetInfo> list_datasets() {
  std::vector<DatasetInfo> result;
  for (const data::DatasetRow& row : data::registry()) {
    if (row.origin == data::Origin::memory) continue;  // nothing that this machine could have
    DatasetInfo info;
    info.name = row.name;
    info.description = row.description;
    info.synthetic = row.origin == data::Origin::synthetic;
    info.users_own = row.origin == data::Origin::user;
    if (row.origin == data::Origin::published) {
      const data::Search search = data::locate(row, {});
      info.found = search.found;
      for (const data::LookedIn& place : search.places) info.searched.push_back(place.folder);
    }
    result.push_back(std::move(info));
  }
  return result;
}

std::filesystem::path download_dataset(const std::string& name) {
  const data::DatasetRow& row = data::find_dataset(name);
  if (row.origin != data::Origin::published) {
    throw Error("data set '" + name + "' is " +
                    (row.origin == data::Origin::synthetic ? "made by the program"
                     : row.origin == data::Origin::memory  ? "arrays in memory"
                                                           : "files of your own") +
                    ": there is nothing to download",
                ExitCode::usage);
  }
  if (row.mirrors.empty()) {
    throw Error("data set '" + name +
                    "' can't be downloaded: no address is known. Set GPUNN_DATA_DIR to a folder that "
                    "holds it",
                ExitCode::missing);
  }
  std::filesystem::path folder = data::cache_folder(row);
  if (folder.empty()) {
    throw Error("no folder to download '" + name + "' into: neither XDG_CACHE_HOME nor HOME is set", ExitCode::missing);
  }
  if (offline()) {
    throw Error("data set '" + name + "' is not downloaded: GPUNN_OFFLINE is set", ExitCode::missing);
  }
  data::download_files({row.files, row.mirrors, folder, {}});
  return folder;
}

}  // namespace gpunn
