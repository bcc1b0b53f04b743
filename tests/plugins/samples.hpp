// The sample plugins that tests/plugins/CMakeLists.txt builds.
#pragma once

#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "plugins/plugin.hpp"
#include "samples/control.hpp"
#include "temporary_folder.hpp"

namespace samples {

inline std::filesystem::path folder(const std::string& name) { return std::filesystem::path(GPUNN_SAMPLE_DIR) / name; }

inline std::filesystem::path file(const std::string& where, const std::string& name) {
  return folder(where) / ("libgpunn_backend_" + name + ".so");
}

// What is reported of one file.
inline gpunn::PluginReport report(const std::filesystem::path& path) {
  for (const gpunn::PluginReport& found : gpunn::list_plugins({path})) {
    if (found.path == path) return found;
  }
  throw std::runtime_error("no report of " + path.string());
}

// The controls of a sample.
inline Control& control(const gpunn::plugins::Plugin& plugin) {
  return *static_cast<Control*>(const_cast<void*>(plugin.table().extension("test.control")));
}

// Puts a sample into good order, however the test ends.
class Controlled {
 public:
  explicit Controlled(const gpunn::plugins::Plugin& plugin) : control_(control(plugin)) { control_ = Control{}; }
  Controlled(const Controlled&) = delete;
  Controlled& operator=(const Controlled&) = delete;
  ~Controlled() { control_ = Control{}; }
  Control* operator->() const { return &control_; }
  Control& operator*() const { return control_; }

 private:
  Control& control_;
};

template <std::size_t N>
void set(char (&to)[N], const std::string& text) {
  text.copy(to, N - 1);
  to[std::min(text.size(), N - 1)] = '\0';
}

using gpunn::testing::TemporaryFolder;

// An environment variable, for a while.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name); before != nullptr) {
      had_ = true;
      before_ = before;
    }
    setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

// The text of the Error that `action` throws; its exit code is checked by the caller through `code`.
template <class F>
std::string error_of(F action, gpunn::ExitCode* code = nullptr) {
  try {
    action();
  } catch (const gpunn::Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
  return "(no error)";
}

}  // namespace samples
