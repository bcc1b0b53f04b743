/*
 * gpunn plugin ABI, version 1, frozen with gpunn 0.2.0 (docs/writing-a-backend.md, "Versions of the contract").
 *
 * A backend is a shared library that exports one symbol, gpunn_plugin_query_v1, which returns a table of C functions.
 * Nothing but C types crosses this boundary, so host and plugin may come from different compilers and standard
 * libraries.
 *
 * Growth. Every struct begins with its size in bytes as its writer knew it. A reader touches only the first
 * min(own size, struct_size) bytes. Within a major version members are appended, never inserted, moved or made
 * required. A new major version exports a new symbol.
 *
 * Threads. The host serialises all calls on one device; calls on different devices may run at the same time.
 *
 * Lifetimes. Before it frees or destroys anything (memory, a kernel, a graph, an event, a stream) the host has waited
 * for all work that uses it.
 *
 * Errors. A function that can fail returns a gpunn_status and, where it is not GPUNN_OK, writes a sentence for the
 * user into the caller's gpunn_error. No exception may leave a plugin.
 */
#ifndef GPUNN_ABI_H
#define GPUNN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this contract. Minor versions only add. */
enum { GPUNN_ABI_MAJOR = 1, GPUNN_ABI_MINOR = 1 };

/* Values of gpunn_status. */
typedef int32_t gpunn_status;
enum {
  GPUNN_OK = 0,
  GPUNN_INVALID_ARGUMENT = 1,
  GPUNN_UNSUPPORTED = 2, /* a valid request that this backend does not serve */
  GPUNN_OUT_OF_MEMORY = 3,
  GPUNN_NO_DEVICE = 4,   /* no driver, or no usable device */
  GPUNN_DEVICE_LOST = 5, /* the device can't be used any more in this process */
  GPUNN_INTERNAL = 6
};

/* Why a call failed, for the user. The callee fills it only if it returns something other than GPUNN_OK. */
typedef struct gpunn_error {
  uint32_t struct_size;
  gpunn_status status;
  char message[1016]; /* UTF-8, NUL-terminated */
} gpunn_error;

/* Values of gpunn_tensor.dtype. */
enum { GPUNN_F32 = 0, GPUNN_BF16 = 1, GPUNN_F16 = 2, GPUNN_F64 = 3, GPUNN_I32 = 4, GPUNN_I64 = 5, GPUNN_U8 = 6 };

/* The largest number of dimensions of a tensor. */
enum { GPUNN_MAX_RANK = 8 };

/* A view of device memory. rank 0 is a scalar. Images are NCHW. data is NULL if only the type matters. */
typedef struct gpunn_tensor {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank;
  uint32_t reserved;
  void* data;
  int64_t dim[8];
  int64_t stride[8]; /* in elements */
} gpunn_tensor;

/* The plugin's own objects: the host only passes their addresses back. */
typedef struct gpunn_device gpunn_device;
typedef struct gpunn_stream gpunn_stream;
typedef struct gpunn_event gpunn_event;
typedef struct gpunn_kernel gpunn_kernel;
typedef struct gpunn_graph gpunn_graph;

/* Values of the level of gpunn_log_fn. */
enum { GPUNN_LOG_DEBUG = 0, GPUNN_LOG_INFO = 1, GPUNN_LOG_WARNING = 2 };
typedef void (*gpunn_log_fn)(void* context, int32_t level, const char* message);

/* How a device is opened. */
typedef struct gpunn_device_options {
  uint32_t struct_size;
  int32_t index;        /* 0 to the count that probe reported, less one */
  int32_t host_threads; /* threads for work on the host; 0: the backend's choice */
  int32_t reserved;
  gpunn_log_fn log; /* may be NULL */
  void* log_context;
} gpunn_device_options;

/* Describes a device. Bytes are of its memory. */
typedef struct gpunn_device_info {
  uint32_t struct_size;
  int32_t compute_units;
  char name[128];
  char driver[64];
  /* Equal domains, "host" or "cuda:<uuid>", mean that two devices share memory and that their plugins may wrap each
   * other's streams. */
  char memory_domain[96];
  uint64_t total_bytes;
  uint64_t free_bytes;
  uint64_t alignment; /* of allocations, and of every tensor that reaches a kernel; a power of two */
  /* Since minor 1: the alignment that kernels need of tensors in the caller's own memory, if it is less than
   * `alignment`; a power of two. 1: that of an element. 0: as `alignment`. */
  uint64_t tensor_alignment;
} gpunn_device_info;

/* Values of a memory kind. Pinned memory is host memory that copies to and from the device asynchronously. */
enum { GPUNN_MEMORY_DEVICE = 0, GPUNN_MEMORY_PINNED = 1 };

