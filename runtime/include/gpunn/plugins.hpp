#pragma once

#include <gpunn/export.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The outcome of looking at a plugin file.
enum class PluginStatus { ok, not_a_plugin, abi_mismatch, dependency_missing, no_device, name_clash, invalid };
GPUNN_API std::string_view name_of(PluginStatus status);  // "OK", "NOT_A_PLUGIN", ...

// One file that looked like a plugin, and its outcome.
struct PluginReport {
  std::filesystem::path path;
  PluginStatus status = PluginStatus::ok;
  std::string detail;  // why it is not OK, in the loader's or the plugin's own words
  std::string name, version, build, base;
  int abi_major = 0, abi_minor = 0;
  int priority = 0;
  int devices = 0;
};

// Every file seen in `extra` (files or folders), $GPUNN_PLUGIN_PATH (colon-separated), the folder of libgpunn and the
// install folder, in that order. Loads, negotiates and probes each; never throws for a plugin's sake.
GPUNN_API std::vector<PluginReport> list_plugins(const std::vector<std::filesystem::path>& extra = {});

// Lets every loaded plugin end what it began (threads, driver contexts), once. A program calls it at the end of main,
// when nothing of the library is in use any more.
GPUNN_API void shutdown_plugins() noexcept;

}  // namespace gpunn
