/* A host of the first release of the contract, ABI 1.1, compiled against the headers of that time. */
#include "abi_1_host.h"

#include <gpunn/abi.h>
#include <gpunn/ops.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0x5a };

/* A struct of the contract with bytes behind it that no plugin may write. */
#define GUARDED(type, name)                 \
  struct {                                  \
    type value;                             \
    unsigned char guard[GUARD];             \
  } name;                                   \
  memset(&(name), 0, sizeof((name).value)); \
  memset((name).guard, GUARD_BYTE, GUARD);  \
  (name).value.struct_size = sizeof((name).value)

static int is_whole(const unsigned char* guard) {
  for (int i = 0; i < GUARD; ++i) {
    if (guard[i] != GUARD_BYTE) return 0;
  }
  return 1;
}

static char complaint[1400];

static const char* complain(const char* what, const char* text) {
  snprintf(complaint, sizeof(complaint), "%s: %s", what, text);
  return complaint;
}

static gpunn_tensor packed(int32_t rank, const int64_t* dim, void* data) {
  gpunn_tensor tensor = {.struct_size = sizeof(tensor), .dtype = GPUNN_F32, .rank = rank, .data = data};
  int64_t stride = 1;
  for (int32_t i = rank; i-- > 0;) {
    tensor.dim[i] = dim[i];
    tensor.stride[i] = stride;
    stride *= dim[i];
  }
  return tensor;
}

static size_t bytes_of(const gpunn_tensor* tensor) {
  size_t bytes = sizeof(float);
  for (int32_t i = 0; i < tensor->rank; ++i) bytes *= (size_t)tensor->dim[i];
  return bytes;
}

struct problem {
  const char* name;
  int32_t op;
  const void* attrs;
  uint32_t inputs;
  gpunn_tensor tensor[3]; /* the inputs, then the output */
  const float* value[2];
  const float* expected;
};

/* Runs an op on the device as a training does: asked, made, put on the stream. NULL: the numbers are right. */
static const char* run(const gpunn_plugin* plugin, gpunn_device* device, gpunn_stream* stream, struct problem* p) {
  GUARDED(gpunn_error, error);
  const gpunn_tensor* tensors[3] = {&p->tensor[0], &p->tensor[1], &p->tensor[2]};
  const gpunn_op_desc desc = {.struct_size = sizeof(desc),
                              .op = p->op,
                              .attrs = p->attrs,
                              .n_inputs = p->inputs,
                              .n_outputs = 1,
                              .inputs = tensors,
                              .outputs = tensors + p->inputs};
  GUARDED(gpunn_op_support, support);
  if (plugin->op_query(device, &desc, &support.value, &error.value) != GPUNN_OK) {
    return complain(p->name, error.value.message);
  }
  if (!is_whole(support.guard)) return complain(p->name, "op_query wrote beyond gpunn_op_support");
  if (support.value.score <= 0) return complain(p->name, support.value.reason);

  gpunn_kernel* kernel = NULL;
  void* workspace = NULL;
  if (plugin->op_create(device, &desc, &kernel, &error.value) != GPUNN_OK ||
      plugin->memory_alloc(device, GPUNN_MEMORY_DEVICE, support.value.workspace_bytes + 1, &workspace, &error.value) !=
          GPUNN_OK) {
    return complain(p->name, error.value.message);
  }
  for (uint32_t i = 0; i <= p->inputs; ++i) {
    const size_t bytes = bytes_of(&p->tensor[i]);
    gpunn_status status = plugin->memory_alloc(device, GPUNN_MEMORY_DEVICE, bytes, &p->tensor[i].data, &error.value);
    if (status == GPUNN_OK && i < p->inputs) {
      status = plugin->copy(stream, p->tensor[i].data, p->value[i], bytes, GPUNN_HOST_TO_DEVICE, &error.value);
    } else if (status == GPUNN_OK) {
      status = plugin->fill(stream, p->tensor[i].data, 0xff, bytes, &error.value);
    }
    if (status != GPUNN_OK) return complain(p->name, error.value.message);
  }
  const gpunn_op_args args = {.struct_size = sizeof(args),
                              .n_inputs = p->inputs,
                              .n_outputs = 1,
                              .inputs = tensors,
                              .outputs = tensors + p->inputs,
                              .workspace = workspace,
                              .workspace_bytes = support.value.workspace_bytes};
  float found[64];
  const gpunn_tensor* output = &p->tensor[p->inputs];
  if (plugin->op_enqueue(kernel, stream, &args, &error.value) != GPUNN_OK ||
      plugin->copy(stream, found, output->data, bytes_of(output), GPUNN_DEVICE_TO_HOST, &error.value) != GPUNN_OK ||
      plugin->stream_sync(stream, &error.value) != GPUNN_OK) {
    return complain(p->name, error.value.message);
  }
  plugin->op_free(kernel);
  plugin->memory_free(device, GPUNN_MEMORY_DEVICE, workspace);
  for (uint32_t i = 0; i <= p->inputs; ++i) plugin->memory_free(device, GPUNN_MEMORY_DEVICE, p->tensor[i].data);
  if (!is_whole(error.guard)) return complain(p->name, "the plugin wrote beyond gpunn_error");
  /* Small whole numbers: every order of sums gives the same bits. */
  if (memcmp(found, p->expected, bytes_of(output)) != 0) return complain(p->name, "the numbers are wrong");
  return NULL;
}