/* Values of a copy direction. */
enum { GPUNN_HOST_TO_DEVICE = 0, GPUNN_DEVICE_TO_HOST = 1, GPUNN_DEVICE_TO_DEVICE = 2 };

/* Values of gpunn_op_desc.precision: what a product of two f32 numbers may be rounded to. Sums stay f32. */
enum { GPUNN_PRECISION_FP32 = 0, GPUNN_PRECISION_TF32 = 1, GPUNN_PRECISION_BF16 = 2 };

/* Flags of gpunn_op_desc. */
enum { GPUNN_OP_REQUIRE_DETERMINISTIC = 1 };

/* One op at one shape. The tensors' data are NULL, their types and strides final. op_list.inc says which inputs,
 * outputs and attributes each op has. Arrays hold pointers, so that gpunn_tensor can grow.
 *
 * A plugin may have several kernels for an op and give them names, as "gemm:3". With one wanted, op_query and op_create
 * are about that one alone: another never takes its place. The host names none to a plugin of abi_minor 0. */
typedef struct gpunn_op_desc {
  uint32_t struct_size;
  int32_t op;        /* an id of ops.h; op_list.inc has its signature */
  const void* attrs; /* the op's attribute struct, or NULL where it has none */
  uint32_t n_inputs;
  uint32_t n_outputs;
  const gpunn_tensor* const* inputs;
  const gpunn_tensor* const* outputs;
  int32_t precision;
  uint32_t flags;
  const char* kernel; /* since minor 1: the name of the kernel wanted; NULL: the plugin's own choice */
  /* Since minor 1, for op_create only: bit i is set if input i has the same address and bytes at each enqueue of the
   * kernel, such as a model's weight in inference. A kernel may prepare such an input once, at its first enqueue, in
   * memory of its own. 0: nothing is known. */
  uint64_t constant_inputs;
} gpunn_op_desc;

/* Flags of gpunn_op_support. */
enum {
  GPUNN_OP_DETERMINISTIC = 1, /* equal inputs give equal bits, each time */
  GPUNN_OP_CAPTURABLE = 2     /* op_enqueue may be called between capture_begin and capture_end */
};

/* The answer of op_query. Text is NUL-terminated. */
typedef struct gpunn_op_support {
  uint32_t struct_size;
  int32_t score; /* above 0: served, larger is better among alternatives of one plugin; 0 or less: not served */
  uint64_t workspace_bytes;
  uint32_t flags;
  uint32_t reserved;
  char reason[256]; /* where not served: why, for the user */
  /* Since minor 1: the names of all kernels that serve this op at this shape, separated by commas, from the simplest to
   * the most elaborate. Empty: there is only one way, without a name. */
  char kernels[744];
} gpunn_op_support;

/* The tensors and the workspace of one enqueue of a kernel. */
typedef struct gpunn_op_args {
  uint32_t struct_size;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t reserved;
  const gpunn_tensor* const* inputs;
  const gpunn_tensor* const* outputs;
  void* workspace; /* of the size that op_query asked for, aligned as device memory is; its content is undefined */
  uint64_t workspace_bytes;
} gpunn_op_args;

