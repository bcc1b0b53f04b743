#include "data/photographs/image_pairs.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/host_memory.hpp"
#include "common/parallel.hpp"
#include "common/text.hpp"
#include "config/key_builders.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/images/bicubic.hpp"
#include "data/photographs/pair_files.hpp"
#include "data/photographs/patch_source.hpp"
#include "data/photographs/streamed_patches.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kShareOfFreeMemory = 2;  // of what is free, the part that images may take

constexpr double kMostScale = 8, kMostPatch = 4096, kMostPatches = 100'000'000;

int64_t channels_of(ColourPlanes colours) { return colours == ColourPlanes::luma ? 1 : 3; }

// What the model gets of a small image.
Planes model_input(Planes small, const PhotographSet& settings) {
  if (settings.input == ModelInput::small) return small;
  return resize_bicubic(small, static_cast<double>(settings.scale));
}

std::string sides(const Planes& image) { return std::to_string(image.width) + " by " + std::to_string(image.height); }

FieldValues image_values(const Planes& image) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(image.values));
  return {.type = {DType::f32, {1, image.channels, image.height, image.width}}, .values = {bytes.begin(), bytes.end()}};
}

// One row of an evaluation.
Split single_of(const ImagePair& pair) {
  Split split;
  split.name = pair.name;
  FieldValues input = image_values(pair.input);
  split.samples = std::move(input.type);
  split.values = std::move(input.values);
  split.fields[kTargetField] = image_values(pair.target);
  return split;
}

std::string name_beneath(const fs::path& file, const fs::path& folder) {
  return file.lexically_relative(folder).replace_extension().string();
}

}  // namespace

Split split_of_pairs(const std::vector<ImagePair>& pairs) {
  Split split;
  if (pairs.empty()) return split;
  Shape largest{0, 0, 0, 0}, largest_target{0, 0, 0, 0};
  const auto enlarge = [](Shape& shape, const Shape& other) {
    for (std::size_t i = 1; i < shape.size(); ++i) shape[i] = std::max(shape[i], other[i]);
  };
  for (const ImagePair& pair : pairs) {
    split.singles.push_back(single_of(pair));
    enlarge(largest, split.singles.back().samples.shape);
    enlarge(largest_target, split.singles.back().fields.at(kTargetField).type.shape);
  }
  largest[0] = largest_target[0] = static_cast<int64_t>(pairs.size());
  split.samples = {DType::f32, largest};
  split.fields[kTargetField] = {.type = {DType::f32, largest_target}, .values = {}};
  return split;
}

Planes planes_of(const Image& image, ColourPlanes colours) {
  Planes result{channels_of(colours), image.height, image.width};
  const std::size_t pixels = result.plane(), channels = static_cast<std::size_t>(image.channels);
  result.values.resize(pixels * static_cast<std::size_t>(result.channels));
  for (std::size_t i = 0; i < pixels; ++i) {
    const uint8_t* const at = image.values.data() + i * channels;
    if (colours == ColourPlanes::luma) {
      result.values[i] = static_cast<float>(channels == 1 ? *at : luma(at[0], at[1], at[2])) / 255;
    } else {
      for (std::size_t c = 0; c < 3; ++c) {
        result.values[c * pixels + i] = static_cast<float>(at[channels == 1 ? 0 : c]) / 255;
      }
    }
  }
  return result;
}

ImagePair degraded_pair(std::string name, const Planes& image, const PhotographSet& settings) {
  if (image.height < settings.scale || image.width < settings.scale) {
    throw Error(name + ": the image has " + sides(image) + " pixels; expected at least " +
                    std::to_string(settings.scale) + " a side, as data.scale says",
                ExitCode::usage);
  }
  ImagePair pair{std::move(name), {}, cropped_to_multiple(image, settings.scale)};
  pair.input = model_input(resize_bicubic(pair.target, 1.0 / static_cast<double>(settings.scale)), settings);
  return pair;
}

ImagePair given_pair(std::string name, const Planes& image, const Planes& small, const PhotographSet& settings) {
  Planes target = cropped_to_multiple(image, settings.scale);
  if (small.height * settings.scale != target.height || small.width * settings.scale != target.width) {
    throw Error(name + ": the image has " + sides(image) + " pixels and its small form " + sides(small) +
                    "; expected " + std::to_string(settings.scale) + " times fewer a side, as data.scale says",
                ExitCode::usage);
  }
  return {std::move(name), model_input(small, settings), std::move(target)};
}

