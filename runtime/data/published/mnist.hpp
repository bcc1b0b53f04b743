#pragma once

#include <filesystem>

#include "data/registry.hpp"

namespace gpunn::data {

// MNIST (LeCun, Cortes, Burges) and Fashion-MNIST (Xiao, Rasul, Vollgraf, 2017): 60000 + 10000 grey images of 28x28 in
// ten classes, as four IDX files of the same names.
DatasetRow mnist_row();
DatasetRow fashion_mnist_row();

// Reads one part, "train" or "t10k", of a folder of four IDX files: samples u8 [rows, 1, H, W]. Throws Error where
// images and labels differ in number or a label is outside 0..9.
Split read_mnist_split(const std::filesystem::path& folder, const std::string& part);

}  // namespace gpunn::data
