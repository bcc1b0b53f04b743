#pragma once

#include <filesystem>

namespace gpunn {

// $XDG_CACHE_HOME/gpunn, by default ~/.cache/gpunn. Empty where neither variable is an absolute path, as the XDG base
// directory specification has relative ones ignored.
std::filesystem::path cache_folder();

}  // namespace gpunn
