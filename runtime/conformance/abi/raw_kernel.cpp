#include "conformance/abi/raw_kernel.hpp"

namespace gpunn::conformance {

RawKernel::RawKernel(const RawChain& chain, const RawDescription& description) {
  for (; level_ < chain.size() && device_ == nullptr; ++level_) {
    const RawDevice& device = chain.at(level_);
    if (description.get()->kernel != nullptr && device.table().abi_minor < 1) continue;  // reads no such wish
    support_ = {};
    support_.struct_size = sizeof(support_);
    device.call("op_query", [&](gpunn_error* error) {
      const gpunn_status status = device.table().op_query(device.device(), description.get(), &support_, error);
      return status == GPUNN_UNSUPPORTED ? GPUNN_OK : status;
    });
    if (support_.score > 0) {
      device_ = &device;
      break;
    }
    support_.reason[sizeof(support_.reason) - 1] = '\0';
    reason_ += (level_ == 0 ? "" : "; ") + device.plugin().name() + ": " + support_.reason;
  }
  if (device_ == nullptr) return;
  device_->call("op_create", [&](gpunn_error* error) {
    return device_->table().op_create(device_->device(), description.get(), &kernel_, error);
  });
}

RawKernel::~RawKernel() {
  if (kernel_ != nullptr) plugins::guarded_void([&] { device_->table().op_free(kernel_); });
}

void RawKernel::enqueue(gpunn_stream* stream, const RawDescription& description, const RawMemory& workspace) const {
  const gpunn_op_args args{.struct_size = sizeof(gpunn_op_args),
                           .n_inputs = description.get()->n_inputs,
                           .n_outputs = description.get()->n_outputs,
                           .reserved = 0,
                           .inputs = description.inputs(),
                           .outputs = description.outputs(),
                           .workspace = workspace.data(),
                           .workspace_bytes = workspace_bytes()};
  device_->call("op_enqueue",
                [&](gpunn_error* error) { return device_->table().op_enqueue(kernel_, stream, &args, error); });
}

}  // namespace gpunn::conformance
