#include "execution/measurement/kernel_times.hpp"

#include <gpunn/error.hpp>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/cache_folder.hpp"
#include "common/files.hpp"
#include "execution/op_text.hpp"

namespace gpunn::execution {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr uintmax_t kLargestFile = uintmax_t{64} << 20;
constexpr double kDoesNotRun = -1;  // JSON has no infinity

fs::path folder() {
  if (const char* given = std::getenv("GPUNN_CACHE_DIR"); given != nullptr) return given;
  return cache_folder();
}

// Changes when the file does.
std::string stamp_of(const fs::path& file) {
  std::error_code failed;
  const auto written = fs::last_write_time(file, failed).time_since_epoch().count();
  return std::to_string(fs::file_size(file, failed)) + " " + std::to_string(written);
}

json read(const fs::path& file) {
  std::error_code failed;
  if (file.empty() || fs::file_size(file, failed) > kLargestFile || failed) return json::object();
  std::ifstream in(file);
  json content = json::parse(in, nullptr, false);
  return content.is_object() ? content : json::object();
}

// The member of that name, made an object where it is none.
json& object_in(json& parent, const std::string& name) {
  json& member = parent[name];
  if (!member.is_object()) member = json::object();
  return member;
}

}  // namespace

KernelTimes::KernelTimes(const std::vector<fs::path>& plugins, std::string device) : device_(std::move(device)) {
  if (const fs::path into = folder(); !into.empty()) file_ = into / "kernel_times.json";
  for (const fs::path& path : plugins) plugins_.push_back({path.string(), stamp_of(path), {}});
  load();
}

std::string KernelTimes::key_of(const graph::OpSignature& signature, const BackendOptions& options) {
  std::string key = text_of(signature) + " " + std::to_string(abi_precision(options.precision));
  const auto* const bytes = static_cast<const unsigned char*>(signature.attrs.data());
  constexpr const char* kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < signature.attrs.size(); ++i) {
    key += i == 0 ? " " : "";
    key += kDigits[bytes[i] >> 4U];
    key += kDigits[bytes[i] & 15U];
  }
  return key;
}

std::optional<double> KernelTimes::find(const std::string& key, int level) const {
  const Times& times = plugins_.at(static_cast<std::size_t>(level)).times;
  const auto found = times.find(key);
  if (found == times.end()) return std::nullopt;
  return found->second < 0 ? std::numeric_limits<double>::infinity() : found->second * 1e-6;
}

void KernelTimes::set(const std::string& key, int level, double seconds) {
  plugins_.at(static_cast<std::size_t>(level)).times[key] =
      seconds == std::numeric_limits<double>::infinity() ? kDoesNotRun : seconds * 1e6;
}

void KernelTimes::load() {
  json content = read(file_);
  json& of_device = object_in(content, device_);
  for (PluginFile& plugin : plugins_) {
    json& entry = object_in(of_device, plugin.path);
    if (entry["stamp"] != plugin.stamp) continue;
    for (const auto& [key, time] : object_in(entry, "microseconds").items()) {
      if (time.is_number()) plugin.times.emplace(key, time.get<double>());
    }
  }
}

void KernelTimes::save() const {
  if (file_.empty()) return;
  json content = read(file_);
  json& of_device = object_in(content, device_);
  for (const PluginFile& plugin : plugins_) {
    json& entry = object_in(of_device, plugin.path);
    if (entry["stamp"] != plugin.stamp) entry = {{"stamp", plugin.stamp}};
    object_in(entry, "microseconds").update(json(plugin.times));
  }
  try {
    make_folders(file_.parent_path());
    write_atomically(file_, content.dump(1) + "\n");
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the times are measured again next time
  }
}

}  // namespace gpunn::execution
