#pragma once

#include <gpunn/abi.h>
#include <gpunn/plugins.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gpunn::plugins {

// A loaded and negotiated plugin. The library stays loaded until the process ends.
class Plugin {
 public:
  // `table` is the host's own copy: members that the plugin's struct_size does not cover are zero.
  Plugin(std::filesystem::path path, const gpunn_plugin& table, int devices = 0);
  const gpunn_plugin& table() const { return table_; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& name() const { return name_; }
  const std::string& base() const { return base_; }  // empty: none
  // GPUNN_EXTENSION_ALTERNATIVES: plugins whose kernels may run in place of this one's.
  const std::vector<std::string>& alternatives() const { return alternatives_; }
  int devices() const { return devices_; }  // as probe reported
  bool can_capture() const;

 private:
  std::filesystem::path path_;
  gpunn_plugin table_{};
  std::string name_, base_;
  std::vector<std::string> alternatives_;
  int devices_ = 0;
};

enum class Alternatives { left_out, included };

// All plugins that were found, and the reports of the files that could not be used. Making a registry or a chain starts
// only the drivers that the chain needs.
class PluginRegistry {
 public:
  explicit PluginRegistry(const std::vector<std::filesystem::path>& extra = {});
  ~PluginRegistry();
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  // The report of each file, after probing every plugin.
  std::vector<PluginReport> reports() const;
  // The same as far as it is known without asking a driver: OK says that the plugin loads.
  const std::vector<PluginReport>& files() const { return files_; }

  // The plugin of this name (or file path; "auto": the working one of the largest priority) and its bases, overlay
  // first. Throws Error(missing) saying why one can't serve, with the candidates; a base that is absent or in a cycle
  // is such a reason. The alternatives of a plugin that has a base follow it, as far as they can serve.
  std::vector<std::shared_ptr<const Plugin>> chain(const std::string& name,
                                                   Alternatives alternatives = Alternatives::left_out) const;

  // For the user: which file is left out because this plugin has its name and is found first; empty: none.
  std::string notice(const Plugin& plugin) const;

 private:
  using Chain = std::vector<std::shared_ptr<const Plugin>>;
  std::shared_ptr<const Plugin> find(const std::string& name, const std::string& needed_by) const;
  Chain chain_of(std::shared_ptr<const Plugin> top) const;
  Chain best_chain() const;
  void insert_alternatives(Chain& chain) const;

  std::vector<PluginReport> files_;
};

// Calls shutdown() of every loaded plugin, once, overlays before their bases. Devices must be closed. The CLI calls it
// at the end of main.
void shutdown_plugins() noexcept;

}  // namespace gpunn::plugins
