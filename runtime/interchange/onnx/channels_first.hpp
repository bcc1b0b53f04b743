// Networks that take images with channels last, as those of Keras.
#pragma once

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// Where arithmetic with constants, as a normalisation, stands between the input [N, H, W, C] and the Transpose that
// turns it to [N, C, H, W], puts the Transpose first: the import then takes the input as it is behind it.
void turn_inputs_first(FileModel& model);

}  // namespace gpunn::interchange
