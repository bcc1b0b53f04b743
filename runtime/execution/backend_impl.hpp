#pragma once

#include <gpunn/subgraph.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "execution/backend.hpp"
#include "execution/host_copies.hpp"
#include "execution/measurement/kernel_times.hpp"
#include "execution/memory_pool.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

class RankSubgraphs;

// One plugin of the chain, opened.
struct Level {
  std::shared_ptr<const plugins::Plugin> plugin;
  gpunn_device* device = nullptr;
  gpunn_stream* stream = nullptr;
  gpunn_device_info info{};
  int rank = 0;                                         // the level of the highest of plugins that are alternatives
  bool concurrent = false;                              // its kernels may run at the same time on several streams
  const gpunn_subgraph_extension* subgraphs = nullptr;  // nullptr: it fuses no subgraphs
  std::shared_ptr<RankSubgraphs> ranks{};               // nullptr: its subgraphs include no collectives
  std::unique_ptr<HostCopies> host_copies{};            // only if its memory is not that of the bottom plugin
  bool on_host() const { return std::string_view(info.memory_domain) == "host"; }  // its memory is the host's
  const gpunn_plugin& table() const { return plugin->table(); }
};

// The pool's blocks are memory of the plugin at the bottom of the chain.
struct Backend::Impl final : MemoryPool::Source {
  BackendOptions options;
  std::vector<Level> levels;  // overlay first
  uint64_t allocated_bytes = 0;
  int64_t allocations = 0;
  int64_t synchronizations = 0;
  // While kernels are wanted by name: the kernel names of the ops that place() saw, and the ones that were taken.
  KernelNames kernel_names;
  std::shared_ptr<distributed::Team> team;         // nullptr: there is one rank
  int planned_ranks = 1;                           // of a step that is planned and not run
  std::shared_ptr<RankCommunicator> communicator;  // of the bottom plugin; nullptr: sums go through the host
  std::unique_ptr<KernelTimes> kernel_times;       // nullptr: there are no alternatives to choose from by time
  MemoryPool pool{*this};
  bool pooling = true;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() override;  // closes what was opened

  // The plugin that owns memory and stream.
  const Level& bottom() const { return levels.back(); }
  void open(std::vector<std::shared_ptr<const plugins::Plugin>> chain);
  // Tells it where messages of plugins go, once in the life of the process.
  void warn_once(const std::string& text);
  void sync(const std::string& after);
  Placement place_wanted(const graph::OpSignature& signature, const std::vector<NamedKernel>& there);
  bool between_ranks(const graph::OpSignature& signature) const;
  Placement fastest(const graph::OpSignature& signature, Placement highest);

  // nullptr, with the reason in `result`, if the plugin has none.
  void* plugin_memory(int32_t kind, uint64_t bytes, plugins::CallResult& result);
  [[noreturn]] void no_memory(int32_t kind, uint64_t bytes, const plugins::CallResult& result);
  uint64_t ask_free_bytes() const;
  // MemoryPool::Source.
  void* allocate(uint64_t bytes) override;
  void release(void* data) noexcept override;
  void wait() noexcept override;

  // A new stream of the bottom plugin, and its wrappers in the other plugins, by level. Plugins with their own memory
  // have their own streams.
  std::vector<gpunn_stream*> make_streams() const;
  // The same of a stream that the caller has: every plugin wraps it.
  std::vector<gpunn_stream*> wrap_stream(void* native) const;
  void destroy_streams(const std::vector<gpunn_stream*>& streams) const noexcept;

 private:
  void open_levels(std::vector<std::shared_ptr<const plugins::Plugin>> chain);
  void rank_levels();
  void open_device(Level& level);
  void open_subgraphs(Level& level);
  void settle_domains();
};

}  // namespace gpunn::execution
