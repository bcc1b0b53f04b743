// The user's own images, a folder for each class; folder_scan.hpp says how they lie. Samples u8 [rows, C, H, W].
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "data/folder_scan.hpp"
#include "data/image_list.hpp"
#include "data/image_rows.hpp"
#include "data/images/image.hpp"
#include "data/own_data.hpp"
#include "data/parallel.hpp"
#include "data/registry.hpp"
#include "data/room.hpp"
#include "data/table_keys.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kColours = 3;
constexpr double kLargestSide = 16384;
constexpr int64_t kRefusedSide = 0;     // what the key makes of a size that is no whole number
constexpr int64_t kFilesAtATime = 32;   // few enough for an even share of large images
constexpr uint64_t kShareOfMemory = 2;  // the other half is for what else this machine does

// How many of the images are something that their owner may not expect, and the first of them.
class Oddity {
 public:
  void count(std::size_t row) {
    const std::lock_guard lock(mutex_);
    ++count_;
    first_ = std::min(first_, row);
  }
  // "12 of 300 images: <what>; the first is FILE". Nothing where there is none.
  void tell(const std::string& what, const std::vector<fs::path>& files, std::vector<std::string>& notes) const {
    if (count_ == 0) return;
    notes.push_back(std::to_string(count_) + " of " + std::to_string(files.size()) + " images: " + what +
                    "; the first is " + files[first_].string());
  }

 private:
  std::mutex mutex_;
  std::size_t count_ = 0;
  std::size_t first_ = SIZE_MAX;
};

// Makes the samples of one part of a split, or what makes them when they are wanted. Where the number of channels is
// left open, every image gets room for three; where all turn out to be grey, the rows are moved together.
class Decoder {
 public:
  Decoder(const ImageFolderSet& settings, fs::path root) : settings_(settings), root_(std::move(root)) {
    form_ = {.channels = settings.channels, .shorter_side = settings.shorter_side};
    if (settings.image_size.empty()) return;
    form_.height = settings.image_size[0];
    form_.width = settings.image_size[1];
  }

  // `files` of all parts together decide whether they are decoded beforehand.
  void choose(std::size_t files, const fs::path& first, const DataConfig& config, std::vector<std::string>& notes) {
    if (form_.height == 0) take_size_of(first);
    const Shape sample{kColours, form_.height, form_.width};
    const uint64_t bytes = TensorType{DType::u8, sample}.bytes() * files;
    const uint64_t free = free_host_memory();
    each_epoch_ = settings_.decode == Decoding::each_epoch;
    if (settings_.decode == Decoding::automatic) {
      each_epoch_ = config.whole_images || (free > 0 && bytes > free / kShareOfMemory);
      if (each_epoch_ && !config.whole_images) {
        notes.push_back("decoded, the images would take " + human_bytes(bytes) + " of " + human_bytes(free) +
                        " of free memory: they are decoded anew each time they are wanted (data.decode)");
      }
    }
    if (each_epoch_ && form_.channels == 0) form_.channels = kColours;
  }

