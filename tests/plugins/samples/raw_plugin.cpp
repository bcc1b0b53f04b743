// A small host backend written straight on abi.h: ADD, RELU and SCALE of packed f32. How the table is broken is chosen
// when it is linked (raw_identity.hpp), what goes wrong in its functions at run time (control.hpp).

#include <gpunn/abi.h>
#include <gpunn/ops.h>
#include <gpunn/subgraph.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "control.hpp"
#include "raw_identity.hpp"

namespace {

const std::string_view kVariant = kIdentity.variant;
const std::string_view kOps = kIdentity.ops;

Control control;

struct Kernel {
  int32_t op = 0;
  float factor = 1;
};

void write(gpunn_error* error, gpunn_status status, const char* text) {
  error->status = status;
  std::snprintf(error->message, sizeof(error->message), "%s", text);
}

bool is(const char* chosen, const char* function) { return std::strcmp(chosen, function) == 0; }

template <class F>
gpunn_status body(const char* function, gpunn_error* error, F run) {
  if (is(control.throw_in, function)) throw std::runtime_error(std::string("thrown in ") + function);
  if (is(control.fail_in, function)) {
    if (control.fail_with_message) write(error, control.fail_status, "the sample was told\nto fail");
    return control.fail_status;
  }
  run();
  return GPUNN_OK;
}

// Of functions that can't fail, when their work is done.
void enter(const char* function) {
  if (is(control.throw_in, function)) throw std::runtime_error(std::string("thrown in ") + function);
}

// Fuses all that it is offered. Nothing runs it.
const gpunn_subgraph_extension kSubgraphs = {
    .struct_size = sizeof(gpunn_subgraph_extension),
    .reserved = 0,
    .query =
        [](gpunn_device*, const gpunn_program_desc*, uint32_t, uint32_t limit, gpunn_subgraph_support* subgraph,
           gpunn_error*) {
          subgraph->n_ops = limit;
          subgraph->saved_seconds = control.saves;
          std::snprintf(subgraph->name, sizeof(subgraph->name), "all of it");
          return gpunn_status{GPUNN_OK};
        },
    .create = [](gpunn_device*, const gpunn_program_desc*, uint32_t, uint32_t, gpunn_subgraph**,
                 gpunn_error*) { return gpunn_status{GPUNN_UNSUPPORTED}; },
    .enqueue = [](gpunn_subgraph*, gpunn_stream*, const gpunn_subgraph_args*,
                  gpunn_error*) { return gpunn_status{GPUNN_UNSUPPORTED}; },
    .destroy = [](gpunn_subgraph*) {}};

template <class Handle>
void give(const char* function, Handle** out, void* handle, int32_t& count) {
  if (is(control.null_in, function)) return;
  *out = static_cast<Handle*>(handle);
  ++count;
}

template <std::size_t N>
void text(char (&to)[N], const char* from) {
  if (control.unterminated_texts) {
    std::memset(to, 'x', N);
  } else {
    std::snprintf(to, N, "%s", from);
  }
}

int64_t elements(const gpunn_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= tensor.dim[i];
  return count;
}

bool served(int32_t op) {
  if (op == GPUNN_OP_RELU) return true;
  return kOps == "all" && (op == GPUNN_OP_ADD || op == GPUNN_OP_SCALE);
}

void run(const Kernel& kernel, const gpunn_op_args& args) {
  const auto* x = static_cast<const float*>(args.inputs[0]->data);
  auto* y = static_cast<float*>(args.outputs[0]->data);
  const int64_t count = elements(*args.outputs[0]);
  control.last_input = x;
  control.last_output = y;
  if (args.workspace_bytes > 0) std::memset(args.workspace, 0x5a, args.workspace_bytes);
  const float* second = kernel.op == GPUNN_OP_ADD ? static_cast<const float*>(args.inputs[1]->data) : nullptr;
  for (int64_t i = 0; i < count; ++i) {
    if (kernel.op == GPUNN_OP_RELU) y[i] = x[i] > 0 ? x[i] : 0;
    if (kernel.op == GPUNN_OP_SCALE) y[i] = kernel.factor * x[i];
    if (second != nullptr) y[i] = x[i] + second[i];
  }
}

void set_device_functions(gpunn_plugin& t) {
  t.probe = [](int32_t* count, gpunn_error* error) {
    ++control.probes;
    if (kVariant == "no_device") {
      write(error, GPUNN_NO_DEVICE, "the sample has no driver");
      return gpunn_status{GPUNN_NO_DEVICE};
    }
    if (kVariant == "probe_throws") throw std::runtime_error("thrown in probe");
    *count = kVariant == "negative_devices" ? -3 : kVariant == "zero_devices" ? 0 : 2;
    return gpunn_status{GPUNN_OK};
  };
  t.device_open = [](const gpunn_device_options* options, gpunn_device** device, gpunn_error* error) {
    return body("device_open", error, [&] {
      control.host_threads = options->host_threads;
      if (options->log != nullptr) options->log(options->log_context, GPUNN_LOG_WARNING, "the sample was opened");
      give("device_open", device, &control, control.open_devices);
    });
  };
  t.device_close = [](gpunn_device*) {
    --control.open_devices;
    enter("device_close");
  };
  t.device_info = [](gpunn_device*, gpunn_device_info* info, gpunn_error* error) {
    return body("device_info", error, [&] {
      text(info->name, "sample");
      text(info->driver, "none");
      std::memcpy(info->memory_domain, control.memory_domain, sizeof(info->memory_domain));
      if (kVariant == "other_domain") text(info->memory_domain, "mars:0");
      info->alignment = control.alignment;
      info->total_bytes = uint64_t{1} << 30;
      info->free_bytes = control.capacity == 0 ? 0 : control.capacity - control.used_bytes;
    });
  };
  t.memory_alloc = [](gpunn_device*, int32_t, uint64_t bytes, void** data, gpunn_error* error) {
    if (control.capacity != 0 && control.used_bytes + bytes > control.capacity) {
      write(error, GPUNN_OUT_OF_MEMORY, "the sample has no more memory");
      return gpunn_status{GPUNN_OUT_OF_MEMORY};
    }
    return body("memory_alloc", error, [&] {
      if (is(control.null_in, "memory_alloc")) return;
      // Always an offset that memory_free can take back, with the size in front.
      auto* block = static_cast<char*>(std::aligned_alloc(64, (bytes + 191) / 64 * 64));
      if (block == nullptr) throw std::bad_alloc();
      std::memcpy(block + 8, &bytes, sizeof(bytes));
      control.used_bytes += bytes;
      *data = block + (control.misaligned_memory ? 4 : 64);
      ++control.open_buffers;
    });
  };
  t.memory_free = [](gpunn_device*, int32_t, void* data) {
    auto* place = static_cast<char*>(data);
    char* const block = reinterpret_cast<uintptr_t>(place) % 64 == 0 ? place - 64 : place - 4;
    uint64_t bytes = 0;
    std::memcpy(&bytes, block + 8, sizeof(bytes));
    control.used_bytes -= bytes;
    std::free(block);
    --control.open_buffers;
    enter("memory_free");
  };
}

void set_stream_functions(gpunn_plugin& t) {
  t.copy = [](gpunn_stream*, void* to, const void* from, uint64_t bytes, int32_t, gpunn_error* error) {
    return body("copy", error, [&] { std::memcpy(to, from, bytes); });
  };
  t.fill = [](gpunn_stream*, void* to, uint8_t value, uint64_t bytes, gpunn_error* error) {
    return body("fill", error, [&] { std::memset(to, value, bytes); });
  };
  t.stream_create = [](gpunn_device*, gpunn_stream** stream, gpunn_error* error) {
    return body("stream_create", error, [&] { give("stream_create", stream, &control, control.open_streams); });
  };
  t.stream_wrap = [](gpunn_device*, void*, gpunn_stream** stream, gpunn_error* error) {
    return body("stream_wrap", error, [&] { give("stream_wrap", stream, &control, control.open_streams); });
  };
  t.stream_native = [](gpunn_stream*, void** native, gpunn_error* error) {
    return body("stream_native", error, [&] { *native = nullptr; });
  };
  t.stream_sync = [](gpunn_stream*, gpunn_error* error) { return body("stream_sync", error, [] {}); };
  t.stream_destroy = [](gpunn_stream*) {
    --control.open_streams;
    enter("stream_destroy");
  };
  using Clock = std::chrono::steady_clock;
  t.event_create = [](gpunn_device*, gpunn_event** event, gpunn_error* error) {
    return body("event_create", error, [&] {
      if (is(control.null_in, "event_create")) return;
      give("event_create", event, new Clock::time_point, control.open_events);
    });
  };
  t.event_record = [](gpunn_event* event, gpunn_stream*, gpunn_error* error) {
    return body("event_record", error, [&] { *reinterpret_cast<Clock::time_point*>(event) = Clock::now(); });
  };
  t.event_wait = [](gpunn_stream*, gpunn_event*, gpunn_error* error) { return body("event_wait", error, [] {}); };
  t.event_sync = [](gpunn_event*, gpunn_error* error) { return body("event_sync", error, [] {}); };
  t.event_elapsed = [](gpunn_event* start, gpunn_event* stop, float* milliseconds, gpunn_error* error) {
    return body("event_elapsed", error, [&] {
      *milliseconds = std::chrono::duration<float, std::milli>(*reinterpret_cast<Clock::time_point*>(stop) -
                                                               *reinterpret_cast<Clock::time_point*>(start))
                          .count();
    });
  };
  t.event_destroy = [](gpunn_event* event) {
    delete reinterpret_cast<Clock::time_point*>(event);
    --control.open_events;
    enter("event_destroy");
  };
}

void set_op_functions(gpunn_plugin& t) {
  t.op_query = [](gpunn_device*, const gpunn_op_desc* desc, gpunn_op_support* support, gpunn_error* error) {
    return body("op_query", error, [&] {
      control.last_desc_flags = desc->flags;
      control.last_precision = desc->precision;
      if (desc->kernel != nullptr) ++control.wanted_kernels;
      support->score = served(desc->op) ? 1 : 0;
      support->workspace_bytes = control.workspace_bytes;
      support->flags = control.op_flags;
      if (support->score == 0) text(support->reason, "the sample has no such kernel");
    });
  };
  t.op_create = [](gpunn_device*, const gpunn_op_desc* desc, gpunn_kernel** kernel, gpunn_error* error) {
    return body("op_create", error, [&] {
      if (desc->kernel != nullptr) ++control.wanted_kernels;
      if (is(control.null_in, "op_create")) return;
      auto* made = new Kernel{desc->op, 1};
      if (desc->op == GPUNN_OP_SCALE) made->factor = static_cast<const gpunn_scale_attrs*>(desc->attrs)->factor;
      give("op_create", kernel, made, control.open_kernels);
    });
  };
  t.op_enqueue = [](gpunn_kernel* kernel, gpunn_stream*, const gpunn_op_args* args, gpunn_error* error) {
    return body("op_enqueue", error, [&] {
      ++control.enqueues;
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(control.delay);
      while (control.delay > 0 && std::chrono::steady_clock::now() < end) {
      }
      run(*reinterpret_cast<Kernel*>(kernel), *args);
    });
  };
  t.op_free = [](gpunn_kernel* kernel) {
    delete reinterpret_cast<Kernel*>(kernel);
    --control.open_kernels;
    enter("op_free");
  };
}

gpunn_plugin make_table() {
  gpunn_plugin t{};
  t.struct_size = sizeof(gpunn_plugin);
  t.abi_major = GPUNN_ABI_MAJOR;
  t.abi_minor = GPUNN_ABI_MINOR;
  t.name = kIdentity.name;
  t.version = "1.2";
  t.build = "a sample of the tests";
  t.base = std::string_view(kIdentity.base).empty() ? nullptr : kIdentity.base;
  t.priority = kIdentity.priority;
  set_device_functions(t);
  set_stream_functions(t);
  set_op_functions(t);
  t.shutdown = [] {
    ++control.shutdowns;
    control.shutdown_time = std::chrono::steady_clock::now().time_since_epoch().count();
    enter("shutdown");
  };
  t.extension = [](const char* name) -> const void* {
    if (std::strcmp(name, GPUNN_EXTENSION_ALTERNATIVES) == 0 && kIdentity.alternatives[0] != '\0') {
      return kIdentity.alternatives;
    }
    if (std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 && control.saves > 0) return &kSubgraphs;
    return std::strcmp(name, "test.control") == 0 ? &control : nullptr;
  };

  if (kVariant == "null_name") t.name = nullptr;
  if (kVariant == "bad_name") t.name = "My Backend";
  if (kVariant == "bad_base") t.base = "../base";
  if (kVariant == "null_function") t.event_elapsed = nullptr;
  if (kVariant == "half_capture") t.graph_free = [](gpunn_graph*) {};
  if (kVariant == "tiny_table") t.struct_size = 16;
  if (kVariant == "huge_table") t.struct_size = 0xfffffff0U;
  if (kVariant == "table_of_major_2") t.abi_major = 2;
  if (kVariant == "minor_0") t.abi_minor = 0;
  if (kVariant == "older_minor") {
    // What lies beyond its size is another's memory: no function to be called.
    t.struct_size = offsetof(gpunn_plugin, capture_begin) + 4;
    std::memset(reinterpret_cast<char*>(&t) + offsetof(gpunn_plugin, capture_begin), 0xee,
                sizeof(t) - offsetof(gpunn_plugin, capture_begin));
  }
  return t;
}

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t, uint16_t) {
  if (kVariant == "returns_null") return nullptr;
  if (kVariant == "query_throws") throw std::runtime_error("thrown in the query");
  static const gpunn_plugin table = make_table();
  if (kVariant == "newer_minor") {
    struct Newer {
      gpunn_plugin table;
      void* members_of_the_future[6];
    };
    static const Newer newer = [] {
      Newer value{table, {&control, &control, &control, &control, &control, &control}};
      value.table.struct_size = sizeof(Newer);
      value.table.abi_minor = 7;
      return value;
    }();
    return &newer.table;
  }
  return &table;
}
