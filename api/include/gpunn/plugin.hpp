// C++ comfort over abi.h for plugin authors; header-only, needs C++20 and nothing else.
//
// A plugin derives Backend and Device (HostDevice, if it computes on the host), registers its kernels in the device's
// constructor and exports one line:
//
//   extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
//     return gpunn::plugin::export_backend<MyBackend>(major, minor);
//   }
//
// Exceptions may be thrown anywhere: trampolines turn them into a status and its text.
#pragma once

#include <gpunn/abi.h>
#include <gpunn/ops.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpunn::plugin {

// What a plugin throws to choose the status; any other exception becomes GPUNN_INTERNAL.
class Failure : public std::runtime_error {
 public:
  Failure(gpunn_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  gpunn_status status() const noexcept { return status_; }

 private:
  gpunn_status status_;
};

// The members of `from` that both sides know, the rest zero.
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

// Writes the members of `value` that the owner of `to` knows; `to->struct_size` stays.
template <class T>
void write_struct(T value, T* to) {
  value.struct_size = to->struct_size;
  std::memcpy(to, &value, std::min<std::size_t>(to->struct_size, sizeof(T)));
}

inline void copy_text(char* to, std::size_t capacity, const std::string& text) {
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

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

class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void launch(Stream& stream) = 0;
};

inline std::unique_ptr<CapturedGraph> Stream::end_capture() {
  throw Failure(GPUNN_UNSUPPORTED, "this backend captures no graphs");
}

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

// How one op is served: whether, and by which kernel.
struct KernelFactory {
  std::function<Support(const OpDesc&)> query;
  std::function<std::unique_ptr<Kernel>(const OpDesc&)> create;
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

class Device {
 public:
  virtual ~Device() = default;
  virtual void info(gpunn_device_info& info) = 0;
  virtual void* allocate(int32_t kind, uint64_t bytes) = 0;
  virtual void release(int32_t kind, void* data) noexcept = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual std::unique_ptr<Stream> wrap_stream(void* native) = 0;
  virtual std::unique_ptr<Event> create_event() = 0;

  // Several factories may serve one op; the largest score is taken, the first of equals.
  void add(int32_t op, KernelFactory factory) { factories_.emplace(op, std::move(factory)); }

  struct Choice {
    const KernelFactory* factory;
    Support support;
  };
  Choice choose(const OpDesc& desc) const {
    Choice best{nullptr, Support::no("this backend has no such op")};
    const auto [first, last] = factories_.equal_range(desc.op());
    for (auto i = first; i != last; ++i) {
      Support support = i->second.query(desc);
      const bool usable =
          support.score > 0 && (!desc.require_deterministic() || (support.flags & GPUNN_OP_DETERMINISTIC));
      if (support.score > 0 && !usable) support = Support::no("no deterministic kernel at this shape");
      if (best.factory == nullptr ? usable || !support.reason.empty() : support.score > best.support.score) {
        best = {usable ? &i->second : nullptr, std::move(support)};
      }
    }
    return best;
  }

 private:
  std::multimap<int32_t, KernelFactory> factories_;  // keeps the order of those of one op
};

// Devices are opened by index; `probe` returns how many there are or throws Failure(GPUNN_NO_DEVICE, why).
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  virtual const char* version() const = 0;
  virtual const char* build() const { return ""; }
  virtual const char* base() const { return nullptr; }
  virtual int priority() const { return 0; }
  virtual bool can_capture() const { return false; }
  virtual int probe() = 0;
  virtual std::unique_ptr<Device> open(const gpunn_device_options& options) = 0;
  virtual const void* extension(const char* /*name*/) { return nullptr; }
  virtual void shutdown() {}
};

// --- Backends that compute on the host ---

// Work is done when the call returns.
class HostStream final : public Stream {
 public:
  void* native() override { return nullptr; }
  void synchronize() override {}
  void copy(void* destination, const void* source, uint64_t bytes, int32_t) override {
    if (bytes != 0) std::memmove(destination, source, bytes);
  }
  void fill(void* destination, uint8_t value, uint64_t bytes) override {
    if (bytes != 0) std::memset(destination, value, bytes);
  }
};

class HostEvent final : public Event {
 public:
  void record(Stream&) override { reached_ = std::chrono::steady_clock::now(); }
  void wait(Stream&) override {}
  void synchronize() override {}
  float milliseconds_since(Event& start) override {
    return std::chrono::duration<float, std::milli>(reached_ - static_cast<HostEvent&>(start).reached_).count();
  }

