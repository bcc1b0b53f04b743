#include "add_op.hpp"
#include "gemm.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct MatmulPlan {
  Gemm gemm;
  bool relu;
  uint64_t workspace_bytes;
};

GemmShape checked_shape(const OpDesc& desc, bool transpose_a, bool transpose_b) {
  const gpunn_tensor& a = desc.input(0);
  const gpunn_tensor& b = desc.input(1);
  require_packed(a, GPUNN_F32, "a");
  require_packed(b, GPUNN_F32, "b");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require(a.rank == 2 && b.rank == 2, "a and b must be matrices");
  GemmShape shape{};
  shape.transpose_a = transpose_a;
  shape.transpose_b = transpose_b;
  shape.m = a.dim[transpose_a ? 1 : 0];
  shape.k = a.dim[transpose_a ? 0 : 1];
  shape.n = b.dim[transpose_b ? 0 : 1];
  require(b.dim[transpose_b ? 1 : 0] == shape.k, "a and b don't agree in the inner dimension");
  require_shape(desc.output(0), {shape.m, shape.n}, "y");
  return shape;
}

MatmulPlan make_plan(const GemmShape& shape, bool relu) {
  const Gemm gemm(shape, thread_count());
  return {gemm, relu, gemm.workspace_bytes()};
}

MatmulPlan plan_matmul(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_matmul_attrs>(desc);
  return make_plan(checked_shape(desc, attrs.transpose_a != 0, attrs.transpose_b != 0), false);
}

MatmulPlan plan_matmul_bias_activation(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  const auto attrs = require_attrs<gpunn_matmul_bias_activation_attrs>(desc);
  require(attrs.activation == GPUNN_ACTIVATION_NONE || attrs.activation == GPUNN_ACTIVATION_RELU,
          "the activation is not one of none and relu");
  const GemmShape shape = checked_shape(desc, attrs.transpose_a != 0, attrs.transpose_b != 0);
  require_packed(desc.input(2), GPUNN_F32, "bias");
  require_shape(desc.input(2), {shape.n}, "bias");
  return make_plan(shape, attrs.activation == GPUNN_ACTIVATION_RELU);
}

void run_matmul(const MatmulPlan& plan, const OpArgs& args) {
  plan.gemm.run(args.in<float>(0), args.in<float>(1), args.out<float>(0), {}, args.workspace<float>());
}

void run_matmul_bias_activation(const MatmulPlan& plan, const OpArgs& args) {
  plan.gemm.run(args.in<float>(0), args.in<float>(1), args.out<float>(0), {args.in<float>(2), plan.relu},
                args.workspace<float>());
}

}  // namespace

void add_matmul_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_MATMUL, plan_matmul, run_matmul);
  add_op(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, plan_matmul_bias_activation, run_matmul_bias_activation);
}

}  // namespace gpunn::cpu
