#pragma once

#include <gpunn/export.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The outcome of loading a plugin file.
enum class PluginStatus {
  ok,
  not_a_plugin,
  abi_mismatch,
  dependency_missing,
  no_device,
  name_clash,
  shadowed,
  invalid
};
GPUNN_API std::string_view name_of(PluginStatus status);  // "OK", "NOT_A_PLUGIN", ...

// One file that looked like a plugin, and its outcome.
struct PluginReport {
  std::filesystem::path path;
  PluginStatus status = PluginStatus::ok;
  std::string detail;  // why it is not OK, in the words of the loader or the plugin
  std::string name, version, build, base;
  int abi_major = 0, abi_minor = 0;
  int priority = 0;
  int devices = 0;
};

// Loads, negotiates with and probes every plugin file in `extra` (files or folders), $GPUNN_PLUGIN_PATH
// (colon-separated), the folder of libgpunn and the install folder, in that order. A bad plugin becomes a report, not
// an exception. Of plugins of one name the first is used and later ones are `shadowed`; two in one place, or both in
// `extra`, are a `name_clash`.
GPUNN_API std::vector<PluginReport> list_plugins(const std::vector<std::filesystem::path>& extra = {});

// Ends the threads, driver contexts and so on of all loaded plugins, once. Call it at the end of main, after all other
// use of the library.
GPUNN_API void shutdown_plugins() noexcept;

}  // namespace gpunn
