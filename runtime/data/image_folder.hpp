#pragma once

#include "data/registry.hpp"

namespace gpunn::data {

// The user's own images, a folder for each class; folder_scan.hpp says how they lie. Samples u8 [rows, C, H, W].
DatasetRow image_folder_row();

}  // namespace gpunn::data
