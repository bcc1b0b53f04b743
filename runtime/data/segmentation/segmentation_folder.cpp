// The user's own pictures with a label map each, for task segmentation: u8 [rows, C, H, W] and u8 [rows, H, W].
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "common/parallel.hpp"
#include "common/text.hpp"
#include "data/folders/image_decoder.hpp"
#include "data/images/image.hpp"
#include "data/images/sized_images.hpp"
#include "data/pack/files.hpp"
#include "data/registry.hpp"
#include "data/rows/own_data.hpp"
#include "data/segmentation/map_classes.hpp"
#include "data/segmentation/mapped_pictures.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMapsAtATime = 8;

// Throws Error, with the sizes, if pictures that are not scaled have several.
ImageSides common_size(const MappedPictures& parts, const fs::path& root) {
  constexpr std::size_t kMostSizes = 6;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  std::optional<ImageSides> first;
  for (const auto& [pictures, split] : parts.all()) {
    for (const MappedPicture& one : *pictures) {
      ImageSides sides;
      try {
        sides = sides_of(one.picture);
      } catch (const Error&) {
        continue;  // data.damaged decides about it
      }
      if (!first) first = sides;
      ++counts[{sides.height, sides.width}];
    }
  }
  if (counts.size() <= 1) return first.value_or(ImageSides());
  std::vector<std::string> texts;
  for (const auto& [sides, count] : counts) {
    if (texts.size() == kMostSizes) {
      texts.push_back("and " + std::to_string(counts.size() - kMostSizes) + " more");
      break;
    }
    texts.push_back(std::to_string(sides.first) + " by " + std::to_string(sides.second) + " (" + std::to_string(count) +
                    (count == 1 ? " picture)" : " pictures)"));
  }
  throw Error(root.string() + ": the pictures have " + std::to_string(counts.size()) + " sizes, in rows by columns: " +
                  join(texts, ", ") + ". Set data.image_size: [rows, columns], to which all are scaled and cut",
              ExitCode::usage);
}

using UsedIds = std::bitset<256>;

// Reads the maps of a part, as their files have the ids, in the size of the samples. `used` gets the ids of each.
FieldValues read_maps(const MappedPictures& all, const std::vector<MappedPicture>& pictures, const ImageSides& size,
                      const ImageFit& fit, std::vector<UsedIds>& used) {
  const int64_t rows = std::ssize(pictures);
  FieldValues values{.type = {DType::u8, {rows, size.height, size.width}}, .values = {}};
  require_memory(values.type.bytes(), "the label maps", "set data.image_size to a smaller size");
  values.values.resize(values.type.bytes());
  used.resize(pictures.size());
  LongWork work("reading label maps", pictures.size());
  for_row_stretches(rows, kMapsAtATime, [&](int64_t first, int64_t last) {
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(last); ++row, work.advance()) {
      const MappedPicture& one = pictures[row];
      std::optional<ImageSides> sides;
      try {
        sides = sides_of(one.picture);
      } catch (const Error&) {  // data.damaged decides about the picture
        if (one.objects != nullptr) continue;
      }
      const LabelMap map = all.map_of(one, sides);
      for (const uint8_t id : map.ids) used[row].set(id);
      const LabelMap fitted = fitted_map(map, size.height, size.width, fit);
      std::memcpy(values.values.data() + row * fitted.ids.size(), fitted.ids.data(), fitted.ids.size());
    }
  });
  return values;
}

FieldValues numbers_from(int64_t first, int64_t rows) {
  std::vector<int64_t> numbers(static_cast<std::size_t>(rows));
  std::iota(numbers.begin(), numbers.end(), first);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
  return {.type = {DType::i64, {rows}}, .values = {bytes.begin(), bytes.end()}};
}

