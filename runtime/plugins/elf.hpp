#pragma once

#include <filesystem>
#include <string>

namespace gpunn::plugins {

// Why the dynamic loader must not be given this file; empty: it may. The loader maps segments without looking at the
// file's length, so that a truncated library would end the process.
std::string why_not_loadable(const std::filesystem::path& file);

}  // namespace gpunn::plugins
