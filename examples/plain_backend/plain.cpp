// A backend of 38 plain loops on one core, without a base: all that LeNet, ResNet-18 and an MLP need to be trained.
// Everything else that they are written in - biases, activations, softmax, the optimizer - gpunn composes of these.
#include "plain.hpp"

#include <string>
#include <vector>

namespace plain {

using namespace gpunn;

plugin::Support is_declared(const OpDesc& desc) {
  const auto of = [](const gpunn_tensor& tensor) {
    return ops::Tensor{tensor.dtype, {tensor.dim, tensor.dim + tensor.rank}};
  };
  try {
    std::vector<ops::Tensor> inputs;
    for (std::size_t i = 0; i < desc.inputs(); ++i) {
      if (!plugin::is_packed(desc.input(i))) return plugin::Support::no("an input is not packed");
      inputs.push_back(of(desc.input(i)));
    }
    const std::vector<ops::Tensor> outputs = ops::outputs_of(ops::all().at(desc.op()), desc.raw().attrs, inputs);
    if (outputs.size() != desc.outputs()) return plugin::Support::no("another number of outputs");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ops::Tensor given = of(desc.output(i));
      if (given.dtype != outputs[i].dtype || given.shape != outputs[i].shape || !plugin::is_packed(desc.output(i))) {
        return plugin::Support::no("output " + std::to_string(i) + " must be packed " + ops::text_of(outputs[i]));
      }
    }
    return plugin::Support::yes();
  } catch (const ops::Misfit& misfit) {
    return plugin::Support::no(misfit.what());
  }
}

namespace {

class PlainDevice final : public plugin::HostDevice {
 public:
  PlainDevice() {
    add_arithmetic(*this);
    add_images(*this);
    add_batches(*this);
    add_training(*this);
  }
};

class PlainBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "plain"; }
  const char* version() const override { return "1.0"; }
  int probe() override { return 1; }
  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device, of index 0");
    return std::make_unique<PlainDevice>();
  }
};

}  // namespace
}  // namespace plain

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<plain::PlainBackend>(host_major, host_minor);
}
