#pragma once

#include <gpunn/abi.h>
#include <gpunn/error.hpp>
#include <gpunn/export.h>
#include <gpunn/precision.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "execution/memory_pool.hpp"
#include "graph/graph.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::distributed {
class Team;
}

namespace gpunn::execution {

// A tensor in the form that crosses the ABI: packed, row-major. Throws Error beyond GPUNN_MAX_RANK dimensions.
gpunn_tensor abi_tensor(const TensorType& type, void* data);
// GPUNN_PRECISION_...
int32_t abi_precision(Precision precision);

struct BackendOptions {
  int device = 0;
  int threads = 0;  // 0: the backend's choice
  Precision precision = Precision::fp32;
  bool deterministic = false;
  bool host_copies = false;  // an overlay may have memory of its own, with copies through the host
  int streams = 4;           // on which ops of a captured program may run at the same time; 1: one after another
  bool subgraphs = true;     // a plugin may fuse consecutive ops (subgraph.hpp)
  // With plugins that name each other as alternatives (GPUNN_EXTENSION_ALTERNATIVES), the one that is known to be
  // faster runs an op. False: the chain is the plugin and its bases, and the highest runs it.
  bool alternatives = false;
  // Kernels wanted by their names, as "gemm:3": each op takes the first of them that a plugin of the chain has for it.
  std::vector<std::string> kernels = {};
  bool kernels_where_named = false;  // a chain of plugins that know of no names runs with its own choice
  // Gets the messages of plugins: a GPUNN_LOG_* level and a sentence. If it is empty, warnings go to standard error,
  // and with GPUNN_LOG=info or debug in the environment the other messages as well.
  std::function<void(int level, const std::string& message)> log = {};
};

class Backend;
class FusedSubgraph;
class CallerStream;
class Event;
class Streams;
class KernelTimes;
class ProgramDescription;
class RankCommunicator;
class RankSums;
struct Subgraph;
struct Subgraphs;

// The device has too little memory for a request.
class GPUNN_API OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(message, ExitCode::missing) {}
};

// Device or pinned memory of a backend; freed with the buffer, or given back to the pool that it came from. Must not
// outlive the backend.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  friend class Backend;
  Buffer(Backend* backend, int32_t kind, void* data, uint64_t bytes, bool pooled);
  Backend* backend_ = nullptr;
  int32_t kind_ = 0;
  bool pooled_ = false;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// The plugin that serves an op, or why no plugin does.
struct Placement {
  int level = -1;  // index into the chain: 0 is the overlay on top; -1: no plugin serves it
  uint64_t workspace_bytes = 0;
  uint32_t flags = 0;
  std::string reason;       // why the plugins above the one that serves it don't; where none does, why all don't
  std::string kernel = {};  // the one of BackendOptions.kernels that serves; empty: the plugin's own choice
  int score = 0;            // the plugin's, to compare with its answer to another layout
  int rank = -1;            // the level of the highest plugin that names it as an alternative: equals in the chain
  double seconds = 0;       // what the kernel takes; 0: not measured (kernel_times.hpp)
};

// A kernel that a plugin of the chain gives a name to.
struct NamedKernel {
  int level = 0;
  std::string name;
};

// An op bound to one plugin and shape.
class Kernel {
 public:
  Kernel();
  Kernel(Kernel&& other) noexcept;
  Kernel& operator=(Kernel&& other) noexcept;
  ~Kernel();
  // Puts the op on the backend's stream. `what` names it in an error.
  void enqueue(std::span<const gpunn_tensor> inputs, std::span<const gpunn_tensor> outputs, void* workspace,
               const std::string& what);
  // The same with arguments that were built before; allocates nothing. They must be those of this kernel's signature.
  void enqueue(const gpunn_op_args& args, const std::string& what);
  // The same on another of `streams`.
  void enqueue(const gpunn_op_args& args, const std::string& what, const Streams& streams, std::size_t stream);
  // The same on a stream of the caller.
  void enqueue(const gpunn_op_args& args, const std::string& what, const CallerStream& stream);
  explicit operator bool() const { return state_ != nullptr; }
  // Whether all ranks have to run it at the same time, in one order.
  bool collective() const;

 private:
  friend class Backend;
  struct State;
  void enqueue_on(gpunn_stream* stream, const gpunn_op_args& args, const std::string& what);
  std::unique_ptr<State> state_;
};

// A plugin with its bases, opened on one device, with one stream that all of them share.
class Backend {
 public:
  // Throws Error if the plugin or a base can't serve, or if their memory domains differ and host copies are not
  // allowed.
  Backend(const plugins::PluginRegistry& registry, const std::string& name, const BackendOptions& options = {});
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  std::string name() const;
  std::vector<std::string> chain() const;     // names, overlay first
  std::vector<std::string> versions() const;  // of the same plugins, as they tell them
  const gpunn_device_info& info() const;      // of the base at the bottom, which owns memory and stream
  bool can_capture() const;
  // Whether the work of this chain level can be captured. A host stream has no native handle that would let the plugin
  // at the bottom record another's work.
  bool can_capture(int level) const;
  // Whether kernels of this chain level may run at the same time on several streams.
  bool concurrent(int level) const;
  // The alignment in bytes that kernels of this chain level need of tensors; 1: that of an element.
  uint64_t tensor_alignment(int level) const;
  const BackendOptions& options() const;
  // Messages for the user about the chain: that it copies through the host. Empty: none.
  std::string notice() const;

