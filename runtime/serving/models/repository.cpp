#include "serving/models/repository.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "serving/models/warm_up.hpp"
#include "serving/protocol/service_error.hpp"
#include "serving/protocol/target.hpp"

namespace gpunn::serving {

namespace fs = std::filesystem;

namespace {

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 256 && text != "." && text != ".." && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

void require_name(const std::string& name) {
  if (is_name(name)) return;
  throw Error("a served model is called by letters, digits, '_', '-' and '.', not " + in_quotes(name) +
                  "; name it with NAME=PATH",
              ExitCode::usage);
}

// The versions in a folder as Triton has them: 1, 2, 3. Empty: it is none.
std::map<int64_t, fs::path> versions_in(const fs::path& folder) {
  std::map<int64_t, fs::path> versions;
  std::error_code failure;
  for (auto it = fs::directory_iterator(folder, failure); !failure && it != fs::directory_iterator();
       it.increment(failure)) {
    const auto number = parse_number<int64_t>(it->path().filename().string());
    if (number && *number > 0 && it->is_directory(failure)) versions.emplace(*number, it->path());
  }
  return versions;
}

// What stands in a version's folder: a file that holds a model, or the folder is a run.
fs::path model_in(const fs::path& folder) {
  for (const char* file : {"model.engine", "model.onnx", "model.h5"}) {
    std::error_code ignored;
    if (fs::exists(folder / file, ignored)) return folder / file;
  }
  return folder;
}

// Of a run, the name of the folder of its experiment's runs: runs/NAME/TIME.
std::string default_name(const fs::path& path, bool is_run) {
  std::error_code ignored;
  fs::path full = fs::absolute(path, ignored).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  if (is_run && full.has_parent_path() && full.parent_path().has_filename()) {
    return full.parent_path().filename().string();
  }
  return fs::is_directory(full, ignored) ? full.filename().string() : full.stem().string();
}

// As the program makes the folders of runs: 2025-01-02T03-04-05Z, with a number behind it where there are several.
bool is_time(const std::string& name) {
  return name.size() >= 20 && name[4] == '-' && name[7] == '-' && name[10] == 'T' && name[19] == 'Z';
}

// Lets the requests that have found a model before it went be answered by it.
void retire(const ServedModelPtr& old) {
  constexpr std::chrono::seconds kLongest{30};
  constexpr std::chrono::milliseconds kLook{1};
  const Clock::time_point end = Clock::now() + kLongest;
  while (old.use_count() > 1 && Clock::now() < end) std::this_thread::sleep_for(kLook);
  old->batcher.stop();
}

}  // namespace

std::vector<ModelSource> model_sources(const std::string& text) {
  std::string name;
  int64_t version = 0;
  fs::path path = text;
  std::error_code ignored;
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && !fs::exists(path, ignored)) {
    path = text.substr(equals + 1);
    name = text.substr(0, equals);
    const std::size_t colon = name.rfind(':');
    if (colon != std::string::npos) {
      version = parse_number<int64_t>(name.substr(colon + 1)).value_or(0);
      if (version < 1) {
        throw Error("a version is a whole number from 1, as in lenet:2=PATH; found " + in_quotes(name),
                    ExitCode::usage);
      }
      name.resize(colon);
    }
  }
  const fs::path folder = path.has_filename() ? path : path.parent_path();
  if (name.empty()) {
    const bool is_run = is_time(folder.filename().string()) || is_time(folder.parent_path().filename().string());
    name = default_name(is_time(folder.parent_path().filename().string()) ? folder.parent_path() : path, is_run);
  }
  require_name(name);
  const std::map<int64_t, fs::path> versions = versions_in(path);
  if (versions.empty() || version > 0) return {{name, std::max<int64_t>(version, 1), path}};
  std::vector<ModelSource> sources;
  for (const auto& [number, at] : versions) sources.push_back({name, number, model_in(at)});
  return sources;
}

