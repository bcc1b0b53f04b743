#include "data/segmentation/mapped_pictures.hpp"

#include <gpunn/error.hpp>

#include "data/pack/files.hpp"
#include "data/registry.hpp"
#include "data/segmentation/map_files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

std::vector<MappedPicture> pictures_of(const MaskedImages& images) {
  std::vector<MappedPicture> pictures;
  for (const MaskedImage& image : images.images) pictures.push_back({.picture = image.file, .objects = &image});
  return pictures;
}

std::string size_text(const ImageSides& sides) {
  return std::to_string(sides.height) + " by " + std::to_string(sides.width);
}

}  // namespace

MappedPictures::MappedPictures(const DataConfig& config) {
  const SegmentationSet settings = settings_for<SegmentationSet>(config);
  if (!settings.colour_table.empty()) colours_ = read_colour_table(settings.colour_table);
  has_objects_ = !settings.instances.empty();
  if (!has_objects_) {
    MapFiles found = find_map_files(config, settings);
    const auto take = [](const std::vector<MapPair>& pairs, std::vector<MappedPicture>& pictures) {
      for (const MapPair& pair : pairs) pictures.push_back({.picture = pair.picture, .map = pair.map});
    };
    take(found.train, train);
    take(found.validation, validation);
    take(found.test, test);
    notes = std::move(found.notes);
    return;
  }
  const auto read = [&](const fs::path& json, const fs::path& root) {
    MaskedImages images = read_coco_masks(json, settings.images.empty() ? root : root / settings.images);
    notes.insert(notes.end(), images.notes.begin(), images.notes.end());
    return images;
  };
  train_objects = read(settings.instances, config.path);
  train = pictures_of(train_objects);
  if (settings.test_instances.empty()) return;
  test_objects = read(settings.test_instances, config.test_path.empty() ? config.path : config.test_path);
  if (test_objects.class_ids != train_objects.class_ids) {
    throw Error(settings.test_instances.string() + ": its categories are not those of " + settings.instances.string());
  }
  test = pictures_of(test_objects);
}

const MappedPicture& MappedPictures::picture(int64_t number) const {
  auto place = static_cast<std::size_t>(number);
  for (const auto& [pictures, split] : all()) {
    if (place < pictures->size()) return (*pictures)[place];
    place -= pictures->size();
  }
  throw Error("the data set has no file " + std::to_string(number));
}

LabelMap MappedPictures::map_of(const MappedPicture& one, const std::optional<ImageSides>& sides) const {
  if (one.objects != nullptr) return map_of_objects(*one.objects, sides.value().height, sides.value().width);
  LabelMap map = read_label_map(one.map, colours());
  if (sides && (map.height != sides->height || map.width != sides->width)) {
    throw Error(one.map.string() + ": the map has " + size_text({map.height, map.width}) + " pixels, its picture " +
                one.picture.string() + " " + size_text(*sides) + ", in rows by columns; they must be equal");
  }
  return map;
}

std::array<uint8_t, 256> MappedPictures::classes_of_ids(const Field& target) const {
  std::array<uint8_t, 256> classes{};
  classes.fill(kIgnoredPixel);
  for (std::size_t i = 0; i < target.names.size(); ++i) {
    // The ids of objects are COCO's categories, and their maps are drawn with the classes themselves.
    const bool are_ids = has_objects_ || target.ids.empty();
    classes[are_ids ? i : static_cast<std::size_t>(target.ids[i])] = static_cast<uint8_t>(i);
  }
  return classes;
}

ImageSides sides_of(const fs::path& picture) {
  return sides_of_image(files::read(picture, kMostImageFileBytes).bytes(), picture);
}

}  // namespace gpunn::data
