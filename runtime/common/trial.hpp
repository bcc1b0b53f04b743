#pragma once

#include <functional>
#include <string>

namespace gpunn {

// Runs the work in a child process first and discards its results. Returns "signal 11 (Segmentation fault)" if that
// killed the child, or an empty string if the work returned or threw. For libraries that a damaged file can crash; the
// work must not touch a device.
std::string crash_of(const std::function<void()>& work);

}  // namespace gpunn
