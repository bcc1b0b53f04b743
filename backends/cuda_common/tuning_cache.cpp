#include "cuda_common/tuning_cache.hpp"

#include <gpunn/abi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace gpunn::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "gpunn tuning 1";
constexpr std::size_t kLongestLine = 2048;
constexpr std::uintmax_t kLargestFile = 16U << 20U;

fs::path folder() {
  if (const char* given = std::getenv("GPUNN_CACHE_DIR"); given != nullptr) return given;
  // As the XDG base directory specification has it, a relative path counts as none.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && fs::path(cache).is_absolute()) {
    return fs::path(cache) / "gpunn";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".cache" / "gpunn";
  }
  return {};
}

// "cudnn", "NVIDIA H200" and "driver 580.1" as "cudnn-nvidia_h200-driver_580.1.tuning".
std::string file_name(const std::vector<std::string>& platform) {
  std::string name;
  for (const std::string& part : platform) {
    if (!name.empty()) name += '-';
    for (const char c : part) {
      const bool upper = c >= 'A' && c <= 'Z';
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
      name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_';
    }
  }
  return name + ".tuning";
}

bool is_text(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Why the file can't be used, or nothing, with its lines in `algorithms`.
std::string read(const fs::path& file, std::map<std::string, std::string>& algorithms) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(file, failed);
  if (failed) return failed.message();
  if (size > kLargestFile) return "it is larger than 16 MiB";
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line) || line != kFormat) return std::string("its first line is not '") + kFormat + "'";
  for (int64_t number = 2; std::getline(in, line); ++number) {
    const std::size_t tab = line.find('\t');
    const bool sound = line.size() <= kLongestLine && tab != std::string::npos && is_text(line.substr(0, tab)) &&
                       is_text(line.substr(tab + 1));
    if (!sound) return "line " + std::to_string(number) + " is not an op, a tab and an algorithm";
    algorithms.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  return in.bad() ? "it can't be read" : "";
}

}  // namespace

TuningCache::TuningCache(const std::vector<std::string>& platform, Log log) : log_(std::move(log)) {
  const fs::path into = folder();
  if (!into.empty()) file_ = into / file_name(platform);
}

void TuningCache::load() {
  loaded_ = true;
  std::error_code failed;
  if (file_.empty() || !fs::exists(file_, failed)) return;
  std::map<std::string, std::string> found;
  const std::string problem = read(file_, found);
  if (problem.empty()) {
    algorithms_.merge(found);
  } else if (!damage_reported_) {
    damage_reported_ = true;
    log_(GPUNN_LOG_WARNING, "the tuning cache " + file_.string() + " is ignored and will be written anew: " + problem);
  }
}

std::optional<std::string> TuningCache::find(const std::string& key) {
  if (!loaded_) load();
  const auto found = algorithms_.find(key);
  if (found == algorithms_.end()) return std::nullopt;
  return found->second;
}

void TuningCache::store(const std::string& key, const std::string& algorithm) {
  if (!is_text(key) || !is_text(algorithm) || key.size() + algorithm.size() + 1 > kLongestLine) return;
  algorithms_[key] = algorithm;
  load();  // what others have added in the meantime; what is known here stays
  if (!file_.empty()) save();
}

void TuningCache::save() const {
  std::error_code failed;
  fs::create_directories(file_.parent_path(), failed);
  static std::atomic<int> count{0};
  fs::path temporary = file_;
  temporary += "." + std::to_string(getpid()) + "-" + std::to_string(++count) + ".tmp";
  {
    std::ofstream out(temporary, std::ios::trunc);
    out << kFormat << '\n';
    for (const auto& [key, algorithm] : algorithms_) out << key << '\t' << algorithm << '\n';
    out.close();
    if (!out) {
      log_(GPUNN_LOG_DEBUG, "the tuning cache " + file_.string() + " can't be written");
      fs::remove(temporary, failed);
      return;
    }
  }
  fs::rename(temporary, file_, failed);
  if (failed) {
    log_(GPUNN_LOG_DEBUG, "the tuning cache " + file_.string() + " can't be written: " + failed.message());
    fs::remove(temporary, failed);
  }
}

}  // namespace gpunn::cuda
