#pragma once

#include "data/registry.hpp"

namespace gpunn::data {

// The user's own table: a row a sample, a column of classes, all other columns numbers. Samples f32 [rows, features].
DatasetRow csv_row();

}  // namespace gpunn::data
