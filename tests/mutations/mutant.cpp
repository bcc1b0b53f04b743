#include "mutant.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <dlfcn.h>

namespace mutations {

namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const gpunn_plugin* load() {
  const std::string path = setting("GPUNN_MUTANT_OF");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "mutant: GPUNN_MUTANT_OF='%s': %s\n", path.c_str(), dlerror());
    return nullptr;
  }
  auto* query = reinterpret_cast<gpunn_plugin_query_v1_fn>(dlsym(library, "gpunn_plugin_query_v1"));
  return query == nullptr ? nullptr : query(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR);
}

const gpunn_plugin* wrapped = nullptr;
int32_t wanted_op = 0;
int64_t created_count = 0, alive_count = 0;

std::vector<Fault> all_faults() {
  std::vector<Fault> all{{.name = "none"}};
  for (auto kind :
       {conduct_faults, contract_faults, element_faults, kernel_faults, memory_faults, state_faults, value_faults}) {
    for (Fault& fault : kind()) all.push_back(std::move(fault));
  }
  return all;
}

const Fault& fault() {
  static const Fault chosen = [] {
    const std::string name = setting("GPUNN_MUTATION");
    for (Fault& one : all_faults()) {
      if (one.name == name) return std::move(one);
    }
    throw std::runtime_error("GPUNN_MUTATION: there is no fault '" + name + "'");
  }();
  return chosen;
}

bool concerns(int32_t op) { return wanted_op == 0 || wanted_op == op; }

gpunn_status op_query(gpunn_device* device, const gpunn_op_desc* desc, gpunn_op_support* support, gpunn_error* error) {
  const gpunn_status status = wrapped->op_query(device, desc, support, error);
  if (fault().query && concerns(desc->op)) {
    fault().query(*desc, *support);
    return support->score > 0 ? GPUNN_OK : status;
  }
  return status;
}

gpunn_status op_create(gpunn_device* device, const gpunn_op_desc* desc, gpunn_kernel** kernel, gpunn_error* error) {
  if (fault().create && concerns(desc->op)) fault().create(*desc);
  auto made = std::make_unique<Kernel>();
  gpunn_op_support support{};
  support.struct_size = sizeof(support);
  wrapped->op_query(device, desc, &support, nullptr);
  made->workspace = support.workspace_bytes;
  made->op = desc->op;
  made->number = created_count++;
  made->attrs.resize(256);
  if (desc->attrs != nullptr) {
    uint32_t size = 0;  // comes first
    std::memcpy(&size, desc->attrs, sizeof(size));
    std::memcpy(made->attrs.data(), desc->attrs, std::min<std::size_t>(size, made->attrs.size()));
  }
  if (support.score > 0) {
    const gpunn_status status = wrapped->op_create(device, desc, &made->handle, error);
    if (status != GPUNN_OK) return status;
  }
  ++alive_count;
  *kernel = reinterpret_cast<gpunn_kernel*>(made.release());
  return GPUNN_OK;
}

gpunn_status op_enqueue(gpunn_kernel* kernel, gpunn_stream* stream, const gpunn_op_args* args, gpunn_error* error) {
  auto& own = *reinterpret_cast<Kernel*>(kernel);
  ++own.calls;
  Call call{own, stream, *args};
  return fault().enqueue && concerns(own.op) ? fault().enqueue(call, error) : call.run(error);
}

void op_free(gpunn_kernel* kernel) {
  const std::unique_ptr<Kernel> own(reinterpret_cast<Kernel*>(kernel));
  if (own->handle != nullptr) wrapped->op_free(own->handle);
  --alive_count;
  if (fault().freed && concerns(own->op)) fault().freed();
}

// Fused subgraphs would pass by the ops.
const void* extension(const char* name) {
  if (wrapped->extension == nullptr || std::strstr(name, "subgraph") != nullptr) return nullptr;
  return wrapped->extension(name);
}

}  // namespace

const gpunn_plugin& real() { return *wrapped; }

bool on_host() { return std::string_view(wrapped->name) == "cpu"; }

int64_t created() { return created_count; }
int64_t alive() { return alive_count; }

gpunn_status Call::run(gpunn_error* error) { return wrapped->op_enqueue(kernel.handle, stream, &args, error); }

void Call::fill(void* to, uint8_t value, uint64_t bytes) const { wrapped->fill(stream, to, value, bytes, nullptr); }

int64_t elements(const gpunn_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= tensor.dim[i];
  return count;
}

uint64_t size_of(const gpunn_tensor& tensor) {
  switch (tensor.dtype) {
    case GPUNN_U8:
      return 1;
    case GPUNN_BF16:
    case GPUNN_F16:
      return 2;
    case GPUNN_F64:
    case GPUNN_I64:
      return 8;
    default:
      return 4;
  }
}

void* element(const gpunn_tensor& tensor, int64_t index) {
  return static_cast<std::byte*>(tensor.data) + static_cast<uint64_t>(index) * size_of(tensor);
}

int64_t longest(const Call& call) {
  int64_t most = 0;
  for (uint32_t i = 0; i < call.args.n_inputs; ++i) {
    for (int32_t d = 0; d < call.in(i).rank; ++d) most = std::max(most, call.in(i).dim[d]);
  }
  return most;
}

}  // namespace mutations

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t) {
  using namespace mutations;
  if (major != GPUNN_ABI_MAJOR) return nullptr;
  static gpunn_plugin table{};
  if (wrapped != nullptr) return &table;
  wrapped = load();
  if (wrapped == nullptr) return nullptr;
  table = *wrapped;
  table.struct_size = std::min<uint32_t>(wrapped->struct_size, sizeof(table));
  table.name = "mutant";
  table.base = nullptr;
  table.priority = -100;
  table.op_query = op_query;
  table.op_create = op_create;
  table.op_enqueue = op_enqueue;
  table.op_free = op_free;
  table.extension = extension;
  wanted_op = std::atoi(setting("GPUNN_MUTANT_OP").c_str());
  try {
    if (fault().table) fault().table(table);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mutant: %s\n", error.what());
    return nullptr;
  }
  return &table;
}

// The names of the faults, a line each; those that look into tensors on the host have "host" before them.
extern "C" GPUNN_EXPORT const char* mutant_faults() {
  static const std::string names = [] {
    std::string text;
    for (const mutations::Fault& fault : mutations::all_faults()) {
      text += (fault.host_only ? "host " : "any ") + fault.name + "\n";
    }
    return text;
  }();
  return names.c_str();
}
