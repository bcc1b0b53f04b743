// LAYER_NORM and its gradient. The gradients of gamma and beta are column sums: each thread block sums some of the
// rows, and a second kernel adds the blocks' sums in their order.
#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "normalization/norm_rows.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::LayerNorm;

// The sums down the columns: `parts` groups of rows.
struct LayerBackward {
  LayerNorm shape;
  int parts = 1;
  int rows_of_part = 0;
  uint64_t workspace_bytes = 0;
};

constexpr int kColumnThreads = 128;
constexpr int64_t kLeastRowsOfPart = 8;

LayerNorm plan_layer(const OpDesc& desc) {
  const LayerNorm shape = backends::layer_norm_of(desc);
  rows::require_rows(shape.rows, shape.columns);
  return shape;
}

LayerBackward plan_layer_backward(const OpDesc& desc) {
  LayerBackward plan{.shape = backends::layer_norm_backward_of(desc)};
  const int64_t count = plan.shape.rows, columns = plan.shape.columns;
  rows::require_rows(count, columns);
  const int64_t blocks = divide_up(columns, int64_t{kColumnThreads});
  const int64_t wanted = divide_up(int64_t{multiprocessors()} * 8, blocks);
  const int64_t parts = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, count / kLeastRowsOfPart));
  plan.rows_of_part = static_cast<int>(divide_up(count, parts));
  plan.parts = static_cast<int>(divide_up(count, int64_t{plan.rows_of_part}));
  plan.workspace_bytes = static_cast<uint64_t>(2 * plan.parts * columns) * sizeof(float);
  return plan;
}

// parts[part, 0 or 1, column]: of dgamma and of dbeta.
template <class T>
__global__ void sum_columns(const T* dy, const T* x, rows::Saved saved, float* parts, LayerBackward plan) {
  const int64_t columns = plan.shape.columns;
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const int64_t begin = int64_t{blockIdx.y} * plan.rows_of_part;
  const int64_t end = min(begin + plan.rows_of_part, plan.shape.rows);
  float products = 0.0F, sum = 0.0F;
#pragma unroll 4
  for (int64_t row = begin; row < end; ++row) {
    const int64_t i = row * columns + column;
    const auto gradient = static_cast<float>(dy[i]);
    products += gradient * ((static_cast<float>(x[i]) - saved.mean[row]) * saved.rstd[row]);
    sum += gradient;
  }
  parts[int64_t{blockIdx.y} * 2 * columns + column] = products;
  parts[(int64_t{blockIdx.y} * 2 + 1) * columns + column] = sum;
}

__global__ void add_columns(const float* parts, float* dgamma, float* dbeta, int64_t columns, int count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= 2 * columns) return;
  float sum = 0.0F;
  for (int part = 0; part < count; ++part) sum += parts[int64_t{part} * 2 * columns + i];
  (i < columns ? dgamma : dbeta)[i < columns ? i : i - columns] = sum;
}

template <class T>
void run_layer(const LayerNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* const x = args.in<T>(0);
  auto* const y = args.out<T>(0);
  const rows::Affine by{.gamma = args.in<float>(1), .beta = args.in<float>(2)};
  rows::by_shape<T>(shape.rows, shape.columns, {x, y, by.gamma, by.beta},
                    [&](const rows::Rows& plan, auto width, auto packs) {
                      rows::launch_rows(rows::norm_rows<T, width(), packs()>, shape.rows, plan, stream, x, by, y,
                                        args.out<float>(1), args.out<float>(2), plan, shape.epsilon);
                    });
}

template <class T>
void run_layer_backward(const LayerBackward& backward, cudaStream_t stream, const OpArgs& args) {
  const LayerNorm& shape = backward.shape;
  const auto* const dy = args.in<T>(0);
  const auto* const x = args.in<T>(1);
  auto* const dx = args.out<T>(0);
  auto* const parts = args.workspace<float>();
  const rows::Saved saved{.gamma = args.in<float>(2), .mean = args.in<float>(3), .rstd = args.in<float>(4)};
  rows::by_shape<T>(shape.rows, shape.columns, {dy, x, dx, saved.gamma},
                    [&](const rows::Rows& plan, auto width, auto packs) {
                      rows::launch_rows(rows::norm_rows_backward<T, width(), packs()>, shape.rows, plan, stream, dy, x,
                                        saved, 0, dx, rows::PlaneSums{}, plan);
                    });
  const Launch columns{.grid = dim3(grid_size(shape.columns, kColumnThreads), static_cast<unsigned>(backward.parts)),
                       .block = dim3(kColumnThreads)};
  launch(sum_columns<T>, columns, stream, dy, x, saved, parts, backward);
  launch(add_columns, thread_each(2 * shape.columns), stream, parts, args.out<float>(1), args.out<float>(2),
         shape.columns, backward.parts);
}

}  // namespace

void add_layer_norm_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_LAYER_NORM, "layer_norm", plan_layer,
         each_floating([](auto x) { return run_layer<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_LAYER_NORM_BACKWARD, "layer_norm_backward", plan_layer_backward,
         each_floating([](auto x) { return run_layer_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_tiled
