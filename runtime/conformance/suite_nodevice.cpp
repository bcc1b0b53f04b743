#include "conformance/suite_nodevice.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <utility>

#include "conformance/abi/abi_checks.hpp"
#include "plugins/call.hpp"
#include "plugins/discovery.hpp"
#include "plugins/loader.hpp"
#include "plugins/negotiation.hpp"

namespace gpunn::conformance {

namespace fs = std::filesystem;

namespace {

// What hides devices from the driver of a vendor.
constexpr std::pair<const char*, const char*> kHiding[] = {
    {"CUDA_VISIBLE_DEVICES", ""}, {"HIP_VISIBLE_DEVICES", "-1"}, {"ROCR_VISIBLE_DEVICES", "-1"}};

// Threads, or open files, of this process.
std::size_t count_of(const char* folder) {
  std::error_code error;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder, error), fs::directory_iterator()));
}

// A plugin that has not been asked anything yet.
struct Fresh {
  fs::path file;
  plugins::Library library;
  const gpunn_plugin* table = nullptr;  // what the query gave
  std::size_t threads = 0, files = 0;   // that the query left behind
};

Fresh load(const fs::path& file) {
  Fresh plugin{file, plugins::load_library(file), nullptr, 0, 0};
  if (plugin.library.status != PluginStatus::ok) return plugin;
  const auto query = reinterpret_cast<gpunn_plugin_query_v1_fn>(plugin.library.symbol("gpunn_plugin_query_v1"));
  if (query == nullptr) return plugin;
  const std::size_t threads = count_of("/proc/self/task"), files = count_of("/proc/self/fd");
  plugin.table = query(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR);
  plugin.threads = count_of("/proc/self/task") - std::min(threads, count_of("/proc/self/task"));
  plugin.files = count_of("/proc/self/fd") - std::min(files, count_of("/proc/self/fd"));
  return plugin;
}

// The plugin that the user means. Files with a matching name come first, so that a fault of another plugin is not taken
// for a fault of this one.
Fresh find_plugin(const CheckOptions& options) {
  const std::string& wanted = options.backend;
  if (wanted.find_first_of("/.") != std::string::npos) return load(fs::absolute(wanted).lexically_normal());
  std::vector<plugins::Candidate> candidates = plugins::discover(options.plugins);
  std::stable_partition(candidates.begin(), candidates.end(), [&](const plugins::Candidate& candidate) {
    return candidate.path.filename() == "libgpunn_backend_" + wanted + ".so";
  });
  for (const plugins::Candidate& candidate : candidates) {
    if (!candidate.problem.empty()) continue;
    Fresh plugin = load(candidate.path);
    if (plugin.table != nullptr && plugin.table->name != nullptr && wanted == plugin.table->name) return plugin;
  }
  return {};
}

struct Probe {
  plugins::CallResult result;
  int32_t devices = 0;
};

Probe probe(const gpunn_plugin& table) {
  Probe probe;
  probe.result = plugins::guarded([&](gpunn_error* error) { return table.probe(&probe.devices, error); });
  return probe;
}

bool is_in_words(const std::string& reason) { return reason.size() >= 10 && reason.find(' ') != std::string::npos; }

std::string quoted(const plugins::CallResult& result) {
  return plugins::name_of_status(result.status) + " with the text '" + result.message + "'";
}

void check_query(const Fresh& plugin) {
  demand(plugin.threads == 0, "gpunn_plugin_query_v1 started " + std::to_string(plugin.threads) +
                                  " threads; it must be pure: leave them to device_open");
  demand(plugin.files == 0, "gpunn_plugin_query_v1 left " + std::to_string(plugin.files) +
                                " files open; it must be pure: leave drivers to probe and device_open");
  const auto query = reinterpret_cast<gpunn_plugin_query_v1_fn>(plugin.library.symbol("gpunn_plugin_query_v1"));
  demand(query(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR) != nullptr, "gpunn_plugin_query_v1 gave NULL when asked again");
  demand(query(GPUNN_ABI_MAJOR + 1, 0) == nullptr,
         "gpunn_plugin_query_v1 gave a table to a host of ABI major version " + std::to_string(GPUNN_ABI_MAJOR + 1) +
             ", which it can't know; expected NULL");
}

