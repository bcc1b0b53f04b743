#include "common/matmul.hpp"

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

MatmulPlan make_plan(const Matmul& matmul) {
  const Gemm gemm({.m = matmul.m,
                   .n = matmul.n,
                   .k = matmul.k,
                   .transpose_a = matmul.transpose_a,
                   .transpose_b = matmul.transpose_b},
                  thread_count());
  return {gemm, matmul.relu, gemm.workspace_bytes()};
}

MatmulPlan plan_matmul(const OpDesc& desc) { return make_plan(matmul_of(desc)); }
MatmulPlan plan_matmul_bias_activation(const OpDesc& desc) { return make_plan(matmul_bias_activation_of(desc)); }

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
