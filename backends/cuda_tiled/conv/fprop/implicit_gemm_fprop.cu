// conv:2, implicit GEMM, for the forward pass and the data gradient. It multiplies the filters [channels of the result,
// entries] by the matrix [entries, pixels] that im2col would write. An entry is a tap of the filter and a channel that
// is summed over. The matrix is never written: a block reads its numbers directly from the image.
//
// A table holds the offset that each entry adds to a pixel's position. It is made once a call, together with the
// filters in the order in which blocks read them. So an address is the sum of two numbers and its bounds check two
// comparisons, with no division in the loop. While 128 x 128 results are multiplied from shared memory, asynchronous
// copies bring the next two stages of 16 entries. The image is copied by single numbers, and the padding as zeros.
//
// H200, 3x3, batch 128, 64 channels at 32x32 to 512 at 4x4: 30 TFLOP/s with the weight gradient, 4.6 times conv:1
// (geometric means of the three passes). Forward at a stride of 2 and batch 512 it reaches 33 to 36 TFLOP/s, cuDNN 22
// to 38.
//
// The data gradient is the same over dy. With a stride, a pixel of dx only uses the taps of its residue: the pixels are
// split in classes by residue, each with its own entries, so that no inserted zero is multiplied.
#include <algorithm>
#include <cstddef>

#include <cuda_pipeline_primitives.h>

