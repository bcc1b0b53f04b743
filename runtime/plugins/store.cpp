#include "plugins/store.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "plugins/call.hpp"
#include "plugins/file_id.hpp"
#include "plugins/loader.hpp"
#include "plugins/negotiation.hpp"

namespace gpunn::plugins {

namespace {

constexpr std::size_t kTextLimit = 1024;
constexpr int32_t kAbsurdDevices = 1024;

struct Entry {
  FileId file;
  Loaded loaded;
  gpunn_plugin table{};     // zero where negotiation failed
  bool negotiated = false;  // shutdown is owed
  bool probed = false;
};

struct Store {
  std::mutex mutex;
  std::vector<Entry> entries;
};

// Never destroyed: plugins live until the process ends.
Store& store() {
  static auto* const instance = new Store;
  return *instance;
}

std::string bounded(const char* text) { return text == nullptr ? "" : std::string(text, strnlen(text, kTextLimit)); }

void probe(const gpunn_plugin& table, PluginReport& report) {
  int32_t count = 0;
  const CallResult result = guarded([&](gpunn_error* error) { return table.probe(&count, error); });
  if (!result.ok()) {
    report.status = result.status == GPUNN_NO_DEVICE ? PluginStatus::no_device : PluginStatus::invalid;
    const std::string reason = result.message.empty() ? "the plugin gave no reason" : result.message;
    report.detail = result.status == GPUNN_NO_DEVICE
                        ? reason
                        : "its probe failed (" + name_of_status(result.status) + "): " + reason;
  } else if (count < 0 || count > kAbsurdDevices) {
    report.status = PluginStatus::invalid;
    report.detail = "its probe reported " + std::to_string(count) + " devices";
  } else if (count == 0) {
    report.status = PluginStatus::no_device;
    report.detail = "its probe found no device";
  } else {
    report.devices = count;
  }
}

Entry load(const std::filesystem::path& file, const Library& library) {
  Entry entry;
  PluginReport& report = entry.loaded.report;
  report.path = file;
  const Negotiated negotiated = negotiate(library);
  report.status = negotiated.status;
  report.detail = negotiated.detail;
  report.abi_major = negotiated.abi_major;
  report.abi_minor = negotiated.abi_minor;
  if (negotiated.status != PluginStatus::ok) return entry;

  entry.table = negotiated.table;
  entry.negotiated = true;
  report.name = negotiated.table.name;
  report.version = bounded(negotiated.table.version);
  report.build = bounded(negotiated.table.build);
  report.base = bounded(negotiated.table.base);
  report.priority = negotiated.table.priority;
  return entry;
}

// Runs `action` on the file's entry, with the store locked. Loads the file first if it is not loaded yet.
template <class Action>
Loaded with_entry(const std::filesystem::path& file, const Action& action) {
  Store& known = store();
  const std::lock_guard lock(known.mutex);
  const std::optional<FileId> id = file_id(file);
  if (id) {
    for (Entry& entry : known.entries) {
      if (entry.file == *id) return action(entry);
    }
  }
  const Library library = load_library(file);
  if (library.status != PluginStatus::ok) {
    // Not remembered: the user may mend the file, or install what it needs.
    Loaded failed;
    failed.report.path = file;
    failed.report.status = library.status;
    failed.report.detail = library.detail;
    return failed;
  }
  Entry entry = load(file, library);
  if (id) entry.file = *id;
  known.entries.push_back(std::move(entry));
  return action(known.entries.back());
}

}  // namespace

Loaded open_plugin(const std::filesystem::path& file) {
  return with_entry(file, [](const Entry& entry) { return entry.loaded; });
}

Loaded probe_plugin(const std::filesystem::path& file) {
  return with_entry(file, [&](Entry& entry) {
    if (entry.negotiated && !std::exchange(entry.probed, true)) {
      PluginReport& report = entry.loaded.report;
      probe(entry.table, report);
      if (report.status == PluginStatus::ok) {
        entry.loaded.plugin = std::make_shared<const Plugin>(file, entry.table, report.devices);
      }
    }
    return entry.loaded;
  });
}

void shutdown_plugins() noexcept {
  Store& known = store();
  const std::lock_guard lock(known.mutex);
  std::vector<Entry*> open;
  for (Entry& entry : known.entries) {
    if (std::exchange(entry.negotiated, false)) open.push_back(&entry);
  }
  while (!open.empty()) {
    // A plugin that is not the base of another; in a cycle, any.
    auto next = std::find_if(open.begin(), open.end(), [&](const Entry* candidate) {
      return std::none_of(open.begin(), open.end(), [&](const Entry* other) {
        return other->loaded.report.base == candidate->loaded.report.name;
      });
    });
    if (next == open.end()) next = open.begin();
    guarded_void([&] { (*next)->table.shutdown(); });
    open.erase(next);
  }
}

}  // namespace gpunn::plugins

void gpunn::shutdown_plugins() noexcept { plugins::shutdown_plugins(); }
