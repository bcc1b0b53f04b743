// The C table of a plugin, made from its Backend class: noexcept trampolines that turn exceptions into a status and its
// text. Plugin authors need export_backend alone.
#pragma once

#include <gpunn/plugin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace gpunn::plugin {

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

// Hidden, so that two plugins that both call their backend class B keep separate statics: the loader merges visible
// ones of one name in a process (STB_GNU_UNIQUE), RTLD_LOCAL or not.
template <class B>
struct __attribute__((visibility("hidden"))) Table {
  static B& backend() {
    static B instance;
    return instance;
  }

  static gpunn_status probe(int32_t* count, gpunn_error* error) noexcept {
    return guard(error, [&] { *count = backend().probe(); });
  }
  static gpunn_status device_open(const gpunn_device_options* options, gpunn_device** out,
                                  gpunn_error* error) noexcept {
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
  static void memory_free(gpunn_device* handle, int32_t kind, void* data) noexcept {
    device(handle).release(kind, data);
  }
  static gpunn_status copy(gpunn_stream* handle, void* destination, const void* source, uint64_t bytes,
                           int32_t direction, gpunn_error* error) noexcept {
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
  static gpunn_status stream_native(gpunn_stream* handle, void** native, gpunn_error* error) noexcept {
    return guard(error, [&] { *native = stream(handle).native(); });
  }
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
      if (support->struct_size > offsetof(gpunn_op_support, kernels)) {
        copy_text(value.kernels, sizeof(value.kernels), device(handle).kernels(OpDesc(known)));
      }
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
    guard(nullptr, [&] {
      if (std::strcmp(name, GPUNN_EXTENSION_CONCURRENT_STREAMS) == 0 && backend().concurrent_streams()) {
        found = &backend();
      } else if (std::strcmp(name, GPUNN_EXTENSION_ALTERNATIVES) == 0 && backend().alternatives() != nullptr) {
        found = backend().alternatives();
      } else {
        found = backend().extension(name);
      }
    });
    return found;
  }
};

}  // namespace detail

// The table of backend class B; NULL if the host has another major version, or B's constructor throws.
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
