// CIFAR-10 and CIFAR-100 (Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009): 50000 + 10000
// colour images of 32x32, in the layout of the binary archives, unpacked or not. A record is one label byte (CIFAR-100:
// the coarse label, then the fine one), then 1024 red, 1024 green and 1024 blue bytes. Fewer records than the published
// files have are read too.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <utility>

#include "common/input_file.hpp"
#include "common/text.hpp"
#include "data/download/tar.hpp"
#include "data/published/cifar_names.hpp"
#include "data/registry.hpp"
#include "data/rows/room.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kPixelBytes = 3 * kSide * kSide;
constexpr int64_t kRecordsAtATime = 1000;
constexpr uint64_t kMostBatchBytes = uint64_t{256} << 20;  // the largest published one, train.bin, has 147 MiB
constexpr int64_t kCifarTestRows = 10000;
constexpr int64_t kCifarTrainRows = 50000;

const std::vector<std::string> kCifar10Train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                "data_batch_4.bin", "data_batch_5.bin"};
const std::vector<std::string> kCifar10Test = {"test_batch.bin"};
const std::vector<std::string> kCifar100Train = {"train.bin"};
const std::vector<std::string> kCifar100Test = {"test.bin"};

// A record's labels.
struct Labels {
  int64_t bytes = 1;   // that a record begins with
  int64_t chosen = 0;  // the one of them that is read
  int32_t classes = 10;
};

// What a batch file holds, wherever it lies.
struct Batch {
  std::string file;  // for errors
  uint64_t bytes = 0;
  std::function<std::size_t(std::span<std::byte>)> read;
};

Split read_batch(const Batch& batch, const Labels& labels) {
  const int64_t record = labels.bytes + kPixelBytes;
  if (batch.bytes > kMostBatchBytes) {
    throw Error(batch.file + ": expected a CIFAR batch of at most " + human_bytes(kMostBatchBytes) + ", found " +
                human_bytes(batch.bytes));
  }
  const auto bytes = static_cast<int64_t>(batch.bytes);
  if (bytes == 0 || bytes % record != 0) {
    throw Error(batch.file + ": expected a whole number of records of " + std::to_string(record) + " bytes (" +
                std::to_string(labels.bytes) + " of labels, 3x32x32 of pixels), found " + std::to_string(bytes) +
                " bytes: " + std::to_string(bytes / record) + " records and " + std::to_string(bytes % record) +
                " bytes. It is truncated or no CIFAR batch; fetch it again");
  }
  const int64_t rows = bytes / record;
  Split split;
  split.samples = {DType::u8, {rows, 3, kSide, kSide}};
  make_room(split);
  std::vector<int32_t> classes;
  classes.reserve(static_cast<std::size_t>(rows));
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(rows, kRecordsAtATime) * record));
  for (int64_t row = 0; row < rows;) {
    const int64_t count = std::min(kRecordsAtATime, rows - row);
    const std::span<std::byte> part = std::span(block).first(static_cast<std::size_t>(count * record));
    if (batch.read(part) < part.size()) throw Error(batch.file + ": it became shorter while it was read");
    for (int64_t i = 0; i < count; ++i, ++row) {
      const std::byte* at = block.data() + i * record;
      const int32_t label = std::to_integer<int32_t>(at[labels.chosen]);
      if (label >= labels.classes) {
        throw Error(batch.file + ": the label of record " + std::to_string(row) + " is " + std::to_string(label) +
                    "; expected 0 to " + std::to_string(labels.classes - 1) + ". It is damaged or no CIFAR-" +
                    (labels.bytes == 1 ? "10" : "100") + " batch");
      }
      classes.push_back(label);
      std::memcpy(split.values.data() + row * kPixelBytes, at + labels.bytes, kPixelBytes);
    }
  }
  split.fields[kLabelField] = fields::class_values(classes);
  return split;
}

Split joined(std::vector<Split> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Split all;
  int64_t rows = 0;
  for (const Split& part : parts) rows += part.rows();
  all.samples = {DType::u8, {rows, 3, kSide, kSide}};
  all.values.reserve(all.samples.bytes());
  std::vector<int32_t> classes;
  for (Split& part : parts) {
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
    const std::vector<int32_t> of_part = labels_of(part);
    classes.insert(classes.end(), of_part.begin(), of_part.end());
    part = {};
  }
  all.fields[kLabelField] = fields::class_values(classes);
  return all;
}

// The batches of a set, by the names of their files.
using Batches = std::map<std::string, Split>;

Batches read_folder(const fs::path& folder, const std::vector<std::string>& names, const Labels& labels) {
  Batches batches;
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    UnpackingReader reader(file, UnpackingReader::Mode::as_it_is);
    batches[name] = read_batch(
        {file.string(), reader.file_bytes(), [&](std::span<std::byte> out) { return reader.read(out); }}, labels);
  }
  return batches;
}

Batches read_archive(const fs::path& archive, const std::vector<std::string>& names, const Labels& labels) {
  Batches batches;
  TarReader tar(archive);
  while (const std::optional<TarEntry> entry = tar.next()) {
    const std::string name = fs::path(entry->name).filename().string();
    if (std::find(names.begin(), names.end(), name) == names.end() || batches.contains(name)) continue;
    batches[name] = read_batch(
        {archive.string() + ":" + entry->name, entry->bytes, [&](std::span<std::byte> out) { return tar.read(out); }},
        labels);
  }
  for (const std::string& name : names) {
    if (!batches.contains(name)) throw Error(archive.string() + ": the archive has no " + name + ". Fetch it again");
  }
  return batches;
}

