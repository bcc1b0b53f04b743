#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fields/box.hpp"

namespace gpunn::data {

// A box as a file has it, not yet checked.
struct NamedBox {
  fields::Box box;
  std::string category;
  bool difficult = false;
  bool crowd = false;
  std::optional<double> area = {};  // of the object, if the file says it
  bool has_id_zero = false;         // of its annotation
};

// An image and its boxes as a file has them.
struct AnnotatedImage {
  std::filesystem::path file;
  std::string place;              // of the annotation, for messages: "Annotations/0001.xml"
  int64_t width = 0, height = 0;  // as the annotation has them; 0: it does not say
  std::vector<NamedBox> boxes = {};
  bool relative = false;  // boxes are shares of the image's sides
  std::string id = {};    // COCO: as JSON
  int64_t order = 0;      // COCO: the place of the id among the sorted ids
};

struct Annotations {
  std::vector<AnnotatedImage> images;
  std::vector<std::string> classes;                // in the file's order, where it lists them; else empty
  std::vector<std::string> notes;                  // images without annotations and the reverse, counted
  std::vector<int64_t> class_ids = {};             // COCO: the category id of each class
  std::vector<std::string> evaluation_notes = {};  // what only matters if these are evaluated
};

// PASCAL VOC: an XML file in `annotations` for each image in `images`. `list` names the images, one a line, in front of
// anything else on it; where it is empty, all XML files are taken.
Annotations read_voc(const std::filesystem::path& annotations, const std::filesystem::path& images,
                     const std::filesystem::path& list);
// The boxes of one such file. Throws Error, with the file and the object, where an element is missing or no number.
AnnotatedImage read_voc_file(const std::filesystem::path& file);

// COCO's JSON of instances; file names are beneath `images`. Classes are in the order of the category ids.
Annotations read_coco(const std::filesystem::path& json, const std::filesystem::path& images);

// The ids that such a file knows classes and images by, without its boxes.
struct CocoFileIds {
  std::map<std::string, int64_t> categories;  // by name
  std::map<std::string, std::string> images;  // by file_name, each as JSON
};
CocoFileIds read_coco_ids(const std::filesystem::path& json);

// YOLO's text: beside each image, or in a folder `labels` in place of its folder `images`, a file of lines "class
// x-centre y-centre width height", in shares of the sides. `names` is a file with the name of a class a line; empty:
// they are called by their numbers.
// Images in the folders `apart` are not read.
Annotations read_yolo(const std::filesystem::path& images, const std::filesystem::path& names,
                      const std::vector<std::filesystem::path>& apart = {});

// A table with a box a line: the columns filename, class, xmin, ymin, xmax, ymax, and width and height where they are.
Annotations read_box_table(const std::filesystem::path& table, const std::filesystem::path& images);

}  // namespace gpunn::data
