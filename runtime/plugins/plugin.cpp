#include "plugins/plugin.hpp"

#include <sstream>
#include <utility>

#include "plugins/call.hpp"

namespace gpunn {

std::string_view name_of(PluginStatus status) {
  switch (status) {
    case PluginStatus::ok:
      return "OK";
    case PluginStatus::not_a_plugin:
      return "NOT_A_PLUGIN";
    case PluginStatus::abi_mismatch:
      return "ABI_MISMATCH";
    case PluginStatus::dependency_missing:
      return "DEPENDENCY_MISSING";
    case PluginStatus::no_device:
      return "NO_DEVICE";
    case PluginStatus::name_clash:
      return "NAME_CLASH";
    case PluginStatus::shadowed:
      return "SHADOWED";
    case PluginStatus::invalid:
      return "INVALID";
  }
  return "?";
}

}  // namespace gpunn

namespace gpunn::plugins {

Plugin::Plugin(std::filesystem::path path, const gpunn_plugin& table, int devices)
    : path_(std::move(path)),
      table_(table),
      name_(table.name),
      base_(table.base == nullptr ? "" : table.base),
      devices_(devices) {
  guarded_void([&] {
    const auto* const names =
        table.extension == nullptr ? nullptr : static_cast<const char*>(table.extension(GPUNN_EXTENSION_ALTERNATIVES));
    std::istringstream text(names == nullptr ? "" : names);
    for (std::string name; std::getline(text, name, ',');) {
      if (!name.empty()) alternatives_.push_back(name);
    }
  });
}

bool Plugin::can_capture() const {
  return table_.capture_begin != nullptr && table_.capture_end != nullptr && table_.graph_launch != nullptr &&
         table_.graph_free != nullptr;
}

}  // namespace gpunn::plugins
