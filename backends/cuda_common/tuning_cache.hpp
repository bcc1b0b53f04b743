// The tuning cache: stores the fastest algorithm for each op and shape in a file between runs.
//
// The file lies in $GPUNN_CACHE_DIR, else in $XDG_CACHE_HOME/gpunn, else in ~/.cache/gpunn. An empty GPUNN_CACHE_DIR
// means no file. The file name contains all that the choice depends on: GPU, driver and versions of the libraries. The
// first line names the format. Each further line holds the key of an op and shape, a tab, and the algorithm's name.
//
// The program works without the file. A damaged or unreadable file is ignored and replaced; if the file can't be
// written, the program goes on. The library checks a stored algorithm before it is used. The file is replaced
// atomically, so that several processes may share it. A process may overwrite another's new entries, which are then
// tuned again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpunn::cuda {

class TuningCache {
 public:
  using Log = std::function<void(int32_t level, const std::string& message)>;

  // `platform`: the backend, the GPU, the driver and the versions of libraries. The file is read at the first lookup.
  TuningCache(const std::vector<std::string>& platform, Log log);

  std::optional<std::string> find(const std::string& key);

  // Neither text may hold a tab, a line break or any other control character.
  void store(const std::string& key, const std::string& algorithm);

  // Empty if there is no file.
  const std::filesystem::path& file() const { return file_; }

 private:
  void load();
  void save() const;

  Log log_;
  std::filesystem::path file_;
  bool loaded_ = false;
  bool damage_reported_ = false;
  std::map<std::string, std::string> algorithms_;
};

}  // namespace gpunn::cuda