Dataset read_segmentation_folder(const DataConfig& config) {
  const SegmentationSet settings = settings_for<SegmentationSet>(config);
  const MappedPictures parts(config);
  Dataset set;
  set.name = "segmentation_folder";
  set.source = config.path.string();
  set.notes = parts.notes;
  const bool scaled = !settings.image_size.empty();
  const ImageSides size =
      scaled ? ImageSides{settings.image_size[0], settings.image_size[1]} : common_size(parts, config.path);
  const ImageFit fit = {.crop = scaled, .shorter_side = settings.shorter_side};
  ImageDecoder decoder(settings, config.path, config.damaged);
  std::vector<fs::path> train_files;
  std::size_t count = 0;
  for (const MappedPicture& one : parts.train) train_files.push_back(one.picture);
  for (const auto& [pictures, split] : parts.all()) count += pictures->size();
  decoder.choose(count, train_files, config, set.notes);

  std::vector<UsedIds> used_by_all;
  std::vector<fs::path> maps;
  for (const auto& [pictures, split] : parts.all()) {
    if (pictures->empty()) continue;
    std::vector<UsedIds> used;
    (set.*split).fields["map"] = read_maps(parts, *pictures, size, fit, used);
    (set.*split).fields[kFileNumbersField] = numbers_from(std::ssize(maps), std::ssize(*pictures));
    used_by_all.insert(used_by_all.end(), used.begin(), used.end());
    for (const MappedPicture& one : *pictures) maps.push_back(one.map.empty() ? one.picture : one.map);
  }
  UsedIds used;
  for (const UsedIds& one : used_by_all) used |= one;
  const MapClasses classes = settings.instances.empty()
                                 ? classes_of_maps(config, settings, parts.colours(), used, set.notes)
                                 : MapClasses::of(parts.train_objects.classes, parts.train_objects.class_ids);
  for (std::size_t i = 0; i < maps.size(); ++i) classes.require(used_by_all[i], maps[i]);
  for (const auto& [pictures, split] : parts.all()) {
    if (pictures->empty()) continue;
    for (std::byte& id : (set.*split).fields["map"].values) {
      id = static_cast<std::byte>(classes.class_of_id[std::to_integer<std::size_t>(id)]);
    }
    std::vector<fs::path> files;
    for (const MappedPicture& one : *pictures) files.push_back(one.picture);
    decoder.decode(files, set.*split, set.notes);
  }
  set.fields.input().fit = {.crop = true, .shorter_side = settings.shorter_side};
  set.fields.target() = map_field(classes.names, size.height, size.width);
  if (!classes.are_ids()) set.fields.target().ids = classes.ids;
  decoder.settle_damaged(set, set.notes);
  decoder.settle_channels({&set.train, &set.validation, &set.test}, set.notes);
  take_test_share(set, config);
  return set;
}

config::KindOf<DataConfig> segmentation_keys() {
  using namespace config;
  using S = SegmentationSet;
  return with_sized_keys<S>(keys_of_set<S>(
      optional(text("images", &S::images, "The folder of the pictures, below `path` or a folder of a part.")),
      optional(
          text("maps", &S::maps,
               "The folder of the label maps, likewise. Default: folders with files of the same names are compared.")),
      optional(
          text("lists", &S::lists,
               "The folder, below `path`, of lists PART.txt: a picture and its map on each line. Default: `path`.")),
      optional(path("instances", &S::instances,
                    "COCO's JSON file of the objects in the training pictures, from which the maps are drawn.")),
      optional(path("test_instances", &S::test_instances, "Like `instances`, for the test pictures.")),
      optional(path("colour_table", &S::colour_table,
                    "The table of colours, if maps are in colours: name, red, green and blue on each line, or JSON.")),
      optional(path("classes", &S::classes,
                    "A file with the name of a class on each line, with or without its id. Default: classes.txt, if it "
                    "is in `path`.")),
      texts("class_names", &S::class_names, "The names of the classes themselves, in the order of their ids."),
      integer("ignore_index", &S::ignore_index, between(-1, kIgnoredPixel),
              "The id in the maps of pixels without a class, besides 255. -1 takes the class called void, ignore or "
              "unlabelled.")));
}

void check_segmentation(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const SegmentationSet settings = settings_for<SegmentationSet>(config);
  check_sized_images(settings, given, found);
  const auto refuse = [&](bool wrong, const char* key, const std::string& why) {
    if (wrong && given.sound(key)) found.add(given.place(key), std::string(key) + " " + why);
  };
  const bool objects = !settings.instances.empty();
  refuse(objects && !settings.maps.empty(), "data.maps", "and data.instances are two ways to the maps; give one");
  refuse(objects && !settings.colour_table.empty(), "data.colour_table",
         "is for maps in files, not for data.instances");
  refuse(!objects && !settings.test_instances.empty(), "data.test_instances", "needs data.instances");
  refuse(!settings.classes.empty() && !settings.class_names.empty(), "data.class_names",
         "and data.classes are two ways to the names; give one");
  if (config.whole_images) {
    found.add(given.place("data.dataset"),
              "augmentation.resized_crop cuts pictures without their label maps; use augmentation.scale");
  }
}

}  // namespace

DatasetRow segmentation_folder_row() {
  DatasetRow row;
  row.name = "segmentation_folder";
  row.description =
      "your own pictures with a label map each, for task segmentation: PNGs in folders next to the pictures, lists, "
      "PASCAL VOC, or COCO's annotations";
  row.origin = Origin::user;
  row.make = read_segmentation_folder;
  row.learnt = "label_map";
  row.keys = segmentation_keys;
  row.check = check_segmentation;
  return row;
}

}  // namespace gpunn::data