#include "conv/fprop/implicit_gemm_entries.cuh"
#include "conv/fprop/implicit_gemm_filters.cuh"
#include "conv/fprop/implicit_gemm_store.cuh"
#include "conv/implicit_gemm.hpp"
#include "conv/shares.hpp"
#include "conv/tile_choice.hpp"
#include "conv/tile_product.cuh"
#include "cuda_common/launch.hpp"
#include "cuda_common/workspace.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::conv {
namespace {

constexpr int kMostTaps = 4096;

using backends::ConvolutionAxis;
using backends::ConvolutionShape;
using cuda::launch;

Axis axis_of(const ConvolutionAxis& axis, bool turned) {
  return {.sources = static_cast<int>(turned ? axis.outputs : axis.inputs),
          .results = static_cast<int>(turned ? axis.inputs : axis.outputs),
          .taps = static_cast<int>(axis.taps),
          .stride = static_cast<int>(axis.stride),
          .pad = static_cast<int>(axis.pad),
          .dilation = static_cast<int>(axis.dilation),
          .turned = turned};
}

Plan plan_of(const ConvolutionShape& shape, bool turned, int multiprocessors) {
  Plan plan{.batch = static_cast<int>(shape.batch),
            .groups = static_cast<int>(shape.groups),
            .reduced = static_cast<int>(turned ? shape.group_outputs : shape.group_inputs),
            .results = static_cast<int>(turned ? shape.group_inputs : shape.group_outputs),
            .rows = axis_of(shape.rows, turned),
            .columns = axis_of(shape.columns, turned)};
  plan.padded_results = (plan.results + 3) / 4 * 4;
  int most = 0;
  for (int i = 0; i < plan.classes(); ++i) {
    const int rows = plan.rows.taps_of(i / plan.columns.classes(), plan.rows.taps);
    const int columns = plan.columns.taps_of(i % plan.columns.classes(), plan.columns.taps);
    plan.begin[i + 1] = plan.begin[i] + rows * columns * plan.reduced;
    most = std::max(most, rows * columns * plan.reduced);
  }
  plan.alone = plan.classes() > 1 && plan.begin[1] == plan.entries();
  const int64_t pixels = int64_t{plan.batch} * plan.rows.results_of(0) * plan.columns.results_of(0);
  constexpr int kMostShares = 16;
  plan.tile = choose_tile({plan.results, pixels, most, int64_t{plan.groups} * plan.running_classes()}, multiprocessors,
                          16, plan.classes() == 1 ? kMostShares : 1);
  return plan;
}

constexpr int kDepth = 16;  // entries of a stage
constexpr int kStages = 3;
constexpr int kTableStages = kStages + 1;  // the table's part is read to start a stage's copies

template <int tile_rows, int tile_columns>
struct Stages {
  float filters[kStages][kDepth][tile_rows];
  float pixels[kStages][kDepth][tile_columns];
  Entry table[kTableStages][kDepth];
};

template <int tile_rows, int tile_columns>
__global__ __launch_bounds__(TileShape<tile_rows, tile_columns>::kThreads,
                             TileShape<tile_rows, tile_columns>::kResident) void  //
    fprop_product(const float* x, const float* filters, const Entry* table, SharesEnd end, float* y, Plan plan) {
  using Shape = TileShape<tile_rows, tile_columns>;
  constexpr int kThreads = Shape::kThreads;
  constexpr int kLoadLines = kThreads / tile_columns;
  extern __shared__ __align__(16) std::byte shared[];
  auto& stages = *reinterpret_cast<Stages<tile_rows, tile_columns>*>(shared);

  const int shares = plan.tile.shares;
  const int share = static_cast<int>(blockIdx.z) % shares;
  const int group = static_cast<int>(blockIdx.z) / shares;
  // Neighbouring blocks, which run at once, write the interleaved pixels of all classes.
  const int of_class = static_cast<int>(blockIdx.x) % plan.running_classes();
  const int row_class = of_class / plan.columns.classes();
  const int column_class = of_class % plan.columns.classes();
  const int class_rows = plan.rows.results_of(row_class);
  const int class_columns = plan.columns.results_of(column_class);
  const int pixels = plan.batch * class_rows * class_columns;
  const int first_pixel = static_cast<int>(blockIdx.x) / plan.running_classes() * tile_columns;
  const int first_result = static_cast<int>(blockIdx.y) * tile_rows;
  if (first_pixel >= pixels) return;
  const int first_entry = plan.begin[of_class] + share * plan.tile.depth_of_share;
  const int last_entry = min(first_entry + plan.tile.depth_of_share, plan.begin[of_class + 1]);
  const int steps = cuda::divide_up(last_entry - first_entry, kDepth);
  const int thread = static_cast<int>(threadIdx.x);

  // The pixel that this thread loads for, of all entries.
  const int load_column = thread % tile_columns;
  const int load_line = thread / tile_columns;
  const Pixel mine(first_pixel + load_column, class_rows, class_columns);
  const bool pixel_inside = first_pixel + load_column < pixels;
  const int row = pixel_inside ? plan.rows.source_of(mine.row) : kNowhere;
  const int column = plan.columns.source_of(mine.column);
  const int64_t source_plane = int64_t{plan.rows.sources} * plan.columns.sources;
  const int offset = pixel_inside ? row * plan.columns.sources + column : 0;
  const float* source =
      x + (static_cast<int64_t>(mine.image) * plan.groups + group) * plan.reduced * source_plane + offset;
  LineCopies<tile_rows, kDepth, kThreads> lines(
      filters + static_cast<int64_t>(group) * plan.entries() * plan.padded_results, plan.padded_results, first_entry,
      last_entry, first_result);

  const auto store_table = [&](int step) {
    if (thread >= kDepth) return;
    const int entry = first_entry + step * kDepth + thread;
    stages.table[step % kTableStages][thread] = entry < last_entry ? table[entry] : Entry{0, kNowhere, 0, 0};
  };
  const auto copy = [&](int step) {
    if (step < steps) {
      lines.copy(stages.filters[step % kStages]);
#pragma unroll
      for (int i = 0; i < kDepth / kLoadLines; ++i) {
        const int line = load_line + i * kLoadLines;
        const Entry entry = stages.table[step % kTableStages][line];
        const bool inside = static_cast<unsigned>(row + entry.row) < static_cast<unsigned>(plan.rows.sources) &&
                            static_cast<unsigned>(column + entry.column) < static_cast<unsigned>(plan.columns.sources);
        __pipeline_memcpy_async(&stages.pixels[step % kStages][line][load_column], inside ? source + entry.offset : x,
                                4, inside ? 0 : 4);
      }
    }
    __pipeline_commit();
  };

  const TilePlace<Shape, tile_rows> place;
  typename Shape::Sums sums = {};
  for (int step = 0; step < kStages; ++step) store_table(step);
  __syncthreads();
  for (int step = 0; step < kStages - 1; ++step) copy(step);
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    copy(step + kStages - 1);
    store_table(step + kStages);
    multiply_tile<Shape, kDepth, tile_rows, tile_columns>(&stages.filters[step % kStages][0][0],
                                                          &stages.pixels[step % kStages][0][0], place, sums);
  }

