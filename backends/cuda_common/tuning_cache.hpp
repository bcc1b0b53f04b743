// Which algorithm was the fastest for which op and shape, kept in a file between runs.
//
// The file lies in $GPUNN_CACHE_DIR; else in $XDG_CACHE_HOME/gpunn; else in ~/.cache/gpunn. An empty GPUNN_CACHE_DIR
// means no file. Its name holds what the choice depends on: GPU, driver and versions of the libraries. After a line
// that names the format it has a line for each op and shape: what is asked, a tab, the algorithm's name.
//
// The file is a help and nothing else: one that can't be read or is damaged is ignored and written anew, one that can't
// be written is done without, and an algorithm in it is put to the library before it is used. It is replaced in one
// piece, so that several processes may use it; what one of them learnt may be lost, and is learnt again.
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

  // `platform`: the backend, the GPU, the driver and the versions of libraries. Nothing is read before the first
  // question.
  TuningCache(const std::vector<std::string>& platform, Log log);

  std::optional<std::string> find(const std::string& key);

  // Neither text may hold a tab, a line break or any other control character.
  void store(const std::string& key, const std::string& algorithm);

  // Empty where there is none.
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