Planes in_other_size(const Planes& image, double factor) {
  Planes other = resize_bicubic(image, factor);
  const std::vector<uint8_t> bytes = to_bytes(other.values);
  std::ranges::transform(bytes, other.values.begin(), [](uint8_t byte) { return static_cast<float>(byte) / 255; });
  return other;
}

std::vector<fs::path> photographs_of(const PhotographFolder& folder) {
  std::vector<fs::path> files = images_beneath(folder.folder, folder.apart);
  if (!files.empty()) return files;
  throw Error(folder.folder.string() + ": no images there; expected files that end in .png, .jpg, .pgm or .ppm",
              ExitCode::missing);
}

std::vector<ImagePair> read_pairs(const PhotographFolder& folder, const PhotographSet& settings, bool all_sizes,
                                  DamagedFiles& damaged) {
  const std::vector<fs::path> files = photographs_of(folder);
  std::vector<std::vector<ImagePair>> of_file(files.size());
  LongWork work("reading the images of " + folder.folder.filename().string(), files.size());
  for_row_stretches(static_cast<int64_t>(files.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i, work.advance()) {
      const std::string name = name_beneath(files[i], folder.folder);
      Image read, small;
      const fs::path small_file =
          folder.small.empty() ? fs::path() : folder.small / files[i].lexically_relative(folder.folder);
      if (!damaged.sound(files[i], [&](std::string* damage) { read = read_image_file(files[i], damage); })) continue;
      if (!small_file.empty() &&
          !damaged.sound(small_file, [&](std::string* damage) { small = read_image_file(small_file, damage); })) {
        continue;
      }
      const Planes image = planes_of(read, settings.colours);
      if (!small_file.empty()) {
        of_file[i].push_back(given_pair(name, image, planes_of(small, settings.colours), settings));
        continue;
      }
      of_file[i].push_back(degraded_pair(name, image, settings));
      if (!all_sizes) continue;
      for (const double factor : settings.also_scaled) {
        const Planes other = in_other_size(image, factor);
        if (std::min(other.height, other.width) < settings.scale) continue;
        of_file[i].push_back(degraded_pair(name, other, settings));
      }
    }
  });
  std::vector<ImagePair> pairs;
  for (std::vector<ImagePair>& some : of_file) std::ranges::move(some, std::back_inserter(pairs));
  return pairs;
}

namespace {

// A set without its batches.
Dataset set_without_patches(const PatchSettings& patches, const std::vector<ImagePair>& test,
                            const PhotographSet& settings) {
  Dataset set;
  set.fields.target() = {.name = kTargetField,
                         .role = Role::target,
                         .kind = "image",
                         .type = {DType::f32, {patches.channels, settings.patch_size, settings.patch_size}},
                         .scale = settings.scale};
  set.train.samples = {DType::f32, {settings.patches, patches.channels, patches.input_size, patches.input_size}};
  set.test = split_of_pairs(test);
  set.fields.input().mean.assign(static_cast<std::size_t>(patches.channels), 0.0);
  set.fields.input().stddev.assign(static_cast<std::size_t>(patches.channels), 1.0);
  return set;
}

PatchSettings patch_settings(const PhotographSet& settings, uint64_t seed) {
  const int64_t ratio = settings.input == ModelInput::small ? settings.scale : 1;
  return {.channels = channels_of(settings.colours),
          .input_size = settings.patch_size / ratio,
          .ratio = ratio,
          .turns = settings.turns,
          .seed = seed};
}

void tell_left_out(int64_t left_out, std::size_t all, Dataset& set) {
  if (left_out == 0) return;
  set.notes.push_back(std::to_string(left_out) + " of " + std::to_string(all) +
                      " training images are smaller than a patch and left out");
}

}  // namespace

Dataset photograph_dataset(std::vector<ImagePair> train, const std::vector<ImagePair>& test, const DataConfig& config) {
  const PhotographSet settings = settings_for<PhotographSet>(config);
  const PatchSettings patches = patch_settings(settings, config.order_seed);
  const std::size_t all = train.size();
  const auto source = std::make_shared<PatchSource>(std::move(train), patches);
  Dataset set = set_without_patches(patches, test, settings);
  tell_left_out(source->left_out(), all, set);
  set.batches = source;
  return set;
}

