// BATCH_NORM, its gradient and BATCH_NORM_INFERENCE of images, at the speed of memory and with equal bits for equal
// inputs. If a channel fits the registers of a block or a cluster, one kernel serves (normalization_resident.hpp);
// otherwise two do (normalization_passes.cuh). Channels-last images have their own kernels (channels_last.cuh).
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "launch.hpp"
#include "normalization/channel_shares.cuh"
#include "normalization/channels_last.cuh"
#include "normalization/channels_last_launch.cuh"
#include "normalization/normalization_passes.cuh"
#include "normalization/normalization_resident.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using namespace passes;
using channels_last::Matrix;
using Plan = BatchNormPlan;

Plan plan_of(const BatchNorm& shape) {
  require(shape.size > 1, "a matrix: the base reads it as well");
  return {.shape = shape, .split = split_of(shape.rows, shape.channels, shape.size)};
}

Plan forward_plan(const OpDesc& desc) { return batch_norm_plan(batch_norm_of(desc)); }
Plan backward_plan(const OpDesc& desc) { return batch_norm_plan(batch_norm_backward_of(desc)); }
Plan inference_plan(const OpDesc& desc) { return plan_of(batch_norm_inference_of(desc)); }

// Calls run(a constant), 4 where the elements of a row can be had four at a time from all these tensors, else 1.
template <class T, class Run>
void by_width(const Split& split, std::initializer_list<const T*> tensors, const Run& run) {
  if (split.size % 4 == 0 && cuda::are_aligned(tensors, 4 * sizeof(T))) {
    run(std::integral_constant<unsigned, 4>());
  } else {
    run(std::integral_constant<unsigned, 1>());
  }
}

template <unsigned width, class T>
void normalise_with(const BatchNorm& shape, const Forward<T>& f, cudaStream_t stream) {
  using namespace channels_last;
  const bool more = f.residual != nullptr;
  const Matrix matrix = matrix_of(shape, width, more ? kFewRowsRead : kRowsRead, kResident);
  launch_early(more ? channels_last::normalise<width, true, T> : channels_last::normalise<width, false, T>,
               blocks_of(matrix, width), stream, f, matrix);
}

template <unsigned width, class T>
void flow_back_with(const BatchNorm& shape, const Backward<T>& b, cudaStream_t stream) {
  using namespace channels_last;
  const Matrix matrix = matrix_of(shape, width, kFewRowsRead, kGradientResident);
  launch_early(channels_last::flow_back<width, T>, blocks_of(matrix, width), stream, b, matrix);
}

Launch blocks_of(const Split& split) { return block_each(split.channels * split.shares, kBlock); }

const int32_t* count_of(const Plan& plan, const OpArgs& args) {
  return plan.shape.counted ? args.in<int32_t>(5) : nullptr;
}

template <class T>
void run_forward(const Plan& plan, cudaStream_t stream, const OpArgs& args) {
  auto* const parts = args.workspace<float2>();
  const Forward<T> f{.x = args.in<T>(0),
                     .gamma = args.in<float>(1),
                     .beta = args.in<float>(2),
                     .count = count_of(plan, args),
                     .parts = parts,
                     .residual = nullptr,
                     .relu = false,
                     .y = args.out<T>(0),
                     .mean = args.out<float>(1),
                     .rstd = args.out<float>(2),
                     .running_mean = args.out<float>(3),
                     .running_var = args.out<float>(4),
                     .epsilon = plan.shape.epsilon,
                     .momentum = plan.shape.momentum};
  run_batch_norm(plan, f, parts, stream);
}

