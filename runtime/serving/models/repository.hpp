#pragma once

#include <gpunn/model.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "serving/models/served_model.hpp"

namespace gpunn::serving {

// The source of a version of a model.
struct ModelSource {
  std::string name;
  int64_t version = 1;
  std::filesystem::path path;
};

struct ModelState {
  std::string name, version;  // of a model that was never loaded: no version
  std::string state;          // READY, UNAVAILABLE
  std::string reason;         // why it is not ready
};

// Parses a MODEL of the command line, [NAME[:VERSION]=]PATH. A run folder or a file is one version; a folder whose
// subfolders are numbers holds a version in each. The name defaults to the experiment's. Throws Error.
std::vector<ModelSource> model_sources(const std::string& text);

// The models that are served, by name and version. Threads may share it.
class ModelRepository {
 public:
  ModelRepository(ModelOptions options, BatchOptions batch) : options_(std::move(options)), batch_(batch) {}
  ModelRepository(const ModelRepository&) = delete;
  ModelRepository& operator=(const ModelRepository&) = delete;
  ~ModelRepository() { stop(); }

  // Registers a source; load() reads it. Throws Error(usage) if the version is known already, or if the name is
  // invalid.
  void add(const ModelSource& source);
  // Loads all versions of a model, or loads them again; the old ones finish their requests. Throws ServiceError: 400 if
  // a file can't be loaded, and then nothing changes; 404 if the name is unknown.
  void load(const std::string& name);
  // Registers a loaded model, which replaces the model of that name and version.
  void put(const std::string& name, int64_t version, Model model);
  void unload(const std::string& name);  // returns once its requests are answered
  void stop();                           // all of them

  // `version` empty: the highest. Throws ServiceError(404).
  ServedModelPtr find(std::string_view name, std::string_view version) const;
  std::vector<ServedModelPtr> all() const;
  std::vector<std::string> names() const;  // also of models that are not loaded
  std::vector<ModelState> index() const;
  bool lost() const;  // whether a device is

 private:
  struct Entry {
    std::map<int64_t, std::filesystem::path> sources;
    std::map<int64_t, ServedModelPtr> versions;  // that are loaded
    std::string reason;                          // why it is not
  };
  using Versions = std::map<int64_t, ServedModelPtr>;

  void replace(const std::string& name, Versions versions, const std::string& reason);

  ModelOptions options_;
  BatchOptions batch_;
  std::mutex changing_;       // held while a model is loaded or unloaded
  mutable std::mutex mutex_;  // of the entries
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace gpunn::serving
