#include "common/matmul.hpp"

#include "add_op.hpp"
#include "kernels.hpp"
#include "products/gemm.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

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

// Where there are as many products as threads each thread takes whole ones, else the team takes one after the other.
struct BatchPlan {
  BatchMatmul shape;
  Gemm gemm;
  int threads;
  uint64_t one_workspace;  // bytes of one product
  uint64_t workspace_bytes;
};

BatchPlan plan_batch_matmul(const OpDesc& desc) {
  const BatchMatmul shape = batch_matmul_of(desc);
  const int team = thread_count();
  const bool each = shape.batch >= team;
  const Gemm gemm({.m = shape.one.m,
                   .n = shape.one.n,
                   .k = shape.one.k,
                   .transpose_a = shape.one.transpose_a,
                   .transpose_b = shape.one.transpose_b},
                  each ? 1 : team);
  const int threads = each ? team : 1;
  const auto bytes = static_cast<uint64_t>(round_up(static_cast<int64_t>(gemm.workspace_bytes()), 64));
  return {shape, gemm, threads, bytes, bytes * static_cast<uint64_t>(threads)};
}

void run_batch_matmul(const BatchPlan& plan, const OpArgs& args) {
  const Matmul& one = plan.shape.one;
  const auto *a = args.in<float>(0), *b = args.in<float>(1);
  auto* y = args.out<float>(0);
  auto* workspace = args.workspace<char>();
  parallel_for(plan.threads, plan.shape.batch, [&](int64_t i, int thread) {
    auto* own = workspace + static_cast<uint64_t>(thread) * plan.one_workspace;
    plan.gemm.run(a + i * one.m * one.k, b + i * one.k * one.n, y + i * one.m * one.n, {},
                  reinterpret_cast<float*>(own));
  });
}

}  // namespace

void add_matmul_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_MATMUL, plan_matmul, run_matmul);
  add_op(device, GPUNN_OP_BATCH_MATMUL, plan_batch_matmul, run_batch_matmul);
  add_op(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, plan_matmul_bias_activation, run_matmul_bias_activation);
}

}  // namespace gpunn::cpu