Dataset photograph_dataset(const std::vector<PhotographFolder>& train, const std::vector<ImagePair>& test,
                           const DataConfig& config, DamagedFiles& damaged) {
  const PhotographSet settings = settings_for<PhotographSet>(config);
  std::vector<std::string> folders, notes;
  for (const PhotographFolder& folder : train) folders.push_back(folder.folder.string());
  PairFiles files(train, settings, damaged.policy());
  const uint64_t bytes = files.bytes(), free = free_host_memory();
  const bool streamed = settings.decode == Decoding::each_epoch ||
                        (settings.decode == Decoding::automatic && free > 0 && bytes > free / kShareOfFreeMemory);
  if (!streamed) {
    require_host_memory(bytes, "the training images, decoded (or set data.decode: each_epoch),");
    std::vector<ImagePair> pairs;
    for (const PhotographFolder& folder : train) {
      std::ranges::move(read_pairs(folder, settings, true, damaged), std::back_inserter(pairs));
    }
    damaged.settle(join(folders, ", "), notes);
    Dataset set = photograph_dataset(std::move(pairs), test, config);
    set.notes.insert(set.notes.end(), notes.begin(), notes.end());
    return set;
  }
  files.check(damaged);
  damaged.settle(join(folders, ", "), notes);
  const PatchSettings patches = patch_settings(settings, config.order_seed);
  const std::size_t all = files.pairs();
  const auto source = std::make_shared<StreamedPatches>(std::move(files), patches);
  Dataset set = set_without_patches(patches, test, settings);
  tell_left_out(source->left_out(), all, set);
  set.notes.insert(set.notes.end(), notes.begin(), notes.end());
  set.notes.push_back("decoded, the training images would take " + human_bytes(bytes) + " of " + human_bytes(free) +
                      " of free memory: " + std::to_string(source->at_a_time()) +
                      " of them are in memory at a time (data.decode)");
  set.batches = source;
  return set;
}

config::KindOf<DataConfig> photograph_keys(std::vector<config::KeyOf<PhotographSet>> own) {
  using namespace config;
  using P = PhotographSet;
  KindOf<DataConfig> kind = make_kind<P, DataConfig>({});
  const std::vector<KeyOf<P>> shared = {
      integer("scale", &P::scale, between(1, kMostScale),
              "How many times larger images become; 1, of style_transfer: they keep their size."),
      integer("patch_size", &P::patch_size, between(1, kMostPatch),
              "Rows and columns of the targets that are cut at random for training, a multiple of `scale`."),
      integer("patches", &P::patches, between(1, kMostPatches), "Patches of an epoch."),
      choice("colours", &P::colours, {"luma", "rgb"},
             "Channels that the model enlarges: `luma` alone, with bicubic colours, or red, green and blue."),
      choice("input", &P::input, {"small", "enlarged"},
             "Input of the model: the `small` image, or that image `enlarged` by bicubic to the target's size."),
      boolean("turns", &P::turns, "Patches are turned by quarters and mirrored at random."),
      optional(numbers("also_scaled", &P::also_scaled, from_to_below(0.1, 1),
                       "Factors by which the training images are shrunk to have them in these sizes, too."))};
  own.insert(own.end(), shared.begin(), shared.end());
  for (KeyOf<P>& key : own) kind.keys.push_back(in_kind<P, DataConfig>(std::move(key)));
  return kind;
}

config::KeyOf<PhotographSet> decode_key() {
  return config::choice(
      "decode", &PhotographSet::decode, {"auto", "once", "each_epoch"},
      "When files become training images: all `once`, kept in memory, or `each_epoch` anew, some at a time. `auto`: "
      "anew where they would take more than half of the free memory.");
}

void check_photographs(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const PhotographSet settings = settings_for<PhotographSet>(config);
  if (given.sound("data.scale") && given.sound("data.patch_size") && settings.patch_size % settings.scale != 0) {
    found.add(given.place("data.patch_size"), "data.patch_size: expected a multiple of data.scale (" +
                                                  std::to_string(settings.scale) + "), found " +
                                                  std::to_string(settings.patch_size));
  }
  if (given.sound("data.patches") && given.sound("data.batch_size") && settings.patches < config.batch_size) {
    found.add(given.place("data.patches"),
              "data.patches (" + std::to_string(settings.patches) +
                  ") is less than one batch (data.batch_size: " + std::to_string(config.batch_size) + ")");
  }
  // These choose among rows that are there beforehand.
  const auto refuse = [&](const std::string& key, bool given_one) {
    if (!given_one || !given.sound(key)) return;
    found.add(given.place(key), key +
                                    " is not for patches that are cut at random; give the images of each part in "
                                    "folders of their own, and data.patches");
  };
  refuse("data.validation_fraction", config.validation_fraction > 0);
  refuse("data.test_fraction", config.test_fraction > 0);
  refuse("data.train_limit", config.train_limit > 0);
}

}  // namespace gpunn::data