// The batches of a part in their order. The published ones are of one size, so one that is shorter lost its end.
Split take(Batches& batches, const std::vector<std::string>& names, const std::string& where) {
  std::vector<Split> parts;
  for (const std::string& name : names) {
    parts.push_back(std::move(batches.at(name)));
    if (parts.back().rows() != parts.front().rows()) {
      throw Error(where + ": " + names.front() + " holds " + std::to_string(parts.front().rows()) + " images and " +
                  name + " " + std::to_string(parts.back().rows()) +
                  "; they must agree. One is truncated; fetch it again");
    }
  }
  return joined(std::move(parts));
}

// The files of one of the two sets.
struct Files {
  const char* archive;
  const std::vector<std::string>& train;
  const std::vector<std::string>& test;

  std::vector<std::string> all() const {
    std::vector<std::string> names = train;
    names.insert(names.end(), test.begin(), test.end());
    return names;
  }
};

const Files kCifar10 = {"cifar-10-binary.tar.gz", kCifar10Train, kCifar10Test};
const Files kCifar100 = {"cifar-100-binary.tar.gz", kCifar100Train, kCifar100Test};

std::string first_missing(const fs::path& folder, const Files& files) {
  for (const std::string& name : files.all()) {
    if (!is_file(folder / name)) return name;
  }
  return {};
}

std::string why_not_in(const fs::path& folder, const Files& files) {
  if (!is_folder(folder)) return "no such folder";
  const std::string missing = first_missing(folder, files);
  if (missing.empty() || is_file(folder / files.archive)) return {};
  return "has no " + missing + " and no " + files.archive;
}

Dataset read_set(const fs::path& folder, const Files& files, const Labels& labels) {
  Dataset set;
  const bool unpacked = first_missing(folder, files).empty();
  const fs::path source = unpacked ? folder : folder / files.archive;
  Batches batches = unpacked ? read_folder(source, files.all(), labels) : read_archive(source, files.all(), labels);
  set.source = source.string();
  set.train = take(batches, files.train, set.source);
  set.test = take(batches, files.test, set.source);
  if (set.train.rows() != kCifarTrainRows || set.test.rows() != kCifarTestRows) {
    set.notes.push_back(set.source + " holds " + std::to_string(set.train.rows()) + " training and " +
                        std::to_string(set.test.rows()) + " test images; the published set has 50000 and 10000");
  }
  return set;
}

Dataset read_cifar10(const fs::path& folder, const DataConfig& /*config*/) {
  Dataset set = read_set(folder, kCifar10, {.bytes = 1, .chosen = 0, .classes = 10});
  set.name = "cifar10";
  set.fields.target() = fields::target_field("class", cifar10_classes());
  set.fields.input().mean = {0.4914, 0.4822, 0.4465};
  set.fields.input().stddev = {0.2470, 0.2435, 0.2616};
  return set;
}

Dataset read_cifar100(const fs::path& folder, const DataConfig& config) {
  const bool fine = settings_for<Cifar100Set>(config).label_mode == LabelMode::fine;
  Dataset set = read_set(folder, kCifar100, {.bytes = 2, .chosen = fine ? 1 : 0, .classes = fine ? 100 : 20});
  set.name = "cifar100";
  set.fields.target() = fields::target_field("class", fine ? cifar100_classes() : cifar100_superclasses());
  set.fields.input().mean = {0.5071, 0.4865, 0.4409};
  set.fields.input().stddev = {0.2673, 0.2564, 0.2762};
  return set;
}

DatasetSizes published_cifar_sizes(int64_t classes) {
  return {.train = {DType::u8, {kCifarTrainRows, 3, kSide, kSide}},
          .test = {DType::u8, {kCifarTestRows, 3, kSide, kSide}},
          .target = fields::target_field("class", fields::numbered(classes))};
}

}  // namespace

DatasetRow cifar10_row() {
  DatasetRow row;
  row.name = "cifar10";
  row.description = "photographs of things and animals, 50000 train and 10000 test colour images of 32x32, 10 classes";
  row.folder_names = {"cifar-10-batches-bin", "cifar10", "cifar10/cifar-10-batches-bin"};
  row.mirrors = {"https://www.cs.toronto.edu/~kriz/"};
  row.files = {{kCifar10.archive, 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                RemoteFile::Digest::of_file}};
  row.why_not_in = [](const fs::path& folder) { return why_not_in(folder, kCifar10); };
  row.read = read_cifar10;
  row.sizes = [](const DataConfig&) { return published_cifar_sizes(10); };
  return row;
}

DatasetRow cifar100_row() {
  DatasetRow row;
  row.name = "cifar100";
  row.description = "as cifar10, 100 classes in 20 superclasses (data.label_mode: fine or coarse)";
  row.folder_names = {"cifar-100-binary", "cifar100", "cifar100/cifar-100-binary"};
  row.mirrors = {"https://www.cs.toronto.edu/~kriz/"};
  row.files = {{kCifar100.archive, 168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                RemoteFile::Digest::of_file}};
  row.why_not_in = [](const fs::path& folder) { return why_not_in(folder, kCifar100); };
  row.read = read_cifar100;
  row.sizes = [](const DataConfig& config) {
    return published_cifar_sizes(settings_for<Cifar100Set>(config).label_mode == LabelMode::fine ? 100 : 20);
  };
  row.keys = [] {
    return keys_of_set<Cifar100Set>(
        config::choice("label_mode", &Cifar100Set::label_mode, {"fine", "coarse"}, "100 classes, or 20 superclasses."));
  };
  return row;
}

}  // namespace gpunn::data
