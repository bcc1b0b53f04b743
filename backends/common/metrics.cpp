#include "common/metrics.hpp"

namespace gpunn::backends {

Metrics metrics_of(const OpDesc& desc) {
  require_tensors(desc, 3, 5, 1);
  require(desc.inputs() != 4, "takes x and label together");
  const gpunn_tensor& loss = desc.input(0);
  require_packed(loss, GPUNN_F32, "loss");
  require(loss.rank == 1, "loss must be [N]");
  require_scalar(desc.input(1), GPUNN_I32, "count");
  for (const gpunn_tensor* totals : {&desc.input(2), &desc.output(0)}) {
    require_packed(*totals, GPUNN_F64, "totals");
    require_shape(*totals, {4}, "totals");
  }
  Metrics plan;
  plan.rows = loss.dim[0];
  if (desc.inputs() == 5) {
    const gpunn_tensor& x = desc.input(3);
    require_packed(x, GPUNN_F32, "x");
    require(x.rank == 2 && x.dim[0] == plan.rows && x.dim[1] >= 1, "x must be [N,C]");
    require_packed(desc.input(4), GPUNN_I32, "label");
    require_shape(desc.input(4), {plan.rows}, "label");
    plan.classes = x.dim[1];
  }
  return plan;
}

}  // namespace gpunn::backends
