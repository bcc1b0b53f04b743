#include "common/matmul.hpp"

#include "kernels.hpp"
#include "operation.hpp"

namespace gpunn::onednn {
namespace {

using dnnl::memory;

memory::desc matrix(const gpunn_tensor& tensor, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  memory::dims sizes{rows, columns}, strides{transposed ? 1 : columns, transposed ? rows : 1};
  if (batch > 0) {
    sizes.insert(sizes.begin(), batch);
    strides.insert(strides.begin(), rows * columns);
  }
  return {sizes, data_type_of(tensor), strides};
}

// `batch` is 0 for a single product.
Plan product(const OpDesc& desc, const backends::Matmul& p, int64_t batch, bool bias) {
  require(p.m > 0 && p.n > 0 && p.k > 0, "oneDNN multiplies no empty matrices");
  const memory::desc a = matrix(desc.input(0), batch, p.m, p.k, p.transpose_a),
                     b = matrix(desc.input(1), batch, p.k, p.n, p.transpose_b),
                     y = matrix(desc.output(0), batch, p.m, p.n, false);
  const dnnl::primitive_attr attributes = attributes_of(desc);
  Plan plan;
  plan.relu = p.relu;
  plan.operands = {{DNNL_ARG_SRC, false, 0, a, a}, {DNNL_ARG_WEIGHTS, false, 1, b, b}, {DNNL_ARG_DST, true, 0, y, y}};
  if (bias) {
    const memory::desc row({1, p.n}, memory::data_type::f32, memory::format_tag::ab);
    plan.operands.push_back({DNNL_ARG_BIAS, false, 2, row, row});
    plan.description = common_part(describe<dnnl::matmul>(attributes, std::tuple(a, b, row, y)));
  } else {
    plan.description = common_part(describe<dnnl::matmul>(attributes, std::tuple(a, b, y)));
  }
  return plan;
}

Plan plan_matmul(const OpDesc& desc) { return product(desc, backends::matmul_of(desc), 0, false); }

Plan plan_matmul_bias_activation(const OpDesc& desc) {
  return product(desc, backends::matmul_bias_activation_of(desc), 0, true);
}

Plan plan_batch_matmul(const OpDesc& desc) {
  const backends::BatchMatmul shape = backends::batch_matmul_of(desc);
  require(shape.batch > 0, "oneDNN multiplies no empty matrices");
  return product(desc, shape.one, shape.batch, false);
}

}  // namespace

void add_matmul_kernels(plugin::Device& device, int threads) {
  serve(device, GPUNN_OP_MATMUL, threads, plan_matmul, false);
  serve(device, GPUNN_OP_BATCH_MATMUL, threads, plan_batch_matmul, false);
  serve(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, threads, plan_matmul_bias_activation, false);
}

}  // namespace gpunn::onednn
