#include <cstddef>
#include <cstdio>
#include <cstring>

#include "mutant.hpp"

namespace mutations {

namespace {

bool has_dtype(const gpunn_op_desc& desc, int32_t dtype) {
  for (uint32_t i = 0; i < desc.n_inputs; ++i) {
    if (desc.inputs[i]->dtype == dtype) return true;
  }
  return false;
}

bool is_packed(const gpunn_tensor& tensor) {
  int64_t stride = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.dim[d] > 1 && tensor.stride[d] != stride) return false;
    stride *= tensor.dim[d];
  }
  return true;
}

void say_yes(gpunn_op_support& support) {
  support.score = 10;
  support.workspace_bytes = 0;
  support.flags = GPUNN_OP_DETERMINISTIC;
}

Fault yes_where(std::string name, std::function<bool(const gpunn_op_desc&)> where) {
  return {.name = std::move(name), .query = [where](const gpunn_op_desc& desc, gpunn_op_support& support) {
            if (support.score <= 0 && where(desc)) say_yes(support);
          }};
}

gpunn_status two_devices(int32_t* count, gpunn_error* error) {
  const gpunn_status status = real().probe(count, error);
  if (status == GPUNN_OK) ++*count;
  return status;
}

int questions = 0;

}  // namespace

std::vector<Fault> contract_faults() {
  return {
      yes_where("yes-to-f64", [](const gpunn_op_desc& d) { return has_dtype(d, GPUNN_F64); }),
      yes_where("yes-to-bf16", [](const gpunn_op_desc& d) { return has_dtype(d, GPUNN_BF16); }),
      yes_where("yes-to-f16", [](const gpunn_op_desc& d) { return has_dtype(d, GPUNN_F16); }),
      yes_where("yes-to-i64", [](const gpunn_op_desc& d) { return has_dtype(d, GPUNN_I64); }),
      yes_where("yes-to-strides",
                [](const gpunn_op_desc& d) {
                  for (uint32_t i = 0; i < d.n_inputs; ++i) {
                    if (!is_packed(*d.inputs[i])) return true;
                  }
                  return false;
                }),
      yes_where("yes-to-anything", [](const gpunn_op_desc&) { return true; }),
      yes_where("yes-to-packed-f32",
                [](const gpunn_op_desc& d) {
                  for (uint32_t i = 0; i < d.n_inputs; ++i) {
                    if (d.inputs[i]->dtype != GPUNN_F32 || !is_packed(*d.inputs[i])) return false;
                  }
                  return true;
                }),
      yes_where("yes-to-an-op-that-there-is-not", [](const gpunn_op_desc& d) { return d.op == 99999; }),
      {.name = "answers-alternate",
       .query =
           [](const gpunn_op_desc&, gpunn_op_support& support) {
             if (support.score > 0 && ++questions % 2 == 0) support.workspace_bytes += 256;
           }},
      {.name = "answers-change-when-a-kernel-was-created",
       .query = [](const gpunn_op_desc&,
                   gpunn_op_support& support) { support.workspace_bytes += 256 * static_cast<uint64_t>(created()); }},
      {.name = "promises-bits-after-another-question",
       .query =
           [](const gpunn_op_desc& desc, gpunn_op_support& support) {
             if (has_dtype(desc, GPUNN_F64)) questions = 1000;
             if (questions >= 1000) support.flags ^= GPUNN_OP_CAPTURABLE;
           }},
      {.name = "writes-names-beyond-struct-size",
       .query = [](const gpunn_op_desc&,
                   gpunn_op_support& support) { std::memset(support.kernels, 0, sizeof(support.kernels)); }},
      {.name = "reads-the-kernel-beyond-struct-size",
       .query =
           [](const gpunn_op_desc& desc, gpunn_op_support& support) {
             if (desc.kernel != nullptr && *desc.kernel == '?') support.score = 0;
           }},
      {.name = "refuses-longer-structs",
       .query =
           [](const gpunn_op_desc& desc, gpunn_op_support& support) {
             if (desc.struct_size > sizeof(gpunn_op_desc)) support.score = 0;
           }},
      {.name = "refuses-longer-tensors",
       .query =
           [](const gpunn_op_desc& desc, gpunn_op_support& support) {
             if (desc.n_inputs > 0 && desc.inputs[0]->struct_size != sizeof(gpunn_tensor)) support.score = 0;
           }},
      {.name = "a-second-device-that-does-not-open", .table = [](gpunn_plugin& table) { table.probe = two_devices; }},
      {.name = "says-no-to-everything",
       .query = [](const gpunn_op_desc&, gpunn_op_support& support) { support.score = 0; }},
      {.name = "a-negative-index-opens",
       .table =
           [](gpunn_plugin& table) {
             table.device_open = [](const gpunn_device_options* options, gpunn_device** device, gpunn_error* error) {
               gpunn_device_options first = *options;
               first.index = 0;
               return real().device_open(&first, device, error);
             };
           }},
      {.name = "device-info-beyond-struct-size",
       .table =
           [](gpunn_plugin& table) {
             table.device_info = [](gpunn_device* device, gpunn_device_info* info, gpunn_error* error) {
               gpunn_device_info whole{};
               whole.struct_size = sizeof(whole);
               const gpunn_status status = real().device_info(device, &whole, error);
               *info = whole;
               return status;
             };
           }},
      {.name = "memory-off-its-alignment",
       .table =
           [](gpunn_plugin& table) {
             table.memory_alloc = [](gpunn_device* device, int32_t kind, uint64_t bytes, void** data,
                                     gpunn_error* error) {
               const gpunn_status status = real().memory_alloc(device, kind, bytes + 64, data, error);
               if (status == GPUNN_OK && *data != nullptr) *data = static_cast<char*>(*data) + 4;
               return status;
             };
             table.memory_free = [](gpunn_device* device, int32_t kind, void* data) {
               real().memory_free(device, kind, data == nullptr ? nullptr : static_cast<char*>(data) - 4);
             };
           }},
      {.name = "fill-a-byte-too-many",
       .table =
           [](gpunn_plugin& table) {
             table.fill = [](gpunn_stream* stream, void* to, uint8_t value, uint64_t bytes, gpunn_error* error) {
               return real().fill(stream, to, value, bytes == 0 ? 0 : bytes + 1, error);
             };
           }},
      {.name = "copy-a-byte-too-few",
       .table =
           [](gpunn_plugin& table) {
             table.copy = [](gpunn_stream* stream, void* to, const void* from, uint64_t bytes, int32_t direction,
                             gpunn_error* error) {
               return real().copy(stream, to, from, bytes > 4096 ? bytes - 1 : bytes, direction, error);
             };
           }},
      {.name = "no-error-text-within-struct-size",
       .table =
           [](gpunn_plugin& table) {
             table.device_open = [](const gpunn_device_options* options, gpunn_device** device, gpunn_error* error) {
               const gpunn_status status = real().device_open(options, device, nullptr);
               if (status != GPUNN_OK && error != nullptr) {
                 std::snprintf(error->message, sizeof(error->message), "%0100d", 1);
               }
               return status;
             };
           }},
  };
}

}  // namespace mutations