 private:
  std::chrono::steady_clock::time_point reached_;
};

class HostDevice : public Device {
 public:
  static constexpr std::size_t kAlignment = 64;

  void info(gpunn_device_info& info) override {
    copy_text(info.name, sizeof(info.name), "host");
    copy_text(info.memory_domain, sizeof(info.memory_domain), "host");
    info.alignment = kAlignment;
    info.compute_units = 1;
  }
  void* allocate(int32_t, uint64_t bytes) override {
    const uint64_t rounded = (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* data = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) throw Failure(GPUNN_OUT_OF_MEMORY, "no host memory for " + std::to_string(bytes) + " bytes");
    return data;
  }
  void release(int32_t, void* data) noexcept override { std::free(data); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(); }
  std::unique_ptr<Stream> wrap_stream(void*) override { return std::make_unique<HostStream>(); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<HostEvent>(); }
};

// --- The C table ---

namespace detail {

template <class F>
gpunn_status guard(gpunn_error* error, F body) noexcept {
  const auto report = [error](gpunn_status status, const char* text) noexcept {
    if (error != nullptr && error->struct_size > offsetof(gpunn_error, message)) {
      error->status = status;
      const std::size_t capacity =
          std::min<std::size_t>(error->struct_size, sizeof(gpunn_error)) - offsetof(gpunn_error, message);
      const std::size_t length = std::min(std::strlen(text), capacity - 1);
      std::memcpy(error->message, text, length);
      error->message[length] = '\0';
    }
    return status;
  };
  try {
    body();
    return GPUNN_OK;
  } catch (const Failure& failure) {
    return report(failure.status(), failure.what());
  } catch (const std::bad_alloc&) {
    return report(GPUNN_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& exception) {
    return report(GPUNN_INTERNAL, exception.what());
  } catch (...) {
    return report(GPUNN_INTERNAL, "an exception of unknown type");
  }
}

inline Device& device(gpunn_device* handle) { return *reinterpret_cast<Device*>(handle); }
inline Stream& stream(gpunn_stream* handle) { return *reinterpret_cast<Stream*>(handle); }
inline Event& event(gpunn_event* handle) { return *reinterpret_cast<Event*>(handle); }

// Hidden, so that the statics of two plugins stay two where both call their backend B: the loader makes visible ones of
// one name one per process (STB_GNU_UNIQUE), RTLD_LOCAL or not.
template <class B>
struct [[gnu::visibility("hidden")]] Table{static B & backend(){static B instance;
return instance;
}  // namespace detail

static gpunn_status probe(int32_t* count, gpunn_error* error) noexcept {
  return guard(error, [&] { *count = backend().probe(); });
}
static gpunn_status device_open(const gpunn_device_options* options, gpunn_device** out, gpunn_error* error) noexcept {
  return guard(error, [&] {
    *out = reinterpret_cast<gpunn_device*>(backend().open(read_struct<gpunn_device_options>(options)).release());
  });
}
static void device_close(gpunn_device* handle) noexcept { delete &device(handle); }
static gpunn_status device_info(gpunn_device* handle, gpunn_device_info* info, gpunn_error* error) noexcept {
  return guard(error, [&] {
    gpunn_device_info value{};
    device(handle).info(value);
    write_struct(value, info);
  });
}
static gpunn_status memory_alloc(gpunn_device* handle, int32_t kind, uint64_t bytes, void** data,
                                 gpunn_error* error) noexcept {
  return guard(error, [&] { *data = device(handle).allocate(kind, bytes); });
}
static void memory_free(gpunn_device* handle, int32_t kind, void* data) noexcept { device(handle).release(kind, data); }
static gpunn_status copy(gpunn_stream* handle, void* destination, const void* source, uint64_t bytes, int32_t direction,
                         gpunn_error* error) noexcept {
  return guard(error, [&] { stream(handle).copy(destination, source, bytes, direction); });
}
static gpunn_status fill(gpunn_stream* handle, void* destination, uint8_t value, uint64_t bytes,
                         gpunn_error* error) noexcept {
  return guard(error, [&] { stream(handle).fill(destination, value, bytes); });
}
static gpunn_status stream_create(gpunn_device* handle, gpunn_stream** out, gpunn_error* error) noexcept {
  return guard(error, [&] { *out = reinterpret_cast<gpunn_stream*>(device(handle).create_stream().release()); });
}
static gpunn_status stream_wrap(gpunn_device* handle, void* native, gpunn_stream** out, gpunn_error* error) noexcept {
  return guard(error, [&] { *out = reinterpret_cast<gpunn_stream*>(device(handle).wrap_stream(native).release()); });
}
static void* stream_native(gpunn_stream* handle) noexcept { return stream(handle).native(); }
static gpunn_status stream_sync(gpunn_stream* handle, gpunn_error* error) noexcept {
  return guard(error, [&] { stream(handle).synchronize(); });
}
static void stream_destroy(gpunn_stream* handle) noexcept { delete &stream(handle); }

static gpunn_status event_create(gpunn_device* handle, gpunn_event** out, gpunn_error* error) noexcept {
  return guard(error, [&] { *out = reinterpret_cast<gpunn_event*>(device(handle).create_event().release()); });
}
static gpunn_status event_record(gpunn_event* handle, gpunn_stream* on, gpunn_error* error) noexcept {
  return guard(error, [&] { event(handle).record(stream(on)); });
}
static gpunn_status event_wait(gpunn_stream* on, gpunn_event* handle, gpunn_error* error) noexcept {
  return guard(error, [&] { event(handle).wait(stream(on)); });
}
static gpunn_status event_sync(gpunn_event* handle, gpunn_error* error) noexcept {
  return guard(error, [&] { event(handle).synchronize(); });
}
static gpunn_status event_elapsed(gpunn_event* start, gpunn_event* stop, float* milliseconds,
                                  gpunn_error* error) noexcept {
  return guard(error, [&] { *milliseconds = event(stop).milliseconds_since(event(start)); });
}
static void event_destroy(gpunn_event* handle) noexcept { delete &event(handle); }

static gpunn_status op_query(gpunn_device* handle, const gpunn_op_desc* desc, gpunn_op_support* support,
                             gpunn_error* error) noexcept {
  return guard(error, [&] {
    const auto known = read_struct<gpunn_op_desc>(desc);
    const Device::Choice choice = device(handle).choose(OpDesc(known));
    gpunn_op_support value{};
    value.score = choice.factory != nullptr ? choice.support.score : 0;
    value.workspace_bytes = choice.support.workspace_bytes;
    value.flags = choice.support.flags;
    copy_text(value.reason, sizeof(value.reason), choice.support.reason);
    write_struct(value, support);
  });
}
static gpunn_status op_create(gpunn_device* handle, const gpunn_op_desc* desc, gpunn_kernel** out,
                              gpunn_error* error) noexcept {
  return guard(error, [&] {
    const auto known = read_struct<gpunn_op_desc>(desc);
    const Device::Choice choice = device(handle).choose(OpDesc(known));
    if (choice.factory == nullptr) throw Failure(GPUNN_UNSUPPORTED, choice.support.reason);
    *out = reinterpret_cast<gpunn_kernel*>(choice.factory->create(OpDesc(known)).release());
  });
}
static gpunn_status op_enqueue(gpunn_kernel* handle, gpunn_stream* on, const gpunn_op_args* args,
                               gpunn_error* error) noexcept {
  return guard(error, [&] { reinterpret_cast<Kernel*>(handle)->enqueue(stream(on), OpArgs(*args)); });
}
static void op_free(gpunn_kernel* handle) noexcept { delete reinterpret_cast<Kernel*>(handle); }

static void shutdown() noexcept {
  guard(nullptr, [] { backend().shutdown(); });
}

static gpunn_status capture_begin(gpunn_stream* handle, gpunn_error* error) noexcept {
  return guard(error, [&] { stream(handle).begin_capture(); });
}
static gpunn_status capture_end(gpunn_stream* handle, gpunn_graph** out, gpunn_error* error) noexcept {
  return guard(error, [&] { *out = reinterpret_cast<gpunn_graph*>(stream(handle).end_capture().release()); });
}
static gpunn_status graph_launch(gpunn_graph* graph, gpunn_stream* on, gpunn_error* error) noexcept {
  return guard(error, [&] { reinterpret_cast<CapturedGraph*>(graph)->launch(stream(on)); });
}
static void graph_free(gpunn_graph* graph) noexcept { delete reinterpret_cast<CapturedGraph*>(graph); }

static const void* extension(const char* name) noexcept {
  const void* found = nullptr;
  guard(nullptr, [&] { found = backend().extension(name); });
  return found;
}
};  // namespace gpunn::plugin

}  // namespace detail

// The table of backend class B; NULL where the host speaks another major version, or B's constructor throws.
template <class B>
[[gnu::visibility("hidden")]] const gpunn_plugin* export_backend(uint16_t host_major,
                                                                 uint16_t /*host_minor*/) noexcept {
  if (host_major != GPUNN_ABI_MAJOR) return nullptr;
  const auto make_table = [] {
    using T = detail::Table<B>;
    const B& backend = T::backend();
    gpunn_plugin t{};
    t.struct_size = sizeof(gpunn_plugin);
    t.abi_major = GPUNN_ABI_MAJOR;
    t.abi_minor = GPUNN_ABI_MINOR;
    t.name = backend.name();
    t.version = backend.version();
    t.build = backend.build();
    t.base = backend.base();
    t.priority = backend.priority();
    t.probe = T::probe;
    t.device_open = T::device_open;
    t.device_close = T::device_close;
    t.device_info = T::device_info;
    t.memory_alloc = T::memory_alloc;
    t.memory_free = T::memory_free;
    t.copy = T::copy;
    t.fill = T::fill;
    t.stream_create = T::stream_create;
    t.stream_wrap = T::stream_wrap;
    t.stream_native = T::stream_native;
    t.stream_sync = T::stream_sync;
    t.stream_destroy = T::stream_destroy;
    t.event_create = T::event_create;
    t.event_record = T::event_record;
    t.event_wait = T::event_wait;
    t.event_sync = T::event_sync;
    t.event_elapsed = T::event_elapsed;
    t.event_destroy = T::event_destroy;
    t.op_query = T::op_query;
    t.op_create = T::op_create;
    t.op_enqueue = T::op_enqueue;
    t.op_free = T::op_free;
    t.shutdown = T::shutdown;
    if (backend.can_capture()) {
      t.capture_begin = T::capture_begin;
      t.capture_end = T::capture_end;
      t.graph_launch = T::graph_launch;
      t.graph_free = T::graph_free;
    }
    t.extension = T::extension;
    return t;
  };
  const gpunn_plugin* result = nullptr;
  detail::guard(nullptr, [&] {
    static const gpunn_plugin table = make_table();
    result = &table;
  });
  return result;
}

}  // namespace gpunn::plugin