void ModelRepository::add(const ModelSource& source) {
  require_name(source.name);
  const std::lock_guard lock(mutex_);
  if (!entries_[source.name].sources.emplace(source.version, source.path).second) {
    throw Error("two models are called " + in_quotes(source.name) + " in version " + std::to_string(source.version) +
                    "; give one another name, as in NAME=PATH, or another version, as in NAME:2=PATH",
                ExitCode::usage);
  }
}

void ModelRepository::replace(const std::string& name, Versions versions, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[name];
    entry.versions.swap(versions);
    entry.reason = reason;
  }
  for (const auto& [number, old] : versions) retire(old);
}

void ModelRepository::load(const std::string& name) {
  const std::lock_guard changing(changing_);
  std::map<int64_t, fs::path> sources;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.sources.empty()) {
      throw ServiceError(404, "failed to load '" + name + "': the service knows no such model");
    }
    sources = found->second.sources;
  }
  Versions versions;
  try {
    for (const auto& [number, path] : sources) {
      ModelOptions options = options_;
      options.calls = batch_.instances;
      const Model model = Model::load(path, options);
      warm_up(model, options.calls, batch_.warm_up);
      versions.emplace(number, std::make_shared<ServedModel>(name, number, model, batch_));
    }
  } catch (const std::exception& failure) {
    const std::lock_guard lock(mutex_);
    entries_[name].reason = failure.what();
    throw ServiceError(400, "failed to load '" + name + "': " + failure.what());
  }
  replace(name, std::move(versions), {});
}

void ModelRepository::put(const std::string& name, int64_t version, Model model) {
  require_name(name);
  const std::lock_guard changing(changing_);
  auto served = std::make_shared<ServedModel>(name, version, std::move(model), batch_);
  Versions versions;
  {
    const std::lock_guard lock(mutex_);
    versions = entries_[name].versions;
  }
  ServedModelPtr old = std::exchange(versions[version], std::move(served));
  {
    const std::lock_guard lock(mutex_);
    entries_[name].versions = versions;
  }
  if (old != nullptr) retire(old);
}

void ModelRepository::unload(const std::string& name) {
  const std::lock_guard changing(changing_);
  {
    const std::lock_guard lock(mutex_);
    if (!entries_.contains(name)) {
      throw ServiceError(404, "failed to unload '" + name + "': the service knows no such model");
    }
  }
  replace(name, {}, "unloaded");
}

void ModelRepository::stop() {
  const std::lock_guard changing(changing_);
  for (const ServedModelPtr& model : all()) model->batcher.stop();
}

ServedModelPtr ModelRepository::find(std::string_view name, std::string_view version) const {
  const auto unknown = [&](const std::string& what) {
    return ServiceError(404, "Request for unknown model: '" + std::string(name) + "' " + what);
  };
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw unknown("is not found");
  const Versions& versions = found->second.versions;
  if (versions.empty()) throw unknown("has no available versions");
  if (version.empty()) return versions.rbegin()->second;
  const std::optional<int64_t> number = parse_number<int64_t>(version);
  if (!number) {
    throw ServiceError(400, "failed to get model version from specified version string '" + std::string(version) + "'");
  }
  const auto at = versions.find(*number);
  if (at == versions.end()) throw unknown("version " + std::to_string(*number) + " is not found");
  return at->second;
}

std::vector<ServedModelPtr> ModelRepository::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedModelPtr> models;
  for (const auto& [name, entry] : entries_) {
    for (const auto& [number, model] : entry.versions) models.push_back(model);
  }
  return models;
}

std::vector<std::string> ModelRepository::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::vector<ModelState> ModelRepository::index() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelState> states;
  for (const auto& [name, entry] : entries_) {
    for (const auto& [number, model] : entry.versions) {
      const bool lost = model->batcher.lost();
      states.push_back({name, model->version, lost ? "UNAVAILABLE" : "READY", lost ? "its device is lost" : ""});
    }
    if (entry.versions.empty()) {
      for (const auto& [number, path] : entry.sources) {
        states.push_back({name, std::to_string(number), "UNAVAILABLE", entry.reason});
      }
    }
  }
  return states;
}

bool ModelRepository::lost() const {
  return std::ranges::any_of(all(), [](const ServedModelPtr& model) { return model->batcher.lost(); });
}

}  // namespace gpunn::serving