static const char* run_ops(const gpunn_plugin* plugin, gpunn_device* device, gpunn_stream* stream) {
  static const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, -1, 2, 1, 1}, product[4] = {2, 7, 5, 16};
  static const gpunn_matmul_attrs matmul = {.struct_size = sizeof(matmul)};
  struct problem products = {.name = "MATMUL",
                             .op = GPUNN_OP_MATMUL,
                             .attrs = &matmul,
                             .inputs = 2,
                             .tensor = {packed(2, (int64_t[]){2, 3}, NULL), packed(2, (int64_t[]){3, 2}, NULL),
                                        packed(2, (int64_t[]){2, 2}, NULL)},
                             .value = {a, b},
                             .expected = product};
  static const float image[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, filter[4] = {1, 0, 0, -1};
  static const float convolved[4] = {-4, -4, -4, -4};
  static const gpunn_conv2d_attrs conv = {
      .struct_size = sizeof(conv), .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  struct problem convolution = {
      .name = "CONV2D",
      .op = GPUNN_OP_CONV2D,
      .attrs = &conv,
      .inputs = 2,
      .tensor = {packed(4, (int64_t[]){1, 1, 3, 3}, NULL), packed(4, (int64_t[]){1, 1, 2, 2}, NULL),
                 packed(4, (int64_t[]){1, 1, 2, 2}, NULL)},
      .value = {image, filter},
      .expected = convolved};
  static const float larger[6] = {1, 2, 3, 4, 5, 6};
  struct problem maximum = {
      .name = "MAXIMUM",
      .op = GPUNN_OP_MAXIMUM,
      .inputs = 2,
      .tensor = {packed(1, (int64_t[]){6}, NULL), packed(1, (int64_t[]){6}, NULL), packed(1, (int64_t[]){6}, NULL)},
      .value = {a, b},
      .expected = larger};
  struct problem* problems[] = {&products, &convolution, &maximum};
  for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); ++i) {
    const char* wrong = run(plugin, device, stream, problems[i]);
    if (wrong != NULL) return wrong;
  }
  return NULL;
}

const char* gpunn_abi_1_host(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return complain("dlopen", dlerror());
  gpunn_plugin_query_v1_fn query = NULL;
  *(void**)&query = dlsym(library, "gpunn_plugin_query_v1");
  if (query == NULL) return complain("dlsym", "there is no gpunn_plugin_query_v1");
  const gpunn_plugin* plugin = query(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR);
  if (plugin == NULL) return complain("gpunn_plugin_query_v1", "the plugin can't serve a host that speaks 1.1");
  if (plugin->abi_major != 1 || plugin->struct_size < sizeof(gpunn_plugin)) {
    return complain("gpunn_plugin", "its table is smaller than that of ABI 1.1, or of another major version");
  }
  GUARDED(gpunn_error, error);
  int32_t devices = 0;
  if (plugin->probe(&devices, &error.value) != GPUNN_OK) return complain("probe", error.value.message);
  const gpunn_device_options options = {.struct_size = sizeof(options), .host_threads = 1};
  gpunn_device* device = NULL;
  if (devices < 1 || plugin->device_open(&options, &device, &error.value) != GPUNN_OK) {
    return complain("device_open", error.value.message);
  }
  GUARDED(gpunn_device_info, info);
  gpunn_stream* stream = NULL;
  if (plugin->device_info(device, &info.value, &error.value) != GPUNN_OK ||
      plugin->stream_create(device, &stream, &error.value) != GPUNN_OK) {
    return complain("device_info, stream_create", error.value.message);
  }
  if (!is_whole(info.guard)) return complain("device_info", "the plugin wrote beyond gpunn_device_info");
  if (strcmp(info.value.memory_domain, "host") != 0) return complain("memory_domain", info.value.memory_domain);
  const char* wrong = run_ops(plugin, device, stream);
  plugin->stream_destroy(stream);
  plugin->device_close(device);
  return wrong;
}