  const int64_t result_plane = int64_t{plan.rows.results} * plan.columns.results;
  const int64_t image = static_cast<int64_t>(mine.image) * plan.groups + group;
  const int64_t shares_apart = int64_t{plan.batch} * plan.groups * plan.results * result_plane;
  float* to = y + share * shares_apart + image * plan.results * result_plane +
              (mine.row * plan.rows.classes() + row_class) * plan.columns.results +
              mine.column * plan.columns.classes() + column_class;
  constexpr int kHalf = Shape::kWarpRows / 2;
  if (plan.classes() == 1 && result_plane % 4 == 0) {
    store_fours<Shape>(sums, place, end, y + share * shares_apart, plan, group, first_result, first_pixel, pixels);
    return;
  }
  // Else the sums go through shared memory, half of each warp's rows at a time, so that neighbouring threads write
  // neighbouring pixels: the ones that they loaded for.
  auto& exchange = *reinterpret_cast<float(*)[tile_rows / 2][tile_columns + 4]>(shared);
  static_assert(sizeof(exchange) <= sizeof(stages));
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Shape::kThreadRows / 2; ++i) {
      const int line = place.row(i) / Shape::kWarpRows * kHalf + place.row(i) % Shape::kWarpRows;
#pragma unroll
      for (int j = 0; j < Shape::kThreadColumns; j += 4) {
        const float* from = &sums[half * Shape::kThreadRows / 2 + i][j];
        *reinterpret_cast<float4*>(&exchange[line][place.column(j)]) = make_float4(from[0], from[1], from[2], from[3]);
      }
    }
    __syncthreads();
    if (!pixel_inside) continue;
#pragma unroll 4
    for (int line = load_line; line < tile_rows / 2; line += kLoadLines) {
      const int result = first_result + line / kHalf * Shape::kWarpRows + half * kHalf + line % kHalf;
      if (result >= plan.results) break;
      float sum = exchange[line][load_column];
      sum = finish_at(end.epilogue, sum, group * plan.results + result);
      if (plan.alone) {
        write_cell(to + result * result_plane, sum, plan, mine);
      } else {
        to[result * result_plane] = sum;
      }
    }
  }
}

struct Workspace {
  uint64_t filters;
  uint64_t table;
  uint64_t parts;

  explicit Workspace(const Plan& plan)
      : filters(cuda::workspace_aligned(sizeof(float) * static_cast<uint64_t>(plan.groups) *
                                        static_cast<uint64_t>(plan.entries()) *
                                        static_cast<uint64_t>(plan.padded_results))),
        table(cuda::workspace_aligned(sizeof(Entry) * static_cast<uint64_t>(plan.entries()))),
        parts(plan.tile.shares > 1
                  ? sizeof(float) * static_cast<uint64_t>(plan.size()) * static_cast<uint64_t>(plan.tile.shares)
                  : 0) {}
  uint64_t bytes() const { return filters + table + parts; }
};

template <int tile_rows, int tile_columns>
void launch_product(const dim3& grid, cudaStream_t stream, const float* x, const float* filters, const Entry* table,
                    const SharesEnd& end, float* y, const Plan& plan) {
  constexpr unsigned kBytes = sizeof(Stages<tile_rows, tile_columns>);
  const auto kernel = fprop_product<tile_rows, tile_columns>;
  allow_shared_memory(kernel, kBytes);
  launch(kernel, {grid, dim3(TileShape<tile_rows, tile_columns>::kThreads), kBytes}, stream, x, filters, table, end, y,
         plan);
}

