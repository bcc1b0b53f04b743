// The numbers of a regression with scaled targets, in the units of the data.
#pragma once

#include <gpunn/model.hpp>

namespace gpunn::inference {

// The place in the caller's array at which the model's f32 numbers fit without other memory. In an array of f64 it is
// the second half, so that write_in_data_units() can fill the array from its beginning.
void* place_of_scaled(const MutableArrayView& output);

// Writes number * stddev + mean for the f32 numbers at place_of_scaled(): in f64, rounded if the array is f32.
void write_in_data_units(const ModelInfo& info, const MutableArrayView& output);

}  // namespace gpunn::inference
