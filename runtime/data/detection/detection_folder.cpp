// The user's own images with boxes.
#include <gpunn/error.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include "config/key_builders.hpp"
#include "data/detection/box_dataset.hpp"
#include "data/folders/folder_parts.hpp"
#include "data/pack/files.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kUsualSide = 512;

// Of one part; `root` is its own folder if data.path has folders of parts.
Annotations read_part(const DataConfig& config, const BoxSet& settings, bool test, const fs::path& root,
                      const std::vector<fs::path>& apart) {
  const fs::path images = root / settings.image_folder;
  const fs::path& boxes = test ? settings.test_boxes : settings.boxes;
  switch (settings.format) {
    case BoxFormat::coco:
      return read_coco(boxes, images);
    case BoxFormat::csv:
      return read_box_table(boxes, images);
    case BoxFormat::yolo:
      return read_yolo(files::is_folder(images) ? images : root, settings.boxes, apart);
    case BoxFormat::voc:
      break;
  }
  const fs::path lists = root / "ImageSets" / "Main";
  const std::string& name = test ? settings.test_list : settings.train_list;
  const fs::path list = lists / (name + ".txt");
  const bool whole = test ? !config.test_path.empty() : !files::is_folder(lists);
  if (!whole && !files::is_file(list)) {
    throw Error(list.string() + ": not there; expected the names of the images of the " + (test ? "test" : "training") +
                    " part, one a line (data." + (test ? "test_list" : "train_list") + ")",
                ExitCode::missing);
  }
  return read_voc(root / settings.annotation_folder, images, files::is_file(list) ? list : fs::path());
}

void tell(Dataset& set, const std::string& part, const Annotations& annotations, const BoxRepairs& repairs) {
  for (const std::string& note : annotations.notes) set.notes.push_back(part + ": " + note);
  for (const std::string& note : repairs.notes()) set.notes.push_back(part + ": " + note);
}

// YOLO's files lie next to their images, so that folders are what divides them. The other formats have lists.
bool has_part_folders(const BoxSet& settings) { return settings.format == BoxFormat::yolo; }
// Results are written with the ids of the training part.
void add_note_of_ids(Dataset& set, const Annotations& train, const Annotations& test) {
  for (std::size_t i = 0; i < std::min(test.class_ids.size(), test.classes.size()); ++i) {
    const auto place = std::ranges::find(train.classes, test.classes[i]) - train.classes.begin();
    if (place >= std::ssize(train.class_ids)) continue;
    const int64_t id = train.class_ids[static_cast<std::size_t>(place)];
    if (id == test.class_ids[i]) continue;
    set.notes.push_back("test part: the category '" + test.classes[i] + "' has the id " +
                        std::to_string(test.class_ids[i]) + ", in the training part the id " + std::to_string(id) +
                        "; the model keeps the latter");
    return;
  }
}

