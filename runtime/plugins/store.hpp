#pragma once

#include <filesystem>
#include <memory>

#include "plugins/plugin.hpp"

namespace gpunn::plugins {

// The report of one file. `plugin` is set if the report is OK and the plugin was probed.
struct Loaded {
  PluginReport report;
  std::shared_ptr<const Plugin> plugin;
};

// Loads and negotiates a file, and asks no driver: an OK says that there is a table. A library that loaded is
// remembered for the life of the process, so that a second registry costs nothing. Safe to call from several threads.
Loaded open_plugin(const std::filesystem::path& file);

// The same, and probes it: once in the life of the process.
Loaded probe_plugin(const std::filesystem::path& file);

}  // namespace gpunn::plugins
