// An op as a kernel sees it, and the classes that a plugin implements: kernels, streams, events, devices. Files with
// kernels include this; the file that exports the backend includes plugin.hpp, which has the rest.
#pragma once

#include <gpunn/abi.h>
#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace gpunn::plugin {

// A query may throw this instead of returning Support::no, to say why the op is not served.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A plugin throws this to choose the status; any other exception becomes GPUNN_INTERNAL.
class Failure : public std::runtime_error {
 public:
  Failure(gpunn_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  gpunn_status status() const noexcept { return status_; }

 private:
  gpunn_status status_;
};

// The members of `from` that both sides know; the rest are zero.
template <class T>
T read_struct(const void* from) {
  T value{};
  if (from != nullptr) {
    uint32_t size = 0;
    std::memcpy(&size, from, sizeof(size));
    std::memcpy(&value, from, std::min<std::size_t>(size, sizeof(T)));
  }
  value.struct_size = sizeof(T);
  return value;
}

// Writes the members of `value` that the owner of `to` knows. Leaves `to->struct_size` alone.
template <class T>
void write_struct(T value, T* to) {
  value.struct_size = to->struct_size;
  std::memcpy(to, &value, std::min<std::size_t>(to->struct_size, sizeof(T)));
}

// Copies `text` to a field of `capacity` bytes, cuts it if it is longer, and ends it with NUL.
inline void copy_text(char* to, std::size_t capacity, const std::string& text) {
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// The product of the dimensions; 1 of a scalar.
inline int64_t element_count(const gpunn_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= tensor.dim[i];
  return count;
}

// Whether the tensor is row-major without gaps.
inline bool is_packed(const gpunn_tensor& tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.dim[i] != 1 && tensor.stride[i] != expected) return false;
    expected *= tensor.dim[i];
  }
  return true;
}

// Whether the image x[N,C,H,W] lies in memory as [N,H,W,C] without gaps. One with a single channel or pixel may be
// packed as well.
inline bool is_channels_last(const gpunn_tensor& tensor) {
  if (tensor.rank != 4) return false;
  int64_t expected = 1;
  for (const int i : {1, 3, 2, 0}) {
    if (tensor.dim[i] != 1 && tensor.stride[i] != expected) return false;
    expected *= tensor.dim[i];
  }
  return true;
}

// One op at one shape, as a kernel's query and create see it. A view: valid during that call.
class OpDesc {
 public:
  explicit OpDesc(const gpunn_op_desc& desc) : desc_(desc) {}
  int32_t op() const { return desc_.op; }
  std::size_t inputs() const { return desc_.n_inputs; }
  std::size_t outputs() const { return desc_.n_outputs; }
  const gpunn_tensor& input(std::size_t i) const { return *desc_.inputs[i]; }
  const gpunn_tensor& output(std::size_t i) const { return *desc_.outputs[i]; }
  int32_t precision() const { return desc_.precision; }
  bool require_deterministic() const { return (desc_.flags & GPUNN_OP_REQUIRE_DETERMINISTIC) != 0; }
  // name of the kernel wanted; empty: the plugin's own choice
  std::string_view kernel() const { return desc_.kernel != nullptr ? desc_.kernel : std::string_view(); }
  // Whether input i has one address and the same bytes at each enqueue.
  bool is_constant(std::size_t i) const {
    const bool known = desc_.struct_size >= offsetof(gpunn_op_desc, constant_inputs) + sizeof(uint64_t);
    return known && i < 64 && (desc_.constant_inputs >> i & 1) != 0;
  }
  const gpunn_op_desc& raw() const { return desc_; }

  template <class Attrs>
  Attrs attrs() const {
    return read_struct<Attrs>(desc_.attrs);
  }

 private:
  const gpunn_op_desc& desc_;
};

// The tensors of one enqueue.
class OpArgs {
 public:
  explicit OpArgs(const gpunn_op_args& args) : args_(args) {}
  const gpunn_tensor& input(std::size_t i) const { return *args_.inputs[i]; }
  const gpunn_tensor& output(std::size_t i) const { return *args_.outputs[i]; }
  std::size_t inputs() const { return args_.n_inputs; }
  std::size_t outputs() const { return args_.n_outputs; }

  template <class T>
  const T* in(std::size_t i) const {
    return static_cast<const T*>(args_.inputs[i]->data);
  }
  template <class T>
  T* out(std::size_t i) const {
    return static_cast<T*>(args_.outputs[i]->data);
  }
  template <class T>
  T* workspace() const {
    return static_cast<T*>(args_.workspace);
  }

 private:
  const gpunn_op_args& args_;
};

// The answer of a kernel's query.
struct Support {
  int score = 0;
  uint64_t workspace_bytes = 0;
  uint32_t flags = GPUNN_OP_DETERMINISTIC | GPUNN_OP_CAPTURABLE;
  std::string reason;

  static Support yes(uint64_t workspace_bytes = 0, int score = 1) {
    return {.score = score, .workspace_bytes = workspace_bytes, .reason = {}};
  }
  static Support no(std::string reason) { return {.flags = 0, .reason = std::move(reason)}; }
};

