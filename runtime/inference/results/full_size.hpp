#pragma once

#include <gpunn/model.hpp>
#include <gpunn/segmentation.hpp>

#include "data/images/image.hpp"

namespace gpunn::inference {

// As gpunn::segment_image() of a file with this picture.
LabelMap map_of_picture(const Model& model, const data::Image& picture, const FullSize& options);

// Throws Error(usage) if the model doesn't give a class for each pixel of an image of bytes.
void require_pixel_classes(const Model& model);

}  // namespace gpunn::inference
