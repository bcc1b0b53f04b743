#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// How long the kernels of a chain's plugins take, on this device, by op and shape. It is kept between processes in
// kernel_times.json: in $GPUNN_CACHE_DIR; else in $XDG_CACHE_HOME/gpunn; else in ~/.cache/gpunn. An empty
// GPUNN_CACHE_DIR means no file. The times of a plugin whose file changed are forgotten. A file that can't be read or
// written is done without.
class KernelTimes {
 public:
  // `plugins`: the files of the chain's plugins, by level. `device`: the device and its driver.
  KernelTimes(const std::vector<std::filesystem::path>& plugins, std::string device);

  // The op in a text: its types, attributes and precision.
  static std::string key_of(const graph::OpSignature& signature, const BackendOptions& options);

  // In seconds. Infinite: its kernel does not run.
  std::optional<double> find(const std::string& key, int level) const;
  void set(const std::string& key, int level, double seconds);
  void save() const;

  // Keeps the question for measure_alternatives().
  void ask(const std::string& key, const graph::OpSignature& signature) { asked_.emplace(key, signature); }
  std::map<std::string, graph::OpSignature> take_asked() { return std::exchange(asked_, {}); }

 private:
  using Times = std::map<std::string, double>;  // microseconds, by key_of()

  struct PluginFile {
    std::string path, stamp;
    Times times;
  };
  void load();

  std::filesystem::path file_;
  std::string device_;
  std::vector<PluginFile> plugins_;
  std::map<std::string, graph::OpSignature> asked_;
};

// Times the kernels of ops that Backend::place() saw and that several plugins serve as alternatives. Returns whether
// there was one.
bool measure_alternatives(Backend& backend);

}  // namespace gpunn::execution