void check_probe(const Fresh& plugin) {
  const Probe first = probe(*plugin.table), second = probe(*plugin.table);
  if (first.result.ok()) {
    demand(first.devices >= 1, "probe said OK and counted " + std::to_string(first.devices) +
                                   " devices; expected at least one, or GPUNN_NO_DEVICE with the reason");
  } else {
    demand(first.result.status == GPUNN_NO_DEVICE,
           "with all devices hidden, probe returned " + quoted(first.result) + "; expected NO_DEVICE and the reason");
    demand(is_in_words(first.result.message),
           "probe returned " + quoted(first.result) + "; expected a reason that tells the user what to do");
  }
  demand(first.result.status == second.result.status && first.devices == second.devices,
         "a second probe said something else: " + quoted(second.result));
}

void check_open(const Fresh& plugin, const Note& note) {
  const Probe found = probe(*plugin.table);
  const int32_t count = found.result.ok() ? found.devices : 0;
  for (const int32_t index : {count, 1 << 20, -1}) {
    note("device_open of device " + std::to_string(index) + " of " + std::to_string(count));
    gpunn_device_options options{};
    options.struct_size = sizeof(options);
    options.index = index;
    gpunn_device* device = nullptr;
    const plugins::CallResult result =
        plugins::guarded([&](gpunn_error* error) { return plugin.table->device_open(&options, &device, error); });
    const std::string what = "device_open of device " + std::to_string(index) + ", of " + std::to_string(count) + ",";
    if (result.ok() && device != nullptr) plugin.table->device_close(device);
    demand(!result.ok(), what + " said OK; expected a failure");
    demand(is_in_words(result.message), what + " returned " + quoted(result) + "; expected a reason in words");
  }
}

void check_shutdown(const Fresh& plugin) {
  probe(*plugin.table);
  plugin.table->shutdown();
}

struct NoDeviceCheck {
  const char* member;
  const char* name;
  void (*run)(const Fresh& plugin, const Note& note);
};

constexpr NoDeviceCheck kChecks[] = {
    {"query", "the library loads, and its query is pure", [](const Fresh& p, const Note&) { check_query(p); }},
    {"probe", "says why there is no device, or finds one", [](const Fresh& p, const Note&) { check_probe(p); }},
    {"device_open", "refuses what is not there", check_open},
    {"shutdown", "after a probe", [](const Fresh& p, const Note&) { check_shutdown(p); }},
};

class NoDeviceWork final : public Work {
 public:
  explicit NoDeviceWork(const CheckOptions& options) : options_(options) {}

  Opened open() override {
    for (const auto& [name, value] : kHiding) setenv(name, value, 1);
    return {options_.backend, "", ""};
  }
  std::size_t size() const override { return std::size(kChecks); }
  void run(std::size_t index, CheckCase& result, const Note& note) override {
    if (plugin_.table == nullptr) load(note);
    if (!absent_.empty()) {
      result.verdict = Verdict::unsupported;
      result.detail = absent_;
      return;
    }
    note(std::string(kChecks[index].member) + " with all devices hidden");
    kChecks[index].run(plugin_, note);
  }
  void close() override {}

 private:
  void load(const Note& note) {
    note("loading the library with all devices hidden");
    plugin_ = find_plugin(options_);
    if (plugin_.file.empty()) {
      absent_ = "no plugin of the name '" + options_.backend + "' can be loaded";  // others say why
      return;
    }
    const PluginStatus status = plugin_.library.status;
    demand(status == PluginStatus::ok, std::string(name_of(status)) + ": " + plugin_.library.detail);
    const plugins::Negotiated negotiated = plugins::negotiate(plugin_.library);
    demand(negotiated.status == PluginStatus::ok, std::string(name_of(negotiated.status)) + ": " + negotiated.detail);
  }

  const CheckOptions& options_;
  Fresh plugin_;
  std::string absent_;
};

}  // namespace

NoDeviceSuite nodevice_suite(const CheckOptions& options) {
  NoDeviceSuite suite{{}, std::make_unique<NoDeviceWork>(options)};
  for (const NoDeviceCheck& check : kChecks) {
    suite.labels.push_back(make_check("nodevice", check.member, check.name).labels);
  }
  return suite;
}

}  // namespace gpunn::conformance