Dataset make_detection_folder(const DataConfig& config) {
  const BoxSet settings = box_settings(config, {kUsualSide, kUsualSide});
  PartFolders parts{.train = config.path, .test = config.test_path};
  if (has_part_folders(settings)) {
    parts = part_folders(config, Contents::images);
  } else if (config.test_path.empty()) {
    parts.test = config.path;
  }
  const bool tested = has_part_folders(settings) ? !parts.test.empty()
                                                 : settings.format == BoxFormat::voc || !config.test_path.empty() ||
                                                       !settings.test_boxes.empty();
  const Annotations train = read_part(config, settings, false, parts.train, parts.apart);
  const Annotations test = tested ? read_part(config, settings, true, parts.test, {}) : Annotations();
  const Annotations validation =
      parts.validation.empty() ? Annotations() : read_part(config, settings, true, parts.validation, {});
  const std::vector<std::string> classes = classes_of(train);
  if (classes.empty()) throw Error(config.path.string() + ": no box in any annotation", ExitCode::missing);
  const double most_zoom = settings.zoom.empty() ? 1 : std::max(1.0, settings.zoom[1]);
  const auto most_side =
      static_cast<int64_t>(most_zoom * static_cast<double>(*std::ranges::max_element(settings.image_size)));
  const ImageForm sample{.channels = settings.channels,
                         .is_sample = true,
                         .rows = settings.image_size[0],
                         .columns = settings.image_size[1]};
  BoxRepairs of_train, of_validation, of_test;
  DamagedFiles damaged(config.damaged);
  auto images = box_images(train, classes, {.channels = settings.channels, .most_side = most_side}, of_train, damaged);
  const auto validation_images = box_images(validation, classes, sample, of_validation, damaged);
  const auto test_images = box_images(test, classes, sample, of_test, damaged);
  std::vector<std::string> of_damaged;
  damaged.settle(config.path.string(), of_damaged);
  Dataset set = box_dataset(std::move(images), test_images, classes, config, validation_images);
  set.fields.target().ids = train.class_ids;
  set.notes.insert(set.notes.end(), parts.notes.begin(), parts.notes.end());
  set.notes.insert(set.notes.end(), of_damaged.begin(), of_damaged.end());
  set.name = "detection_folder";
  set.source = config.path.string();
  tell(set, "training part", train, of_train);
  tell(set, "validation part", validation, of_validation);
  tell(set, "test part", test, of_test);
  for (const std::string& note : test.evaluation_notes) set.notes.push_back("test part: " + note);
  if (of_test.outside + of_test.no_area + of_test.twice + of_test.clipped > 0) {
    set.notes.emplace_back(
        "test part: precision and recall count all boxes as the files have them; only the loss does without those "
        "left out");
  }
  add_note_of_ids(set, train, test);
  return set;
}

void check_detection_folder(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  check_boxes(config, given, found);
  const auto settings = settings_for<BoxSet>(config);
  for (const auto& [key, folder] : {std::pair{"data.train_folder", &config.train_folder},
                                    {"data.validation_folder", &config.validation_folder},
                                    {"data.test_folder", &config.test_folder}}) {
    if (folder->empty() || has_part_folders(settings)) continue;
    found.add(given.place(key), std::string(key) + " is for data.format yolo; of the others, files list the images");
  }
  const bool listed = settings.format == BoxFormat::coco || settings.format == BoxFormat::csv;
  if (listed && settings.boxes.empty() && given.sound("data.boxes")) {
    found.add(given.place("data.dataset"), "data.boxes: the file with the boxes is missing");
  }
  if (listed && !config.test_path.empty() && settings.test_boxes.empty() && given.sound("data.test_boxes")) {
    found.add(given.place("data.test_path"), "data.test_boxes: the file with the boxes of the test part is missing");
  }
}

}  // namespace

DatasetRow detection_folder_row() {
  DatasetRow row;
  row.name = "detection_folder";
  row.description = "your own images with boxes around objects, for task detection: PASCAL VOC, COCO, YOLO, or a table";
  row.origin = Origin::user;
  row.make = make_detection_folder;
  row.learnt = "boxes";
  row.keys = [] {
    using namespace config;
    using B = BoxSet;
    return box_keys(
        {choice("format", &B::format, {"voc", "coco", "yolo", "csv"}, "How boxes are written: docs/detection.md."),
         optional(path("boxes", &B::boxes,
                       "coco: the JSON file of the training part; csv: its table; yolo: a file with the names of the "
                       "classes.")),
         optional(path("test_boxes", &B::test_boxes, "The same of the test part.")),
         text("images", &B::image_folder, "The folder of the images, beneath `path`."),
         text("annotations", &B::annotation_folder, "voc: the folder of the XML files, beneath `path`."),
         text("train_list", &B::train_list, "voc: the list in ImageSets/Main of the images to train on."),
         text("test_list", &B::test_list, "voc: likewise of those to evaluate on.")},
        {kUsualSide, kUsualSide});
  };
  row.check = check_detection_folder;
  return row;
}

}  // namespace gpunn::data