/* The table of a plugin: the host reads it once, and calls its functions. */
typedef struct gpunn_plugin {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;

  const char* name;    /* [a-z0-9_]+, what the user writes after --backend */
  const char* version; /* of the plugin */
  const char* build;   /* compiler, libraries, architectures: free text */
  /* The plugin that runs what this one does not implement, on the same device, memory and streams; NULL for none. An
   * overlay gets its streams through stream_wrap and its memory from its base. */
  const char* base;
  int32_t priority; /* `--backend auto` takes the working plugin with the largest */
  int32_t reserved;

  /* The first contact with a driver. Returns GPUNN_NO_DEVICE, with the reason, if there is no device to run on. */
  gpunn_status (*probe)(int32_t* device_count, gpunn_error* error);

  gpunn_status (*device_open)(const gpunn_device_options* options, gpunn_device** device, gpunn_error* error);
  void (*device_close)(gpunn_device* device);
  gpunn_status (*device_info)(gpunn_device* device, gpunn_device_info* info, gpunn_error* error);

  gpunn_status (*memory_alloc)(gpunn_device* device, int32_t kind, uint64_t bytes, void** data, gpunn_error* error);
  void (*memory_free)(gpunn_device* device, int32_t kind, void* data);
  /* Copies and fills are ordered on the stream; host memory must stay valid until they are done. */
  gpunn_status (*copy)(gpunn_stream* stream, void* destination, const void* source, uint64_t bytes, int32_t direction,
                       gpunn_error* error);
  gpunn_status (*fill)(gpunn_stream* stream, void* destination, uint8_t value, uint64_t bytes, gpunn_error* error);

  gpunn_status (*stream_create)(gpunn_device* device, gpunn_stream** stream, gpunn_error* error);
  /* Takes a native handle (a cudaStream_t; on the host, NULL) of another plugin in the same memory domain. Destroying
   * the wrapper leaves the native stream alone. */
  gpunn_status (*stream_wrap)(gpunn_device* device, void* native, gpunn_stream** stream, gpunn_error* error);
  gpunn_status (*stream_native)(gpunn_stream* stream, void** native, gpunn_error* error);
  gpunn_status (*stream_sync)(gpunn_stream* stream, gpunn_error* error);
  void (*stream_destroy)(gpunn_stream* stream);

  gpunn_status (*event_create)(gpunn_device* device, gpunn_event** event, gpunn_error* error);
  gpunn_status (*event_record)(gpunn_event* event, gpunn_stream* stream, gpunn_error* error);
  gpunn_status (*event_wait)(gpunn_stream* stream, gpunn_event* event, gpunn_error* error);
  gpunn_status (*event_sync)(gpunn_event* event, gpunn_error* error);
  /* Milliseconds between two recorded and reached events. */
  gpunn_status (*event_elapsed)(gpunn_event* start, gpunn_event* stop, float* milliseconds, gpunn_error* error);
  void (*event_destroy)(gpunn_event* event);

  /* Says whether an op is served at these shapes and types. Cheap, free of side effects, and the same answer to the
   * same question as long as the device is open: the host asks more than once. */
  gpunn_status (*op_query)(gpunn_device* device, const gpunn_op_desc* desc, gpunn_op_support* support,
                           gpunn_error* error);
  /* Plans a kernel; may autotune on scratch memory of its own. desc is valid during the call only. */
  gpunn_status (*op_create)(gpunn_device* device, const gpunn_op_desc* desc, gpunn_kernel** kernel, gpunn_error* error);
  /* Puts the op on the stream and returns; never synchronises, allocates or reads device memory on the host. Tensors
   * have the types and strides of op_create. */
  gpunn_status (*op_enqueue)(gpunn_kernel* kernel, gpunn_stream* stream, const gpunn_op_args* args, gpunn_error* error);
  void (*op_free)(gpunn_kernel* kernel);

  /* Called once, after every device is closed and before main returns. The library is never unloaded. */
  void (*shutdown)(void);

  /* Optional from here on: NULL, or beyond struct_size, if the plugin lacks the function. */

  gpunn_status (*capture_begin)(gpunn_stream* stream, gpunn_error* error);
  gpunn_status (*capture_end)(gpunn_stream* stream, gpunn_graph** graph, gpunn_error* error);
  gpunn_status (*graph_launch)(gpunn_graph* graph, gpunn_stream* stream, gpunn_error* error);
  void (*graph_free)(gpunn_graph* graph);

  /* A table with a name and layout defined elsewhere, or NULL. */
  const void* (*extension)(const char* name);
} gpunn_plugin;

/* Marks gpunn_plugin_query_v1, the only symbol that a plugin exports. */
#if defined(_WIN32)
#define GPUNN_EXPORT __declspec(dllexport)
#else
#define GPUNN_EXPORT __attribute__((visibility("default")))
#endif

/* Names that extension() may be asked for.
 *
 * concurrent_streams: anything but NULL says that kernels of this plugin may run at the same time, on several streams
 * of one device (they share no scratch memory but what op_enqueue gives them), and, of a plugin that captures, that a
 * capture takes in what is put on other streams of the device between an event_wait for an event that was recorded on
 * the captured stream and an event_wait of the captured stream for one recorded there. Where a plugin says nothing, its
 * ops run one after another. */
#define GPUNN_EXTENSION_CONCURRENT_STREAMS "gpunn.concurrent_streams"

/* alternatives: a const char*, names of plugins separated by commas. If one of them is present, shares this plugin's
 * memory and serves an op that this plugin serves too, the host times both kernels and runs the faster one. Such a
 * plugin also joins the chain, below this plugin and above its base, for ops that this plugin does not serve. Return
 * NULL if only the plugin's own kernels should run. */
#define GPUNN_EXTENSION_ALTERNATIVES "gpunn.alternatives"

/* The one exported symbol. Pure: touches no driver, starts no thread. Returns NULL if the plugin can't serve a host of
 * this version. */
typedef const gpunn_plugin* (*gpunn_plugin_query_v1_fn)(uint16_t host_major, uint16_t host_minor);
GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor);

#ifdef __cplusplus
}
#endif

#endif
