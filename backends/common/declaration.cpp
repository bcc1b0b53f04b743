#include "common/declaration.hpp"

#include <gpunn/op_shapes.hpp>

#include <vector>

namespace gpunn::backends {
namespace {

ops::Tensor declared(const gpunn_tensor& tensor) { return {tensor.dtype, {tensor.dim, tensor.dim + tensor.rank}}; }

}  // namespace

void require_declared(const OpDesc& desc) {
  const ops::Op& op = ops::all().at(desc.op());
  require_tensors(desc, op.signature.least_inputs, op.signature.most_inputs, op.signature.outputs.size());
  std::vector<ops::Tensor> inputs;
  for (std::size_t i = 0; i < desc.inputs(); ++i) {
    require_packed(desc.input(i), desc.input(i).dtype, "an input");
    inputs.push_back(declared(desc.input(i)));
  }
  try {
    const std::vector<ops::Tensor> outputs = ops::outputs_of(op, desc.raw().attrs, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const gpunn_tensor& output = desc.output(i);
      require_packed(output, outputs[i].dtype, "an output");
      if (declared(output).shape != outputs[i].shape) {
        throw Refusal("an output must be " + ops::text_of(outputs[i]) + ", not " + ops::text_of(declared(output)));
      }
    }
  } catch (const ops::Misfit& misfit) {
    throw Refusal(misfit.what());
  }
}

}  // namespace gpunn::backends