  void decode(const std::vector<fs::path>& files, Split& split, std::vector<std::string>& notes) {
    const int64_t rows = std::ssize(files);
    const int64_t channels = form_.channels == 0 ? kColours : form_.channels;
    split.samples = {DType::u8, {rows, channels, form_.height, form_.width}};
    if (each_epoch_) {
      split.source = std::make_shared<ImageRows>(files, form_);
      split.source_rows.resize(files.size());
      std::iota(split.source_rows.begin(), split.source_rows.end(), int64_t{0});
      return;
    }
    require_memory(split.samples.bytes(), "the images of " + root_.string(),
                   "set data.decode: each_epoch, or data.image_size to a smaller size");
    make_room(split);
    std::vector<uint8_t> grey(files.size());  // not bits, which threads would share
    Oddity deep, animated, turned;
    LongWork work("decoding the images of " + root_.filename().string(), files.size());
    for_row_stretches(rows, kFilesAtATime, [&](int64_t first, int64_t last) {
      for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row) {
        Image image = read_image_file(files[row]);
        if (image.from_16_bits) deep.count(row);
        if (image.first_frame) animated.count(row);
        if (image.turned) turned.count(row);
        image = sample_image(std::move(image), files[row], form_);
        grey[row] = image.channels == 1 ? 1 : 0;
        write_planes(image, split.values.data() + row * row_bytes(split));
        work.advance();
      }
    });
    deep.tell("16 bits a channel, scaled down to 8", files, notes);
    animated.tell("animated, of which the first picture is taken", files, notes);
    turned.tell("turned as the camera noted (EXIF)", files, notes);
    grey_.insert(grey_.end(), grey.begin(), grey.end());
  }

  // Once all parts are decoded: where the number of channels was left open, 1 if all images are grey, else 3.
  void settle_channels(std::initializer_list<Split*> splits, std::vector<std::string>& notes) const {
    if (form_.channels != 0) return;
    const auto count = std::count(grey_.begin(), grey_.end(), uint8_t{1});
    const bool all_grey = count == static_cast<std::ptrdiff_t>(grey_.size());
    std::size_t before = 0;
    for (Split* split : splits) {
      if (all_grey) {
        drop_colours(*split);
      } else {
        repeat_grey(*split, before);
      }
      before += static_cast<std::size_t>(split->rows());
    }
    if (count > 0 && !all_grey) {
      notes.push_back(
          std::to_string(count) + " of " + std::to_string(grey_.size()) +
          " images are grey among colour ones; all are read with 3 channels (data.channels: 1 makes all grey)");
    }
  }

 private:
  static std::size_t row_bytes(const Split& split) {
    const Shape& shape = split.samples.shape;
    return static_cast<std::size_t>(shape[1] * shape[2] * shape[3]);
  }

  void take_size_of(const fs::path& file) {
    const Image image = read_image_file(file);
    form_.height = image.height;
    form_.width = image.width;
    form_.scaled = false;
    form_.like = file;
  }

  static void drop_colours(Split& split) {
    if (split.rows() == 0) return;
    const std::size_t from = row_bytes(split);
    split.samples.shape[1] = 1;
    const std::size_t plane = row_bytes(split), rows = static_cast<std::size_t>(split.rows());
    for (std::size_t row = 1; row < rows; ++row) {
      std::memmove(split.values.data() + row * plane, split.values.data() + row * from, plane);
    }
    split.values.resize(rows * plane);
    split.values.shrink_to_fit();
  }

  void repeat_grey(Split& split, std::size_t before) const {
    for (std::size_t row = 0; row < static_cast<std::size_t>(split.rows()); ++row) {
      if (grey_[before + row] == 0) continue;
      const std::size_t plane = row_bytes(split) / kColours;
      std::byte* at = split.values.data() + row * row_bytes(split);
      for (std::size_t c = 1; c < kColours; ++c) std::memcpy(at + c * plane, at, plane);
    }
  }

  const ImageFolderSet& settings_;
  fs::path root_;
  SampleForm form_;
  bool each_epoch_ = false;    // decoded each time that one is wanted
  std::vector<uint8_t> grey_;  // of each row of the parts so far: the image has one channel
};

// A folder for each class.
Dataset read_class_folders(const DataConfig& config, Decoder& decoder) {
  FolderScan scan = scan_image_folder(config.path, config.test_path);
  Dataset set;
  set.classes = static_cast<int64_t>(scan.classes.size());
  set.class_names = std::move(scan.classes);
  set.notes = std::move(scan.notes);
  const std::size_t all = scan.train.size() + scan.validation.size() + scan.test.size();
  decoder.choose(all, scan.train.front().file, config, set.notes);
  const auto decode = [&](const std::vector<LabelledFile>& labelled, Split& split) {
    if (labelled.empty()) return;
    std::vector<fs::path> files;
    for (const LabelledFile& one : labelled) {
      files.push_back(one.file);
      split.labels.push_back(one.label);
    }
    decoder.decode(files, split, set.notes);
  };
  decode(scan.train, set.train);
  decode(scan.validation, set.validation);
  decode(scan.test, set.test);
  return set;
}

// Images that a table names, with what is learnt of each.
Dataset read_listed_images(const DataConfig& config, const ImageFolderSet& settings, Decoder& decoder) {
  Dataset set;
  const TargetChoice choice = target_choice(config, settings);
  const ImageList train = read_image_list(settings.targets, config.path, settings, choice);
  set.class_names = train.targets->names();
  set.classes = static_cast<int64_t>(set.class_names.size());
  train.targets->put_into(set.train, set.class_names);
  std::optional<ImageList> test;
  if (!settings.test_targets.empty()) {
    const fs::path& folder = config.test_path.empty() ? config.path : config.test_path;
    test = read_image_list(settings.test_targets, folder, settings, choice);
    require_same_columns(settings.test_targets, test->columns, settings.targets, train.columns);
    test->targets->put_into(set.test, set.class_names);
  }
  decoder.choose(train.files.size() + (test ? test->files.size() : 0), train.files.front(), config, set.notes);
  decoder.decode(train.files, set.train, set.notes);
  if (test) decoder.decode(test->files, set.test, set.notes);
  return set;
}

