#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/segmentation/label_map.hpp"

namespace gpunn::data {

// An object of an image: its polygons or, if it has none, its run lengths.
struct MaskedObject {
  uint8_t id = 0;  // of its class
  bool crowd = false;
  std::vector<std::vector<double>> polygons = {};
  std::string runs = {};              // compressed
  std::vector<uint32_t> counts = {};  // not compressed
  std::vector<int64_t> size = {};     // of run lengths: height and width
  std::string place = {};             // of the annotation, for messages
};

struct MaskedImage {
  std::filesystem::path file;
  std::string place, id;          // id: COCO's, as JSON
  int64_t height = 0, width = 0;  // 0: the annotations do not say
  std::vector<MaskedObject> objects = {};
};

struct MaskedImages {
  std::vector<MaskedImage> images;
  std::vector<std::string> classes;  // "background", then the categories in the order of their ids
  std::vector<int64_t> class_ids;    // the category id of each class; that of the background is -1
  std::vector<std::string> notes;
};

// Reads the objects of COCO's JSON. File names are below `images`, or below the first folder in it that has the first
// of them. Throws Error, with the annotation, if the file is not sound or has more than 254 categories.
MaskedImages read_coco_masks(const std::filesystem::path& json, const std::filesystem::path& images);

// The label map of an image, as torchvision's reference for segmentation makes it: the class of the object at each
// pixel, the background elsewhere, and ignored where objects overlap. Pixels of crowds are ignored. Throws Error if an
// object's run lengths are of another size.
LabelMap map_of_objects(const MaskedImage& image, int64_t height, int64_t width);

}  // namespace gpunn::data
