#pragma once

#include <filesystem>
#include <memory>

#include "plugins/plugin.hpp"

namespace gpunn::plugins {

// What became of one file. `plugin` is set where the report is OK.
struct Loaded {
  PluginReport report;
  std::shared_ptr<const Plugin> plugin;
};

// Loads, negotiates and probes a file. A library that loaded is remembered for the life of the process, so that a
// second registry costs nothing and no driver is asked twice. Safe to call from several threads.
Loaded open_plugin(const std::filesystem::path& file);

}  // namespace gpunn::plugins