template <class T>
void run_backward(const Plan& plan, cudaStream_t stream, const OpArgs& args) {
  const Backward<T> b{.dy = args.in<T>(0),
                      .more_dy = nullptr,
                      .relu_y = nullptr,
                      .masked = nullptr,
                      .signs = nullptr,
                      .x = args.in<T>(1),
                      .gamma = args.in<float>(2),
                      .mean = args.in<float>(3),
                      .rstd = args.in<float>(4),
                      .count = count_of(plan, args),
                      .parts = args.workspace<float2>(),
                      .dx = args.out<T>(0),
                      .dgamma = args.out<float>(1),
                      .dbeta = args.out<float>(2)};
  run_batch_norm_backward(plan, b, stream);
}

template <class T>
void run_inference(const Plan& plan, cudaStream_t stream, const OpArgs& args) {
  const Inference<T> f{.x = args.in<T>(0),
                       .gamma = args.in<float>(1),
                       .beta = args.in<float>(2),
                       .mean = args.in<float>(3),
                       .variance = args.in<float>(4),
                       .y = args.out<T>(0),
                       .epsilon = plan.shape.epsilon};
  if (plan.shape.channels_last) {
    return channels_last::by_channels<T>(plan.shape.channels, {f.x, f.y}, [&](auto width) {
      using namespace channels_last;
      const Matrix matrix = matrix_of(plan.shape, width(), kRowsRead, kResident);
      launch_early(channels_last::normalise_by_given<width(), T>, blocks_of(matrix, width()), stream, f, matrix);
    });
  }
  by_width<T>(plan.split, {f.x, f.y}, [&](auto width) {
    launch(normalise_by_given<width(), T>, blocks_of(plan.split), stream, f, plan.split);
  });
}

}  // namespace

// Of the most shares that there are, whichever width and direction.
uint64_t parts_of_channels_last(const BatchNorm& shape) {
  using namespace channels_last;
  unsigned most = 1;
  for (const unsigned width : {8U, 4U, 1U}) {
    most = std::max({most, matrix_of(shape, width, kRowsRead, kResident).shares,
                     matrix_of(shape, width, kFewRowsRead, kGradientResident).shares});
  }
  return uint64_t{most} * static_cast<uint64_t>(shape.channels) * sizeof(float2);
}

template <class T>
void batch_norm_channels_last(const BatchNorm& shape, const Forward<T>& f, float2* parts, cudaStream_t stream) {
  using namespace channels_last;
  by_channels<T>(shape.channels, {f.x, f.y, f.residual}, [&](auto width) {
    const Matrix matrix = matrix_of(shape, width(), kRowsRead, kResident);
    launch_early(channels_last::reduce_statistics<width(), T>, blocks_of(matrix, width()), stream, f.x, f.count, parts,
                 matrix);
    launch_early(join_statistics<T>, joining(matrix), stream, f, matrix);
    normalise_with<width()>(shape, f, stream);
  });
}

template <class T>
void batch_norm_backward_channels_last(const BatchNorm& shape, const Backward<T>& b, cudaStream_t stream) {
  using namespace channels_last;
  by_channels<T>(shape.channels, {b.dy, b.more_dy, b.relu_y, b.masked, b.x, b.dx}, [&](auto width) {
    const Matrix matrix = matrix_of(shape, width(), kFewRowsRead, kGradientResident);
    launch_early(channels_last::reduce_gradients<width(), T>, blocks_of(matrix, width()), stream, b, matrix);
    launch_early(join_gradients<T>, joining(matrix), stream, b, matrix);
    flow_back_with<width()>(shape, b, stream);
  });
}

BatchNormPlan batch_norm_plan(const BatchNorm& shape) {
  BatchNormPlan plan = plan_of(shape);
  plan.workspace_bytes = shape.channels_last
                             ? parts_of_channels_last(shape)
                             : static_cast<uint64_t>(shape.channels) * plan.split.shares * sizeof(float2);
  return plan;
}

template <class T>
void normalise_channels_last(const BatchNorm& shape, const Forward<T>& f, cudaStream_t stream) {
  channels_last::by_channels<T>(shape.channels, {f.x, f.y, f.residual},
                                [&](auto width) { normalise_with<width()>(shape, f, stream); });
}

