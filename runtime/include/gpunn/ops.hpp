// Runs single ops on the caller's arrays at once, for programs with their own training loops, or to call a kernel from
// another framework. Training and inference do not use this: they compile whole steps.
#pragma once

#include <gpunn/export.h>
#include <gpunn/precision.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gpunn::eager {

// --- The catalogue ---

// The values that an attribute of an op takes.
enum class AttributeKind {
  flag,      // bool
  integer,   // int64_t
  number,    // double
  pair,      // of rows and columns: two int64_t, or one that stands for both
  numbers,   // of rows and columns: two double, or one that stands for both
  list,      // int64_t, one for each dimension
  axes,      // int64_t, any dimensions, counted from 0
  axis,      // int64_t, a dimension, counted from 0
  elements,  // int64_t; the default is the number of elements of the first input
  choice,    // one of `choices`
  dtype,     // "f32", ...
};
// "flag", "integer", ...
GPUNN_API std::string_view name_of(AttributeKind kind);

// The value of an attribute; its type follows from the attribute's kind.
using AttributeValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
// An attribute as a caller gives it.
using NamedAttribute = std::pair<std::string, AttributeValue>;

// An attribute of an op, for help and for checks.
struct AttributeInfo {
  std::string name;
  AttributeKind kind = AttributeKind::integer;
  std::string help;                             // one line, with the range
  std::string range = {};                       // an interval, "[0, 1)", that each element is in; empty: anything
  std::optional<AttributeValue> fallback = {};  // empty: it must be given
  std::string same_as = {};                     // the attribute that the default is copied from
  std::vector<std::string> choices = {};        // allowed values of a choice
};

// An input or output of an op.
struct TensorInfo {
  std::string name;
  std::string shape;                // "N, C, ..."; "?": computed by the op
  std::vector<DType> dtypes;        // allowed; empty: any
  bool floating = false;            // f32, bf16 or f16: all such tensors of a call have the same
  bool optional = false;            // may be left out, with all inputs after it
  bool repeated = false;            // the last input: any number of them, also none
  int in_place = -1;                // of an output: the input whose memory it shares
  std::vector<int> may_alias = {};  // of an output: the inputs whose memory it may share
};

// An op of the catalogue: its inputs, outputs and attributes.
struct OpDescription {
  int32_t id = 0;
  std::string name;       // "conv2d"
  std::string signature;  // as op_list.inc has it
  std::string summary;    // one line
  std::string formula;    // of an element, as op_formulas.inc has it; empty: none
  std::vector<TensorInfo> inputs, outputs;
  std::vector<AttributeInfo> attributes;
  bool differentiable = false;
};

// Every op, by its id.
GPUNN_API const std::vector<OpDescription>& catalogue();

// --- An op with its attributes ---

// The tensors that the gradient of an op reads, besides the gradient of its first output.
struct GradientNeeds {
  std::vector<bool> inputs, outputs;
};

// An op of the catalogue with its attributes. A cheap handle; all functions may be called from any thread.
class GPUNN_API Op {
 public:
  // `name` in upper or lower case. Throws Error(usage) for an unknown op or attribute, an attribute of another kind, or
  // a missing one.
  explicit Op(std::string_view name, std::span<const NamedAttribute> attributes = {});

  const OpDescription& description() const;
  // The types of all outputs, including those in place. Throws Error(usage), with what was expected and found, if the
  // inputs do not fit.
  std::vector<TensorType> output_types(std::span<const TensorType> inputs) const;
  // For the gradients of the inputs in `wanted`. Throws Error(usage) if the op has no gradient.
  GradientNeeds gradient_needs(std::span<const TensorType> inputs, const std::vector<bool>& wanted) const;

