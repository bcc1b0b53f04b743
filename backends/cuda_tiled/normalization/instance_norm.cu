// INSTANCE_NORM and its gradient. Packed planes are rows (norm_rows.cuh). Channels-last images are batch norm's
// matrices, each image with statistics of its own (channels_last.cuh). The gradients of gamma and beta are sums over
// rows of sums that each plane computes anyway.
#include <algorithm>
#include <cstdint>

#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "normalization/channels_last.cuh"
#include "normalization/channels_last_launch.cuh"
#include "normalization/norm_rows.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::InstanceNorm;

constexpr int64_t kMostImages = 65535;  // of a grid

BatchNorm matrix_of_image(const InstanceNorm& shape) {
  return {.rows = 1, .channels = shape.channels, .size = shape.size, .epsilon = shape.epsilon, .channels_last = true};
}

// Of the most shares that there are, whichever width.
uint64_t bytes_of_parts(const InstanceNorm& shape, unsigned rows, unsigned resident) {
  unsigned most = 1;
  for (const unsigned width : {8U, 4U, 1U}) {
    const auto matrix = channels_last::matrix_of(matrix_of_image(shape), width, rows, resident, shape.rows);
    most = std::max(most, matrix.shares);
  }
  return uint64_t{most} * static_cast<uint64_t>(shape.planes()) * sizeof(float2);
}

InstanceNorm checked(InstanceNorm shape) {
  if (!shape.channels_last) {
    rows::require_rows(shape.planes(), shape.size);
    return shape;
  }
  require(shape.elements() > 0, "there is nothing to normalise");
  require(shape.rows <= kMostImages, "is for at most 65535 images");
  return shape;
}

InstanceNorm plan_instance(const OpDesc& desc) {
  InstanceNorm shape = checked(backends::instance_norm_of(desc));
  if (shape.channels_last) {
    shape.workspace_bytes = bytes_of_parts(shape, channels_last::kRowsRead, channels_last::kResident);
  }
  return shape;
}

InstanceNorm plan_instance_backward(const OpDesc& desc) {
  InstanceNorm shape = checked(backends::instance_norm_backward_of(desc));
  if (shape.channels_last) {
    // Behind the parts two sums a plane.
    shape.workspace_bytes = bytes_of_parts(shape, channels_last::kFewRowsRead, channels_last::kGradientResident) +
                            2 * static_cast<uint64_t>(shape.planes()) * sizeof(float);
  }
  return shape;
}

// A thread a channel.
template <class Sum>
__global__ void add_planes(const Sum* products, const Sum* sums, float* dgamma, float* dbeta, InstanceNorm shape) {
  const int64_t channel = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= shape.channels) return;
  double product = 0.0, sum = 0.0;
  for (int64_t plane = channel; plane < shape.planes(); plane += shape.channels) {
    product += static_cast<double>(products[plane]);
    sum += static_cast<double>(sums[plane]);
  }
  dgamma[channel] = static_cast<float>(product);
  dbeta[channel] = static_cast<float>(sum);
}

template <class T>
void run_channels_last(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  using namespace channels_last;
  const Forward<T> f{.x = args.in<T>(0),
                     .gamma = args.in<float>(1),
                     .beta = args.in<float>(2),
                     .count = nullptr,
                     .parts = args.workspace<float2>(),
                     .residual = nullptr,
                     .relu = false,
                     .y = args.out<T>(0),
                     .mean = args.out<float>(1),
                     .rstd = args.out<float>(2),
                     .running_mean = nullptr,
                     .running_var = nullptr,
                     .epsilon = shape.epsilon,
                     .momentum = 0};
  by_channels<T>(shape.channels, {f.x, f.y}, [&](auto width) {
    const Matrix matrix = matrix_of(matrix_of_image(shape), width(), kRowsRead, kResident, shape.rows);
    const Launch blocks = blocks_of(matrix, width(), shape.rows);
    launch_early(reduce_statistics<width(), T, true>, blocks, stream, f.x, f.count, args.workspace<float2>(), matrix);
    launch_early(join_statistics<T, true>, joining(matrix, shape.rows), stream, f, matrix);
    launch_early(normalise<width(), false, T, true>, blocks, stream, f, matrix);
  });
}

