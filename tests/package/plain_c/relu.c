/* A backend of one kernel, RELU, in C11 and with nothing but abi.h and ops.h: what plugin.hpp does for C++. */
#include <gpunn/abi.h>
#include <gpunn/ops.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Handles are the plugin's own business. This one has one device and host streams, which hold nothing. */
struct gpunn_device {
  int32_t index;
};
struct gpunn_stream {
  void* native;
};
struct gpunn_event {
  struct timespec time;
};
struct gpunn_kernel {
  int64_t count;
};

/* Writes no byte beyond what the caller has room for. */
static gpunn_status fail(gpunn_error* error, gpunn_status status, const char* message) {
  if (error != NULL && error->struct_size > offsetof(gpunn_error, message)) {
    const size_t room = error->struct_size < sizeof(gpunn_error) ? error->struct_size : sizeof(gpunn_error);
    const size_t capacity = room - offsetof(gpunn_error, message);
    error->status = status;
    strncpy(error->message, message, capacity - 1);
    error->message[capacity - 1] = '\0';
  }
  return status;
}

static gpunn_status probe(int32_t* device_count, gpunn_error* error) {
  (void)error;
  *device_count = 1;
  return GPUNN_OK;
}

static gpunn_status device_open(const gpunn_device_options* options, gpunn_device** device, gpunn_error* error) {
  if (options->index != 0) return fail(error, GPUNN_INVALID_ARGUMENT, "the host is one device, of index 0");
  *device = calloc(1, sizeof(gpunn_device));
  return *device != NULL ? GPUNN_OK : fail(error, GPUNN_OUT_OF_MEMORY, "no host memory");
}

static void device_close(gpunn_device* device) { free(device); }

static gpunn_status device_info(gpunn_device* device, gpunn_device_info* info, gpunn_error* error) {
  gpunn_device_info known = {.struct_size = info->struct_size, .compute_units = 1, .alignment = 64};
  (void)device, (void)error;
  strcpy(known.name, "host");
  strcpy(known.memory_domain, "host");
  memcpy(info, &known, info->struct_size < sizeof(known) ? info->struct_size : sizeof(known));
  return GPUNN_OK;
}

/* An overlay's memory is its base's: the host asks for none here, except where host copies are used. */
static gpunn_status memory_alloc(gpunn_device* device, int32_t kind, uint64_t bytes, void** data, gpunn_error* error) {
  (void)device, (void)kind;
  *data = bytes < UINT64_MAX - 64 ? aligned_alloc(64, (bytes / 64 + 1) * 64) : NULL;
  return *data != NULL ? GPUNN_OK : fail(error, GPUNN_OUT_OF_MEMORY, "no host memory");
}

static void memory_free(gpunn_device* device, int32_t kind, void* data) {
  (void)device, (void)kind;
  free(data);
}

static gpunn_status copy(gpunn_stream* stream, void* destination, const void* source, uint64_t bytes, int32_t direction,
                         gpunn_error* error) {
  (void)stream, (void)direction, (void)error;
  if (bytes != 0) memmove(destination, source, bytes);
  return GPUNN_OK;
}

static gpunn_status fill(gpunn_stream* stream, void* destination, uint8_t value, uint64_t bytes, gpunn_error* error) {
  (void)stream, (void)error;
  if (bytes != 0) memset(destination, value, bytes);
  return GPUNN_OK;
}

static gpunn_status stream_wrap(gpunn_device* device, void* native, gpunn_stream** stream, gpunn_error* error) {
  (void)device;
  *stream = malloc(sizeof(gpunn_stream));
  if (*stream == NULL) return fail(error, GPUNN_OUT_OF_MEMORY, "no host memory");
  (*stream)->native = native;
  return GPUNN_OK;
}

static gpunn_status stream_create(gpunn_device* device, gpunn_stream** stream, gpunn_error* error) {
  return stream_wrap(device, NULL, stream, error);
}

static gpunn_status stream_native(gpunn_stream* stream, void** native, gpunn_error* error) {
  (void)error;
  *native = stream->native;
  return GPUNN_OK;
}

/* Work is done when the call that asked for it returns. */
static gpunn_status stream_sync(gpunn_stream* stream, gpunn_error* error) {
  (void)stream, (void)error;
  return GPUNN_OK;
}

static void stream_destroy(gpunn_stream* stream) { free(stream); }

static gpunn_status event_create(gpunn_device* device, gpunn_event** event, gpunn_error* error) {
  (void)device;
  *event = calloc(1, sizeof(gpunn_event));
  return *event != NULL ? GPUNN_OK : fail(error, GPUNN_OUT_OF_MEMORY, "no host memory");
}

static gpunn_status event_record(gpunn_event* event, gpunn_stream* stream, gpunn_error* error) {
  (void)stream, (void)error;
  timespec_get(&event->time, TIME_UTC);
  return GPUNN_OK;
}

