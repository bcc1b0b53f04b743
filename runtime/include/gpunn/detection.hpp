#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gpunn {

// Writes the image as PNG with the boxes drawn on it, each with its class and score in percent. Those of a lower score
// than `least_score` are left out. Throws Error where the image can't be read or the file can't be written.
GPUNN_API void write_with_boxes(const std::filesystem::path& image, std::span<const DetectedBox> boxes,
                                const std::filesystem::path& to, double least_score = 0.3);

// Writes the boxes of a model's predictions as COCO's evaluators read results: a list of image_id, category_id, bbox
// [x, y, width, height], score. Of a label map it writes image_id, category_id and segmentation, the run lengths of the
// pixels, for each class that the map has. Returns what the user should know of the ids.
//
// `annotations` are COCO's files of instances; empty: those of the model's data that are on this machine, if one of
// them lists an image. A category's id is that of the file that lists the image, found by the class's name; else the
// one that the model keeps; else the number of the class, from 1. An image's id is found by the name of its file. The
// boxes of images that the files do not list are left out, as pycocotools would refuse them. Without such files, an
// image's id is the number that its file is called by, else the file's name.
GPUNN_API std::vector<std::string> write_coco_results(const TrainedModel& model,
                                                      std::span<const Prediction> predictions,
                                                      const std::filesystem::path& file,
                                                      const std::vector<std::filesystem::path>& annotations = {});

}  // namespace gpunn
