#include "tasks/style/losses.hpp"

#include <gpunn/ops.h>

#include <cstddef>

namespace gpunn::tasks {

using graph::Expressions;
using graph::ValueId;

ValueId gram_matrix(Expressions& e, ValueId features) {
  const Shape shape = e.shape(features);
  const int64_t places = element_count(shape) / (shape.at(0) * shape.at(1));
  const ValueId rows = e.view(features, {shape[0], shape[1], places});
  const gpunn_matmul_attrs attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1};
  const ValueId products = e.op(GPUNN_OP_BATCH_MATMUL, {rows, rows}, graph::Attributes::of(attrs));
  return e.scaled(products, 1 / (static_cast<double>(shape[1]) * static_cast<double>(places)));
}

ValueId mean_square(Expressions& e, ValueId x, ValueId target) {
  return e.op(GPUNN_OP_MSE_LOSS, {x, e.expand(target, e.shape(x))});
}

ValueId total_variation(Expressions& e, ValueId images) {
  ValueId sum = e.constant(0, {e.shape(images).at(0)});
  for (std::size_t dimension = 2; dimension < e.rank(images); ++dimension) {
    const int64_t size = e.shape(images)[dimension];
    if (size < 2) continue;
    const ValueId behind = e.slice(images, dimension, 1, size - 1), before = e.slice(images, dimension, 0, size - 1);
    const ValueId difference = e.sub(behind, before);
    sum = e.add(sum, e.mean(e.mul(difference, difference), e.all(difference) & ~1U, false));
  }
  return sum;
}

}  // namespace gpunn::tasks