void run(const Plan& plan, const float* x, const float* w, const Epilogue& epilogue, float* y, void* workspace,
         cudaStream_t stream) {
  const Workspace sizes(plan);
  auto* bytes = static_cast<std::byte*>(workspace);
  auto* filters = reinterpret_cast<float*>(bytes);
  auto* table = reinterpret_cast<Entry*>(bytes + sizes.filters);
  auto* parts = reinterpret_cast<float*>(bytes + sizes.filters + sizes.table);
  const int line = plan.reduced * plan.rows.taps * plan.columns.taps;
  const auto groups = static_cast<unsigned>(plan.groups);
  if (plan.rows.turned) {
    launch(reorder_turned,
           {dim3(cuda::grid_size(plan.padded_results, 128), static_cast<unsigned>(plan.reduced), groups), dim3(128)},
           stream, w, filters, table, plan);
  } else {
    launch(reorder_forward,
           {dim3(cuda::grid_size(line, kReorderSide), cuda::grid_size(plan.padded_results, kReorderSide), groups),
            dim3(kReorderSide * 8)},
           stream, w, filters, table, plan);
  }
  const bool cut = plan.tile.shares > 1;
  const SharesEnd end{
      .epilogue = epilogue, .channels = plan.groups * plan.results, .plane = plan.rows.results * plan.columns.results};
  const int64_t pixels = int64_t{plan.batch} * plan.rows.results_of(0) * plan.columns.results_of(0);
  const dim3 grid(cuda::grid_size(pixels, plan.tile.columns) * static_cast<unsigned>(plan.running_classes()),
                  cuda::grid_size(plan.results, plan.tile.rows), groups * static_cast<unsigned>(plan.tile.shares));
  const auto multiply = plan.tile.rows == 128
                            ? plan.tile.columns == 128 ? launch_product<128, 128> : launch_product<128, 64>
                        : plan.tile.columns == 128 ? launch_product<64, 128>
                                                   : launch_product<64, 64>;
  multiply(grid, stream, x, filters, table, cut ? SharesEnd{} : end, cut ? parts : y, plan);
  if (cut) add_shares(parts, y, plan.size(), plan.tile.shares, end, stream);
}

}  // namespace

std::string implicit_gemm_refuses(const ConvolutionShape& shape, bool gradient_of_data) {
  const auto elements = [&shape](int64_t channels, int64_t rows, int64_t columns) {
    return static_cast<double>(shape.batch) * static_cast<double>(shape.groups * channels) * static_cast<double>(rows) *
           static_cast<double>(columns);
  };
  constexpr double kMost = 1U << 30;
  if (elements(shape.group_inputs, shape.rows.inputs, shape.columns.inputs) > kMost ||
      elements(shape.group_outputs, shape.rows.outputs, shape.columns.outputs) > kMost) {
    return "a tensor has more than 2^30 elements";
  }
  const int64_t taps = shape.rows.taps * shape.columns.taps;
  if (taps > kMostTaps || shape.group_inputs * taps > (1 << 24) || shape.group_outputs * taps > (1 << 24)) {
    return "a filter has too many elements";
  }
  constexpr int64_t kMostGridDimension = 65535;
  if (shape.groups > kMostGridDimension / kMostClasses / 16 || shape.group_outputs > kMostGridDimension) {
    return "too many groups or channels";
  }
  if (gradient_of_data && shape.rows.stride * shape.columns.stride > kMostClasses) return "too long strides";
  return "";
}

uint64_t implicit_gemm_fprop_workspace_bytes(const ConvolutionShape& shape, int multiprocessors) {
  return Workspace(plan_of(shape, false, multiprocessors)).bytes();
}

void implicit_gemm_fprop(const ConvolutionShape& shape, const float* x, const float* w, const Epilogue& epilogue,
                         float* y, void* workspace, int multiprocessors, cudaStream_t stream) {
  run(plan_of(shape, false, multiprocessors), x, w, epilogue, y, workspace, stream);
}

uint64_t implicit_gemm_dgrad_workspace_bytes(const ConvolutionShape& shape, int multiprocessors) {
  return Workspace(plan_of(shape, true, multiprocessors)).bytes();
}

void implicit_gemm_dgrad(const ConvolutionShape& shape, const float* dy, const float* w, float* dx, void* workspace,
                         int multiprocessors, cudaStream_t stream) {
  run(plan_of(shape, true, multiprocessors), dy, w, {}, dx, workspace, stream);
}

}  // namespace gpunn::cuda_tiled::conv
