// How a kernel of this backend is written, and the families of them.
#pragma once

#include <gpunn/plugin.hpp>

#include <cstdint>

namespace plain {

using gpunn::plugin::OpArgs;
using gpunn::plugin::OpDesc;
using Device = gpunn::plugin::Device;

// Serves an op at every shape that op_list.inc allows: gpunn has checked inputs, attributes and outputs before `query`
// is asked. run(attributes, tensors) is all there is to write.
template <class Attrs>
void serve(
    Device& device, int32_t op, void (*run)(const Attrs&, const OpArgs&),
    gpunn::plugin::Support (*query)(const OpDesc&) = [](const OpDesc&) { return gpunn::plugin::Support::yes(); }) {
  device.add(
      op, {.query = query, .create = [run](const OpDesc& desc) {
             return gpunn::plugin::make_kernel(
                 [run, attrs = desc.attrs<Attrs>()](gpunn::plugin::Stream&, const OpArgs& args) { run(attrs, args); });
           }});
}

inline int64_t elements(const gpunn_tensor& tensor) { return gpunn::plugin::element_count(tensor); }

void add_arithmetic(Device& device);
void add_images(Device& device);
void add_batches(Device& device);
void add_training(Device& device);

}  // namespace plain