Dataset read_image_folder(const DataConfig& config) {
  const ImageFolderSet settings = settings_for<ImageFolderSet>(config);
  const TargetKind kind = target_kind(config);
  if (settings.targets.empty() && kind != TargetKind::one_class) {
    throw Error("the task " + config.task + " with data.dataset image_folder needs data.targets: a CSV table whose " +
                    "first column names images beneath data.path and whose others are what is learnt",
                ExitCode::usage);
  }
  Decoder decoder(settings, config.path);
  Dataset set =
      settings.targets.empty() ? read_class_folders(config, decoder) : read_listed_images(config, settings, decoder);
  set.targets = kind;
  set.name = "image_folder";
  set.source = config.path.string();
  set.fit = {.crop = true, .shorter_side = settings.shorter_side};
  decoder.settle_channels({&set.train, &set.validation, &set.test}, set.notes);
  take_test_share(set, config);
  return set;
}

config::KindOf<DataConfig> image_folder_keys() {
  using namespace config;
  using F = ImageFolderSet;
  return keys_of_table_set<F>(
      pixels("image_size", &F::image_size, between(1, kLargestSide), kRefusedSide,
             "Rows and columns, or one number for both, that images are scaled and cropped to. Default: the size that "
             "all have."),
      integer("shorter_side", &F::shorter_side, between(0, kLargestSide),
              "Pixels that the shorter side of images is scaled to before `image_size` is cut out of the middle; 0: as "
              "few as cover `image_size`."),
      integer("channels", &F::channels, between(0, 3),
              "1: grey, 3: colour; 0: as the images, colour where any of them is."),
      choice("decode", &F::decode, {"auto", "once", "each_epoch"},
             "When files become samples: all `once`, kept in memory, or `each_epoch` anew. `auto`: anew where "
             "`augmentation.resized_crop` cuts them or where they would take more than half of the free memory."),
      optional(path("targets", &F::targets,
                    "A CSV table in place of class folders: images beneath `path` in its first column, what is learnt "
                    "of them in others.")),
      optional(path("test_targets", &F::test_targets,
                    "The same of the test samples, beneath `test_path` where that is given.")));
}

void check_shorter_side(const ImageFolderSet& settings, const config::GivenKeys& given, config::Diagnostics& found) {
  if (!given.sound("data.image_size") || !given.sound("data.shorter_side") || settings.shorter_side == 0) return;
  const SourceLocation& place = given.place("data.shorter_side");
  if (settings.image_size.empty()) {
    found.add(place, "data.shorter_side needs data.image_size, which is cut out of the scaled image");
    return;
  }
  const int64_t least = std::ranges::max(settings.image_size);
  if (settings.shorter_side >= least) return;
  found.add(place, "data.shorter_side: expected at least " + std::to_string(least) +
                       ", the longer side of data.image_size, found " + std::to_string(settings.shorter_side));
}

// The table of the targets, or that there is none.
void check_image_table(const DataConfig& config, const ImageFolderSet& settings, const config::GivenKeys& given,
                       config::Diagnostics& found) {
  if (!settings.targets.empty()) {
    check_target_table(config, settings, given, found);
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
  for (const std::string& key : unused) {
    found.add(given.place(key), key + " is for the table data.targets; give that too");
  }
  if (target_kind(config) != TargetKind::one_class) {
    found.add(given.place("data.dataset"), "the task " + config.task +
                                               " with data.dataset image_folder needs data.targets: a CSV table of "
                                               "images and what is learnt of them");
  }
}

void check_image_folder(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const ImageFolderSet settings = settings_for<ImageFolderSet>(config);
  const std::vector<int64_t>& size = settings.image_size;
  if (given.sound("data.image_size") && (size.size() > 2 || std::ranges::count(size, kRefusedSide) != 0)) {
    found.add(given.place("data.image_size"), "data.image_size: expected one integer or two, [rows, columns]");
  }
  check_shorter_side(settings, given, found);
  check_image_table(config, settings, given, found);
  if (config.whole_images && size.empty() && given.sound("data.image_size")) {
    found.add(given.place("data.dataset"), "augmentation.resized_crop needs data.image_size, the size of samples");
  }
  if (given.sound("data.channels") && settings.channels == 2) {
    found.add(given.place("data.channels"), "data.channels: expected 1 (grey), 3 (colour) or 0 (as the images)");
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
