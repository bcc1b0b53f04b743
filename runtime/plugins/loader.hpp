#pragma once

#include <gpunn/plugins.hpp>

#include <filesystem>
#include <string>

namespace gpunn::plugins {

// A shared library that is never unloaded, or why it could not be loaded.
struct Library {
  PluginStatus status = PluginStatus::ok;
  std::string detail;  // the loader's own words
  void* handle = nullptr;

  // nullptr if the library exports no such symbol.
  void* symbol(const char* name) const;
};

// Loads a file by its full path, with all symbols bound at once and none of them visible to other libraries. The
// library's static initialisers run. An initialiser that throws ends the process; the host can't prevent that.
Library load_library(const std::filesystem::path& file);

}  // namespace gpunn::plugins
