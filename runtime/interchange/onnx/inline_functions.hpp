// Functions that a file brings, in place of the nodes that call them.
#pragma once

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// Puts the nodes of functions where these are called, however deep; values and nodes of a function get names of their
// own, and nodes the version of ONNX's operators that the function is written in. Returns why this can't be done;
// empty: it is done.
std::string inline_functions(FileModel& model);

}  // namespace gpunn::interchange
