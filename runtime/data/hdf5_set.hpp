#pragma once

#include "data/registry.hpp"

namespace gpunn::data {

// The user's own arrays in an HDF5 file: images [rows, H, W], [rows, C, H, W] or [rows, H, W, C], or [rows, features],
// and the class of each row. Unsigned bytes stay what they are, other numbers become f32.
DatasetRow hdf5_row();

}  // namespace gpunn::data