  Placement place(const graph::OpSignature& signature) const;
  // The plugin that serves an op, and those beside it that serve it as its alternatives.
  std::vector<Placement> alternatives(const graph::OpSignature& signature) const;
  // The place in the chain that counts when plugins are compared, by level.
  int rank(int level) const;
  // The faster alternative for each op. nullptr: there are no alternatives, or kernels must be deterministic, so that
  // no timing may choose them.
  KernelTimes* kernel_times() const;
  // Chooses the plugin of chain level `level`, and the kernel of that name if there is one. Bit i of `constant_inputs`
  // says that input i has the same address and bytes at each enqueue.
  Kernel create(const graph::OpSignature& signature, int level, const std::string& kernel = {},
                uint64_t constant_inputs = 0);
  // Throws Error where the kernel wants more scratch memory than it was placed with, in another process say.
  Kernel create(const graph::OpSignature& signature, const Placement& placement, uint64_t constant_inputs = 0);
  // The named kernels that serve it, whatever is wanted: overlay first, each plugin's in its own order.
  std::vector<NamedKernel> kernels(const graph::OpSignature& signature) const;
  // The name of the kernel that runs an op that is placed so: the wanted one, or the plugin's choice among its named
  // ones. Empty: its kernels have no names, or several score alike.
  std::string kernel_name(const graph::OpSignature& signature, const Placement& placement) const;
  // Ops between ranks run with these ranks from here on; without a team, as with a single one.
  void join(std::shared_ptr<distributed::Team> team);
  // From here on, ops between this many ranks are planned, and cannot run.
  void plan_ranks(int world);
  // Replaces BackendOptions.kernels. Throws Error if a name is wanted and no plugin of the chain has named kernels.
  void want_kernels(std::vector<std::string> names);
  // If kernels are wanted by name: the names that the ops placed so far have, and those that were taken.
  struct KernelNames {
    std::set<std::string> known, taken;
  };
  const KernelNames& kernel_names() const;

  // The plugins that fuse subgraphs, highest first, without those that compute in memory of their own.
  std::vector<std::string> fusing_plugins() const;
  // Offers them the ops of a step program. `placements` are those of its nodes, all of them served. Nodes and
  // placements change their order, so that the ops of a subgraph stand together.
  Subgraphs fuse_subgraphs(graph::Graph& graph, std::vector<Placement>& placements) const;
  // Throws Error where the plugin of a subgraph wants more scratch memory than was planned for it, elsewhere say.
  void require_workspaces(const graph::Graph& graph, const std::vector<Subgraph>& subgraphs) const;
  // `description` describes the graph.
  FusedSubgraph create(const graph::Graph& graph, const Subgraph& subgraph, const ProgramDescription& description);

  // Memory of exactly this size, for planned buffers that stay. Throws OutOfMemory.
  Buffer allocate(uint64_t bytes, int32_t kind = GPUNN_MEMORY_DEVICE);
  // Device memory from a pool (memory_pool.hpp), for short-lived buffers outside every plan. It is used on the
  // backend's stream only. With GPUNN_POOL=0 in the environment it comes from allocate(), so that a memory checker sees
  // each buffer's ends.
  Buffer allocate_temporary(uint64_t bytes);
  uint64_t allocated_bytes() const;  // device memory now held by buffers
  int64_t allocations() const;       // ever made of a plugin
  const PoolStatistics& pool_statistics() const;
  // The free memory of the device, including unused blocks of the pool; 0: the device does not tell.
  uint64_t free_bytes();
  int64_t synchronizations() const;  // how often the host has waited for the device, blocking copies included

  // Blocking copies; any size, from and to ordinary host memory.
  void upload(void* device, const void* host, uint64_t bytes);
  void download(void* host, const void* device, uint64_t bytes);
  // The same, enqueued without waiting: `pinned`, of GPUNN_MEMORY_PINNED, must not change until the copy is done.
  void enqueue_upload(void* device, const void* pinned, uint64_t bytes);
  void enqueue_download(void* pinned, const void* device, uint64_t bytes);
  // Copies within the device, on the stream.
  void fill(void* device, uint8_t value, uint64_t bytes);
  void copy(void* to, const void* from, uint64_t bytes);
  void synchronize();

  // A mark on the stream (event.hpp).
  Event make_event();
  // Later work on the stream waits for the event; the host does not.
  void wait_for(const Event& event);

  // Milliseconds on the device between two marks on the stream.
  class Timer;
  std::unique_ptr<Timer> make_timer();

  // Records the work enqueued until end_capture(), which returns a graph to launch; only if can_capture().
  void begin_capture();
  class Captured;
  std::unique_ptr<Captured> end_capture();

 private:
  friend class Buffer;
  friend class CallerStream;
  friend class CopyStream;
  friend class Event;
  friend class Kernel;
  friend class Streams;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws Error, with the known names, if no op placed so far takes one of the `wanted` kernels; with `where_named`,
// only if there are names.
void require_wanted_kernels(std::span<const Backend* const> backends, const std::vector<std::string>& wanted,
                            bool where_named = false);

class Backend::Timer {
 public:
  virtual ~Timer() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  virtual double milliseconds() = 0;  // waits for stop to be reached
};

class Backend::Captured {
 public:
  virtual ~Captured() = default;
  virtual void launch() = 0;
};

// Captures the work that `enqueue` puts on the stream as a graph. The stream leaves capture mode in any case.
std::unique_ptr<Backend::Captured> capture(Backend& backend, const std::function<void()>& enqueue);

}  // namespace gpunn::execution
