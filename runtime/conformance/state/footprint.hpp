#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "execution/backend.hpp"

namespace gpunn::conformance {

// Measures what repeated work leaves behind in this process or on the device, each time: "heap memory by 48 bytes each
// time". Empty: nothing.
std::string leak(execution::Backend& backend, int64_t times, const std::function<void()>& something);

}  // namespace gpunn::conformance
