#pragma once

#include <functional>
#include <string>

namespace gpunn {

// Does the work in a child process first, whose results are lost: "signal 11 (Segmentation fault)" where that ends it,
// empty where it returns or throws. For libraries that a damaged file can crash; the work may touch no device.
std::string crash_of(const std::function<void()>& work);

}  // namespace gpunn
