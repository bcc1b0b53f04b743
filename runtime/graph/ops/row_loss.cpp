#include "graph/ops/row_loss.hpp"

#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

std::vector<TensorType> infer_row_loss(const Attributes&, std::span<const TensorType> in) {
  require_dtype(in[0], DType::f32, "x");
  require(!in[0].shape.empty(), "x must have rows, is a scalar");
  require_same(in[0], in[1], "x", "target");
  return {{DType::f32, {in[0].shape[0]}}};
}

std::vector<TensorType> infer_row_loss_backward(const Attributes& attrs, std::span<const TensorType> in) {
  const TensorType loss = infer_row_loss(attrs, in.subspan(1)).front();
  require_same(in[0], loss, "dloss", "the loss");
  return {in[1]};
}

}  // namespace gpunn::graph