static gpunn_status event_wait(gpunn_stream* stream, gpunn_event* event, gpunn_error* error) {
  (void)stream, (void)event, (void)error;
  return GPUNN_OK;
}

static gpunn_status event_sync(gpunn_event* event, gpunn_error* error) {
  (void)event, (void)error;
  return GPUNN_OK;
}

static gpunn_status event_elapsed(gpunn_event* start, gpunn_event* stop, float* milliseconds, gpunn_error* error) {
  (void)error;
  *milliseconds = (float)((double)(stop->time.tv_sec - start->time.tv_sec) * 1e3 +
                          (double)(stop->time.tv_nsec - start->time.tv_nsec) * 1e-6);
  return GPUNN_OK;
}

static void event_destroy(gpunn_event* event) { free(event); }

static int64_t elements(const gpunn_tensor* tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) count *= tensor->dim[i];
  return count;
}

/* Why the op is not served; NULL: it is. */
static const char* refusal(const gpunn_op_desc* desc) {
  if (desc->op != GPUNN_OP_RELU) return "only RELU is here";
  if (desc->n_inputs != 1 || desc->n_outputs != 1) return "1 input and 1 output only";
  for (int which = 0; which < 2; ++which) {
    const gpunn_tensor* tensor = which == 0 ? desc->inputs[0] : desc->outputs[0];
    int64_t expected = 1;
    if (tensor->dtype != GPUNN_F32 || tensor->rank < 0 || tensor->rank > GPUNN_MAX_RANK) return "f32 tensors only";
    for (int32_t i = tensor->rank; i-- > 0;) {
      if (tensor->dim[i] < 0 || tensor->dim[i] > INT32_MAX) return "sizes up to 2^31 - 1 only";
      if (tensor->dim[i] != 1 && tensor->stride[i] != expected) return "packed tensors only";
      if (expected > INT64_MAX / 4 / (tensor->dim[i] + 1)) return "too large";
      expected *= tensor->dim[i];
    }
  }
  if (elements(desc->inputs[0]) != elements(desc->outputs[0])) return "input and output of one shape only";
  return NULL;
}

static gpunn_status op_query(gpunn_device* device, const gpunn_op_desc* desc, gpunn_op_support* support,
                             gpunn_error* error) {
  const char* why = refusal(desc);
  gpunn_op_support known = {.struct_size = support->struct_size, .score = why == NULL ? 1 : 0};
  (void)device, (void)error;
  if (why == NULL) known.flags = GPUNN_OP_DETERMINISTIC;
  if (why != NULL) strcpy(known.reason, why);
  memcpy(support, &known, support->struct_size < sizeof(known) ? support->struct_size : sizeof(known));
  return GPUNN_OK;
}

static gpunn_status op_create(gpunn_device* device, const gpunn_op_desc* desc, gpunn_kernel** kernel,
                              gpunn_error* error) {
  const char* why = refusal(desc);
  (void)device;
  if (why != NULL) return fail(error, GPUNN_UNSUPPORTED, why);
  *kernel = malloc(sizeof(gpunn_kernel));
  if (*kernel == NULL) return fail(error, GPUNN_OUT_OF_MEMORY, "no host memory");
  (*kernel)->count = elements(desc->inputs[0]);
  return GPUNN_OK;
}

static gpunn_status op_enqueue(gpunn_kernel* kernel, gpunn_stream* stream, const gpunn_op_args* args,
                               gpunn_error* error) {
  const float* x = args->inputs[0]->data;
  float* y = args->outputs[0]->data; /* may be x */
  (void)stream, (void)error;
  for (int64_t i = 0; i < kernel->count; ++i) y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays NaN */
  return GPUNN_OK;
}

static void op_free(gpunn_kernel* kernel) { free(kernel); }

static void shutdown(void) {}

/* Optional functions that are left out are NULL. */
static const gpunn_plugin table = {
    .struct_size = sizeof(gpunn_plugin),
    .abi_major = GPUNN_ABI_MAJOR,
    .abi_minor = GPUNN_ABI_MINOR,
    .name = "plain_c",
    .version = "1.0.0",
    .build = "C11",
    .base = "cpu",
    .probe = probe,
    .device_open = device_open,
    .device_close = device_close,
    .device_info = device_info,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
    .fill = fill,
    .stream_create = stream_create,
    .stream_wrap = stream_wrap,
    .stream_native = stream_native,
    .stream_sync = stream_sync,
    .stream_destroy = stream_destroy,
    .event_create = event_create,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_sync = event_sync,
    .event_elapsed = event_elapsed,
    .event_destroy = event_destroy,
    .op_query = op_query,
    .op_create = op_create,
    .op_enqueue = op_enqueue,
    .op_free = op_free,
    .shutdown = shutdown,
};

const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  (void)host_minor;
  return host_major == GPUNN_ABI_MAJOR ? &table : NULL;
}