template <class T>
void run_channels_last_backward(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  using namespace channels_last;
  auto* const sums = args.workspace<float>();
  const Backward<T> b{.dy = args.in<T>(0),
                      .more_dy = nullptr,
                      .relu_y = nullptr,
                      .masked = nullptr,
                      .signs = nullptr,
                      .x = args.in<T>(1),
                      .gamma = args.in<float>(2),
                      .mean = args.in<float>(3),
                      .rstd = args.in<float>(4),
                      .count = nullptr,
                      .parts = reinterpret_cast<float2*>(sums + 2 * shape.planes()),
                      .dx = args.out<T>(0),
                      .dgamma = sums,
                      .dbeta = sums + shape.planes()};
  by_channels<T>(shape.channels, {b.dy, b.x, b.dx}, [&](auto width) {
    const Matrix matrix = matrix_of(matrix_of_image(shape), width(), kFewRowsRead, kGradientResident, shape.rows);
    const Launch blocks = blocks_of(matrix, width(), shape.rows);
    launch_early(reduce_gradients<width(), T, true>, blocks, stream, b, matrix);
    launch_early(join_gradients<T, true>, joining(matrix, shape.rows), stream, b, matrix);
    launch_early(flow_back<width(), T, true>, blocks, stream, b, matrix);
  });
  launch(add_planes<float>, thread_each(shape.channels), stream, b.dgamma, b.dbeta, args.out<float>(1),
         args.out<float>(2), shape);
}

template <class T>
void run_packed(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* const x = args.in<T>(0);
  auto* const y = args.out<T>(0);
  const rows::Affine by{
      .gamma = args.in<float>(1), .beta = args.in<float>(2), .channels = static_cast<int>(shape.channels)};
  rows::by_shape<T>(shape.planes(), shape.size, {x, y}, [&](const rows::Rows& plan, auto width, auto packs) {
    rows::launch_rows(rows::norm_rows<T, width(), packs()>, shape.planes(), plan, stream, x, by, y, args.out<float>(1),
                      args.out<float>(2), plan, shape.epsilon);
  });
}

template <class T>
void run_packed_backward(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* const dy = args.in<T>(0);
  const auto* const x = args.in<T>(1);
  auto* const dx = args.out<T>(0);
  auto* const workspace = args.workspace<double>();
  const rows::Saved saved{.gamma = args.in<float>(2), .mean = args.in<float>(3), .rstd = args.in<float>(4)};
  const rows::PlaneSums sums{.dgamma = workspace, .dbeta = workspace + shape.planes()};
  rows::by_shape<T>(shape.planes(), shape.size, {dy, x, dx}, [&](const rows::Rows& plan, auto width, auto packs) {
    rows::launch_rows(rows::norm_rows_backward<T, width(), packs()>, shape.planes(), plan, stream, dy, x, saved,
                      static_cast<int>(shape.channels), dx, sums, plan);
  });
  launch(add_planes<double>, thread_each(shape.channels), stream, sums.dgamma, sums.dbeta, args.out<float>(1),
         args.out<float>(2), shape);
}

template <class T>
void run_instance(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  shape.channels_last ? run_channels_last<T>(shape, stream, args) : run_packed<T>(shape, stream, args);
}

template <class T>
void run_instance_backward(const InstanceNorm& shape, cudaStream_t stream, const OpArgs& args) {
  shape.channels_last ? run_channels_last_backward<T>(shape, stream, args)
                      : run_packed_backward<T>(shape, stream, args);
}

}  // namespace

void add_instance_norm_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_INSTANCE_NORM, "instance_norm", plan_instance,
         each_floating([](auto x) { return run_instance<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_INSTANCE_NORM_BACKWARD, "instance_norm_backward", plan_instance_backward,
         each_floating([](auto x) { return run_instance_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
