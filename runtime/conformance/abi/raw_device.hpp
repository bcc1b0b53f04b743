#pragma once

#include <gpunn/abi.h>
#include <gpunn/precision.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "plugins/call.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::conformance {

using PluginPointer = std::shared_ptr<const plugins::Plugin>;

// A plugin's device with a stream, driven through the bare table: for what execution::Backend does not let through.
class RawDevice {
 public:
  // `base`: the opened base of an overlay, whose stream is wrapped; nullptr: create an own stream.
  RawDevice(PluginPointer plugin, int threads, const RawDevice* base, int index = 0);
  ~RawDevice();
  RawDevice(const RawDevice&) = delete;
  RawDevice& operator=(const RawDevice&) = delete;

  const plugins::Plugin& plugin() const { return *plugin_; }
  const gpunn_plugin& table() const { return plugin_->table(); }
  gpunn_device* device() const { return device_; }
  gpunn_stream* stream() const { return stream_; }
  gpunn_device_info info() const;
  void synchronize() const;

  // Throws Error with the plugin's text where `function(gpunn_error*)` fails.
  template <class F>
  void call(const std::string& name, F&& function) const {
    plugins::call(*plugin_, name, function);
  }

 private:
  PluginPointer plugin_;
  gpunn_device* device_ = nullptr;
  gpunn_stream* stream_ = nullptr;
};

// A chain of plugins, overlay first, opened from the base upwards.
class RawChain {
 public:
  RawChain(const std::vector<PluginPointer>& chain, int threads);
  std::size_t size() const { return devices_.size(); }
  const RawDevice& at(std::size_t level) const { return *devices_.at(devices_.size() - 1 - level); }
  const RawDevice& top() const { return *devices_.back(); }
  const RawDevice& bottom() const { return *devices_.front(); }  // owns memory and stream

 private:
  std::vector<std::unique_ptr<RawDevice>> devices_;  // base first, so that it is closed last
};

// Memory of a device.
class RawMemory {
 public:
  RawMemory(const RawDevice& device, int32_t kind, uint64_t bytes);
  ~RawMemory();
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;
  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

  void write(std::span<const std::byte> bytes) const;  // at its beginning; waits
  void read(std::span<std::byte> bytes) const;

 private:
  const RawDevice& device_;
  int32_t kind_;
  uint64_t bytes_;
  void* data_ = nullptr;
};

// One op as op_query and op_create take it; the data that it points to must outlive it.
class RawDescription {
 public:
  // `kernel`: the name of the one that is wanted; empty: the plugin's own choice.
  RawDescription(int32_t op, const void* attrs, std::span<const gpunn_tensor> inputs,
                 std::span<const gpunn_tensor> outputs, Precision precision = Precision::fp32,
                 const std::string& kernel = {});
  const gpunn_op_desc* get() const { return &desc_; }
  const gpunn_tensor* const* inputs() const { return inputs_.data(); }
  const gpunn_tensor* const* outputs() const { return outputs_.data(); }

 private:
  std::vector<const gpunn_tensor*> inputs_, outputs_;
  gpunn_op_desc desc_{};
};

}  // namespace gpunn::conformance