class CapturedGraph;

// An ordered queue of work on a device. All but synchronize() may return before the work is done.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void* native() = 0;
  virtual void synchronize() = 0;
  virtual void copy(void* destination, const void* source, uint64_t bytes, int32_t direction) = 0;
  virtual void fill(void* destination, uint8_t value, uint64_t bytes) = 0;
  virtual void begin_capture() { throw Failure(GPUNN_UNSUPPORTED, "this backend captures no graphs"); }
  virtual std::unique_ptr<CapturedGraph> end_capture();
};

// Work that was captured once and can be launched again and again.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void launch(Stream& stream) = 0;
};

inline std::unique_ptr<CapturedGraph> Stream::end_capture() {
  throw Failure(GPUNN_UNSUPPORTED, "this backend captures no graphs");
}

// A mark in a stream's work, to wait for and to measure time by.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream& stream) = 0;
  virtual void wait(Stream& stream) = 0;
  virtual void synchronize() = 0;
  virtual float milliseconds_since(Event& start) = 0;
};

// An op bound to one shape.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void enqueue(Stream& stream, const OpArgs& args) = 0;
};

// Whether holds(tensor) is true of an input or an output.
template <class Holds>
bool any_tensor(const OpDesc& desc, const Holds& holds) {
  for (std::size_t i = 0; i < desc.inputs(); ++i) {
    if (holds(desc.input(i))) return true;
  }
  for (std::size_t i = 0; i < desc.outputs(); ++i) {
    if (holds(desc.output(i))) return true;
  }
  return false;
}

// Whether a tensor of the op is bf16 or f16.
inline bool has_half(const OpDesc& desc) {
  return any_tensor(desc,
                    [](const gpunn_tensor& tensor) { return tensor.dtype == GPUNN_BF16 || tensor.dtype == GPUNN_F16; });
}

// Whether the images of the op are channels-last and differ from packed ones.
inline bool has_channels_last(const OpDesc& desc) {
  return any_tensor(desc, [](const gpunn_tensor& tensor) { return is_channels_last(tensor) && !is_packed(tensor); });
}

// How one op is served: whether, and by which kernel.
struct KernelFactory {
  std::function<Support(const OpDesc&)> query;
  std::function<std::unique_ptr<Kernel>(const OpDesc&)> create;
  // The name that the user writes after --kernel, as "gemm:3"; no comma in it. Empty: it has none.
  std::string name = {};
  // Takes tensors of bf16 and f16 too; others are only asked about ops without any.
  bool half = false;
  // Takes channels-last images too. Kernels of strided ops need not say so, nor those of elementwise ops, which are
  // then asked about channels-last images and operands of their shape or of one element.
  bool channels_last = false;
  // Never the plugin's own choice, whatever its score: a kernel to learn from or to compare with.
  bool only_by_name = false;
};

// A kernel from a callable (Stream&, const OpArgs&).
template <class F>
std::unique_ptr<Kernel> make_kernel(F run) {
  class Lambda final : public Kernel {
   public:
    explicit Lambda(F run) : run_(std::move(run)) {}
    void enqueue(Stream& stream, const OpArgs& args) override { run_(stream, args); }

   private:
    F run_;
  };
  return std::make_unique<Lambda>(std::move(run));
}

// An opened device: memory, streams, events, and the kernels that were registered with add().
class Device {
 public:
  virtual ~Device() = default;
  virtual void info(gpunn_device_info& info) = 0;
  virtual void* allocate(int32_t kind, uint64_t bytes) = 0;
  virtual void release(int32_t kind, void* data) noexcept = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual std::unique_ptr<Stream> wrap_stream(void* native) = 0;
  virtual std::unique_ptr<Event> create_event() = 0;

  // Several factories may serve one op. The largest score wins; of equal scores, the first.
  void add(int32_t op, KernelFactory factory) { factories_.emplace(op, std::move(factory)); }

  struct Choice {
    const KernelFactory* factory = nullptr;
    Support support = {};
  };
  // Asks the factories with the wanted name, or all that may be the plugin's own choice. None is asked about tensors or
  // attributes that contradict the op's row in op_list.inc. Defined in plugin.hpp.
  inline Choice choose(const OpDesc& desc) const;

  // The names of the kernels that serve the op at this shape, as gpunn_op_support has them: in the order in which they
  // were added.
  inline std::string kernels(const OpDesc& desc) const;

 private:
  // The answer of a factory. A kernel that may not be used counts as unsupported.
  // Defined in plugin.hpp.
  inline static Support answer(const KernelFactory& factory, const OpDesc& desc);
  // The answer if no factory is asked.
  Support none(const OpDesc& desc) const {
    const std::string wanted(desc.kernel());
    if (!wanted.empty()) return Support::no("this backend has no kernel '" + wanted + "' for this op");
    return Support::no(factories_.contains(desc.op()) ? "this backend's kernels for this op are taken by name only"
                                                      : "this backend has no such op");
  }

  std::multimap<int32_t, KernelFactory> factories_;  // keeps the order of those of one op
};

}  // namespace gpunn::plugin