 private:
  friend class Engine;
  friend struct OpAccess;
  Op() = default;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// --- A backend to run ops on ---

// Which backend runs single ops, and how.
struct EngineOptions {
  std::string backend = "auto";           // a plugin's name or file
  int device = 0;                         // counted from 0
  int threads = 0;                        // of the backend on the host; 0: its choice
  Precision precision = Precision::fp32;  // of products of f32 numbers
  bool deterministic = false;             // refuse kernels that are not deterministic
  bool alternatives = true;  // may use plugins that the backend calls alternatives, if their kernels are faster
  std::vector<std::filesystem::path> plugins = {};  // files and folders to find backends in, besides the usual ones
  std::vector<std::string> kernels = {};            // names of wanted kernels, as "gemm:3"
  bool operator==(const EngineOptions&) const = default;
};

// An array in memory that the engine's device reaches.
struct Array {
  TensorType type;  // packed row-major, or channels-last
  void* data = nullptr;
};

// The stream on which the caller enqueues work.
struct CallerStream {
  void* native = nullptr;  // a cudaStream_t; nullptr: the default stream, and on the host
  // The caller is capturing the stream as a graph. Each kernel must have run once before, for the same shapes.
  // Temporary memory must come from the caller, since the graph keeps using it: see Engine::run.
  bool capturing = false;
};

// Temporary memory of the caller, aligned to Engine::alignment(). No other work may use it before the op has run.
struct Scratch {
  void* data = nullptr;  // nullptr: taken from the engine's pool
  uint64_t bytes = 0;
};

// Where an engine remembers the prepared kernels of a call, so that a repeated call does not look them up by its types.
// It is for one engine, one op or its gradient, and arrays of the same types.
struct Lookup {
  void* plan = nullptr;  // the engine's; only its functions read or write it
};

// Statistics of the pool of device memory.
struct PoolStatistics {
  int64_t requests = 0;
  int64_t hits = 0;         // served by a free block
  uint64_t used_bytes = 0;  // in blocks that are in use
  uint64_t held_bytes = 0;  // in use or kept for later
  uint64_t peak_bytes = 0;  // largest `held_bytes` so far
  double hit_rate() const { return requests > 0 ? static_cast<double>(hits) / static_cast<double>(requests) : 0; }
};

// Device memory from an engine's pool. It returns to the pool in the order of its stream.
class GPUNN_API Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Makes `reader` wait for the work enqueued so far on the memory's stream. The pool reuses the memory only after the
  // work that `reader` has enqueued before released_by().
  void hand_to(void* reader) const;
  void released_by(void* reader) const;

 private:
  friend class Engine;
  struct Owner;
  std::shared_ptr<Owner> owner_;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// A chain of plugins, opened on a device. A handle: engines with the same options are the same engine, which stays open
// until the process ends. All functions may be called from any thread; calls on one engine run one after another. The
// first call of an op with certain types chooses and prepares kernels, which takes milliseconds. Later calls look them
// up. Arrays are used in place; an array that is not aligned as a kernel needs is copied on the device. Arrays must
// stay valid until the work on the stream is done. A forked process cannot use the engines of its parent.
class GPUNN_API Engine {
 public:
  // Throws Error(missing) if a plugin or the device does not exist, usage if an option is wrong.
  static Engine open(const EngineOptions& options = {});

  std::string name() const;
  std::vector<std::string> chain() const;  // of plugins, the overlay first
  std::string device() const;              // its name
  std::string memory_domain() const;       // "host", or "cuda:<uuid>"
  bool on_host() const;
  uint64_t alignment() const;  // alignment of scratch memory in bytes
  const EngineOptions& options() const;

  // Enqueues the op on the stream. `outputs` are those that are not in place, in order; an output in place is written
  // into its input. An output may share the memory of any input: if the op cannot work so, temporary memory is used.
  // Throws Error(usage) if an array does not fit, Error(missing) if no plugin serves the op.
  void run(const Op& op, std::span<const Array> inputs, std::span<const Array> outputs, const CallerStream& stream = {},
           const Scratch& scratch = {}, Lookup* lookup = nullptr) const;

  // Enqueues the gradients of an op on the stream. `gradients` are those of the inputs in `wanted`, in order, with the
  // types of these inputs. `cotangent` is the gradient of the first output. Tensors that gradient_needs() does not name
  // may have no data.
  void run_gradient(const Op& op, const Array& cotangent, std::span<const Array> inputs, std::span<const Array> outputs,
                    const std::vector<bool>& wanted, std::span<const Array> gradients, const CallerStream& stream = {},
                    const Scratch& scratch = {}, Lookup* lookup = nullptr) const;

  // The temporary memory of such a call in bytes. It prepares the kernels, so it fails on a stream that is being
  // captured.
  uint64_t scratch_bytes(const Op& op, std::span<const Array> inputs, std::span<const Array> outputs,
                         bool capturing = false, Lookup* lookup = nullptr) const;
  uint64_t gradient_scratch_bytes(const Op& op, const Array& cotangent, std::span<const Array> inputs,
                                  std::span<const Array> outputs, const std::vector<bool>& wanted,
                                  std::span<const Array> gradients, bool capturing = false,
                                  Lookup* lookup = nullptr) const;

  // The kernels that a call uses: "cpu: CONV2D f32[...] ...", one on each line.
  std::vector<std::string> explain(const Op& op, std::span<const Array> inputs, std::span<const Array> outputs) const;

  // Memory for results, from the stream's pool.
  Memory allocate(uint64_t bytes, const CallerStream& stream = {}) const;
  // Copies an array on the device, on the stream.
  void copy(void* to, const void* from, uint64_t bytes, const CallerStream& stream = {}) const;
  void synchronize(const CallerStream& stream = {}) const;

  PoolStatistics pool_statistics() const;  // sum over all streams
  void trim_pool() const;                  // returns unused memory to the device
  int64_t plans() const;                   // number of prepared calls

  bool operator==(const Engine& other) const { return impl_ == other.impl_; }

 private:
  friend class Memory;
  class Impl;
  explicit Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpunn::eager
