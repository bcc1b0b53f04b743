#include "conformance/abi/raw_device.hpp"

#include <gpunn/error.hpp>

#include <utility>

#include "execution/backend.hpp"

namespace gpunn::conformance {

namespace {

void close(const gpunn_plugin& table, gpunn_device* device, gpunn_stream* stream) noexcept {
  plugins::guarded_void([&] {
    if (stream != nullptr) table.stream_destroy(stream);
    if (device != nullptr) table.device_close(device);
  });
}

}  // namespace

RawDevice::RawDevice(PluginPointer plugin, int threads, const RawDevice* base, int index) : plugin_(std::move(plugin)) {
  gpunn_device_options options{};
  options.struct_size = sizeof(options);
  options.index = index;
  options.host_threads = threads;
  try {
    call("device_open", [&](gpunn_error* error) { return table().device_open(&options, &device_, error); });
    if (base == nullptr) {
      call("stream_create", [&](gpunn_error* error) { return table().stream_create(device_, &stream_, error); });
    } else {
      void* native = nullptr;
      base->call("stream_native",
                 [&](gpunn_error* error) { return base->table().stream_native(base->stream(), &native, error); });
      call("stream_wrap", [&](gpunn_error* error) { return table().stream_wrap(device_, native, &stream_, error); });
    }
    if (device_ == nullptr || stream_ == nullptr) throw Error("a device or stream is NULL although the call said OK");
  } catch (...) {
    close(table(), device_, stream_);
    throw;
  }
}

RawDevice::~RawDevice() { close(table(), device_, stream_); }

gpunn_device_info RawDevice::info() const {
  gpunn_device_info info{};
  info.struct_size = sizeof(info);
  call("device_info", [&](gpunn_error* error) { return table().device_info(device_, &info, error); });
  return info;
}

void RawDevice::synchronize() const {
  call("stream_sync", [&](gpunn_error* error) { return table().stream_sync(stream_, error); });
}

RawChain::RawChain(const std::vector<PluginPointer>& chain, int threads) {
  for (std::size_t i = chain.size(); i-- > 0;) {
    const RawDevice* base = devices_.empty() ? nullptr : devices_.front().get();
    devices_.push_back(std::make_unique<RawDevice>(chain[i], threads, base));
  }
}

RawMemory::RawMemory(const RawDevice& device, int32_t kind, uint64_t bytes)
    : device_(device), kind_(kind), bytes_(bytes) {
  device.call("memory_alloc of " + std::to_string(bytes) + " bytes", [&](gpunn_error* error) {
    return device.table().memory_alloc(device.device(), kind, bytes, &data_, error);
  });
}

RawMemory::~RawMemory() {
  if (data_ == nullptr) return;
  plugins::guarded_void([&] { device_.table().memory_free(device_.device(), kind_, data_); });
}

void RawMemory::write(std::span<const std::byte> bytes) const {
  device_.call("copy to the device", [&](gpunn_error* error) {
    return device_.table().copy(device_.stream(), data_, bytes.data(), bytes.size(), GPUNN_HOST_TO_DEVICE, error);
  });
  device_.synchronize();
}

void RawMemory::read(std::span<std::byte> bytes) const {
  device_.call("copy from the device", [&](gpunn_error* error) {
    return device_.table().copy(device_.stream(), bytes.data(), data_, bytes.size(), GPUNN_DEVICE_TO_HOST, error);
  });
  device_.synchronize();
}

RawDescription::RawDescription(int32_t op, const void* attrs, std::span<const gpunn_tensor> inputs,
                               std::span<const gpunn_tensor> outputs, Precision precision, const std::string& kernel) {
  for (const gpunn_tensor& tensor : inputs) inputs_.push_back(&tensor);
  for (const gpunn_tensor& tensor : outputs) outputs_.push_back(&tensor);
  desc_.struct_size = sizeof(desc_);
  desc_.op = op;
  desc_.attrs = attrs;
  desc_.n_inputs = static_cast<uint32_t>(inputs_.size());
  desc_.n_outputs = static_cast<uint32_t>(outputs_.size());
  desc_.inputs = inputs_.data();
  desc_.outputs = outputs_.data();
  desc_.precision = execution::abi_precision(precision);
  desc_.kernel = kernel.empty() ? nullptr : kernel.c_str();
}

}  // namespace gpunn::conformance