template <class T>
void run_batch_norm(const BatchNormPlan& plan, const Forward<T>& f, float2* parts, cudaStream_t stream) {
  if (plan.shape.channels_last) return batch_norm_channels_last(plan.shape, f, parts, stream);
  if (resident::forward(f, plan.split, stream)) return;
  by_width<T>(plan.split, {f.x, f.y, f.residual}, [&](auto width) {
    launch(reduce_statistics<width(), T>, blocks_of(plan.split), stream, f.x, f.count, parts, plan.split);
    launch(normalise<width(), T>, blocks_of(plan.split), stream, f, plan.split);
  });
}

template <class T>
void run_batch_norm_backward(const BatchNormPlan& plan, const Backward<T>& b, cudaStream_t stream) {
  if (plan.shape.channels_last) return batch_norm_backward_channels_last(plan.shape, b, stream);
  if (resident::backward(b, plan.split, stream)) return;
  by_width<T>(plan.split, {b.dy, b.more_dy, b.relu_y, b.masked, b.x, b.dx}, [&](auto width) {
    launch(reduce_gradients<width(), T>, blocks_of(plan.split), stream, b, plan.split);
    launch(flow_back<width(), T>, blocks_of(plan.split), stream, b, plan.split);
  });
}

template <class T>
void flow_back_channels_last(const BatchNorm& shape, const Backward<T>& b, cudaStream_t stream) {
  channels_last::by_channels<T>(shape.channels, {b.dy, b.more_dy, b.relu_y, b.masked, b.x, b.dx},
                                [&](auto width) { flow_back_with<width()>(shape, b, stream); });
}

template void flow_back_channels_last(const BatchNorm&, const Backward<__nv_bfloat16>&, cudaStream_t);
template void flow_back_channels_last(const BatchNorm&, const Backward<__half>&, cudaStream_t);
template void normalise_channels_last(const BatchNorm&, const Forward<__nv_bfloat16>&, cudaStream_t);
template void normalise_channels_last(const BatchNorm&, const Forward<__half>&, cudaStream_t);
template void batch_norm_channels_last(const BatchNorm&, const Forward<float>&, float2*, cudaStream_t);
template void batch_norm_backward_channels_last(const BatchNorm&, const Backward<float>&, cudaStream_t);
template void batch_norm_channels_last(const BatchNorm&, const Forward<__nv_bfloat16>&, float2*, cudaStream_t);
template void batch_norm_backward_channels_last(const BatchNorm&, const Backward<__nv_bfloat16>&, cudaStream_t);
template void batch_norm_channels_last(const BatchNorm&, const Forward<__half>&, float2*, cudaStream_t);
template void batch_norm_backward_channels_last(const BatchNorm&, const Backward<__half>&, cudaStream_t);
template void run_batch_norm(const BatchNormPlan&, const Forward<float>&, float2*, cudaStream_t);
template void run_batch_norm_backward(const BatchNormPlan&, const Backward<float>&, cudaStream_t);
template void run_batch_norm(const BatchNormPlan&, const Forward<__nv_bfloat16>&, float2*, cudaStream_t);
template void run_batch_norm_backward(const BatchNormPlan&, const Backward<__nv_bfloat16>&, cudaStream_t);
template void run_batch_norm(const BatchNormPlan&, const Forward<__half>&, float2*, cudaStream_t);
template void run_batch_norm_backward(const BatchNormPlan&, const Backward<__half>&, cudaStream_t);

void add_normalization_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_BATCH_NORM, "batch_norm", forward_plan,
         each_floating([](auto x) { return run_forward<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BATCH_NORM_BACKWARD, "batch_norm_backward", backward_plan,
         each_floating([](auto x) { return run_backward<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BATCH_NORM_INFERENCE, "batch_norm_inference", inference_plan,
         each_floating([](auto x) { return run_inference<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
