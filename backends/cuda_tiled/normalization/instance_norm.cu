// INSTANCE_NORM and its gradient. The gradients of gamma and beta are sums over rows of sums that each plane computes
// anyway.
#include <cstdint>

#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "normalization/norm_rows.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::InstanceNorm;

InstanceNorm plan_instance(const OpDesc& desc) {
  const InstanceNorm shape = backends::instance_norm_of(desc);
  rows::require_rows(shape.planes(), shape.size);
  return shape;
}

InstanceNorm plan_instance_backward(const OpDesc& desc) {
  const InstanceNorm shape = backends::instance_norm_backward_of(desc);
  rows::require_rows(shape.planes(), shape.size);
  return shape;
}

// A thread a channel.
__global__ void add_planes(rows::PlaneSums sums, float* dgamma, float* dbeta, InstanceNorm shape) {
  const int64_t channel = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= shape.channels) return;
  double product = 0.0, sum = 0.0;
  for (int64_t plane = channel; plane < shape.planes(); plane += shape.channels) {
    product += sums.dgamma[plane];
    sum += sums.dbeta[plane];
  }
  dgamma[channel] = static_cast<float>(product);
  dbeta[channel] = static_cast<float>(sum);
}

void run_instance(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* const x = args.in<float>(0);
  auto* const y = args.out<float>(0);
  const rows::Affine by{
      .gamma = args.in<float>(1), .beta = args.in<float>(2), .channels = static_cast<int>(shape.channels)};
  rows::by_shape(shape.planes(), shape.size, {x, y}, [&](const rows::Rows& plan, auto width, auto packs) {
    rows::launch_rows(rows::norm_rows<width(), packs()>, shape.planes(), plan, stream, x, by, y, args.out<float>(1),
                      args.out<float>(2), plan, shape.epsilon);
  });
}

void run_instance_backward(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* const dy = args.in<float>(0);
  const auto* const x = args.in<float>(1);
  auto* const dx = args.out<float>(0);
  auto* const workspace = args.workspace<double>();
  const rows::Saved saved{.gamma = args.in<float>(2), .mean = args.in<float>(3), .rstd = args.in<float>(4)};
  const rows::PlaneSums sums{.dgamma = workspace, .dbeta = workspace + shape.planes()};
  rows::by_shape(shape.planes(), shape.size, {dy, x, dx}, [&](const rows::Rows& plan, auto width, auto packs) {
    rows::launch_rows(rows::norm_rows_backward<width(), packs()>, shape.planes(), plan, stream, dy, x, saved,
                      static_cast<int>(shape.channels), dx, sums, plan);
  });
  launch(add_planes, thread_each(shape.channels), stream, sums, args.out<float>(1), args.out<float>(2), shape);
}

}  // namespace

void add_instance_norm_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_INSTANCE_NORM, "instance_norm", plan_instance, run_instance);
  add_op(device, GPUNN_OP_INSTANCE_NORM_BACKWARD, "instance_norm_backward", plan_instance_backward,
         run_instance_backward);
}

}  // namespace gpunn::cuda_tiled
