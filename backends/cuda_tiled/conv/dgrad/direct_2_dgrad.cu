// direct:2 of the data gradient, a direct convolution for narrow images with few channels.
//
// In direct:1 each pixel of dx reads all taps, including those outside the image. For 8x8 pixels and 5x5 taps that is
// more than half of them. Here a thread takes a row of dy and scatters it: it adds the products of a pixel with a row
// of the filter to the neighbouring sums. So no product has a zero factor. The sums of a row of dx, including those
// beyond its edges, stay in registers. Row h of dx gets its terms from rows h - 0, h - 1, ... of dy. The thread of row
// v takes rows v, v - 1, ... down to the first, and then continues from the last row of dy, for row v + P of dx. So
// every thread does equal work. The channels of dy are split over threads, whose sums are added in shared memory in
// their order.
//
// The lanes of a warp have the same row of different images, groups of filters and splits, so that they store a row of
// dx together. Padding between planes puts them in different banks. The loads for the next products, also across the
// ends of rows, go to a second set of registers. Neighbouring threads load the filters, ten numbers at a time
// (direct_weights.cuh). A thread adds the splits' sums of several outputs at once.
//
// H200, 5x5, 6 to 16 channels, batch 512: 12x12 without padding 6.8 us, 23.3 TFLOP/s, 2.6 times direct:1; 14x14 with
// padding 18.0 us, 26.8 TFLOP/s. 14x14 without, batch 128: 5.7 us. 12x12, batch 1024: 10.5 us, 29.9 TFLOP/s. 3x3, 16 to
// 16 channels, 16x16, batch 256: 14.3 us. From 64 channels of dy to 16, 16x16, batch 64, the filters take many rounds:
// 24.2 us.
#include <gpunn/plugin.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

#include "conv/direct/direct_bulk.cuh"
#include "conv/direct/direct_convolution.hpp"
#include "conv/direct/direct_stage.cuh"
#include "conv/direct/direct_weights.cuh"
#include "cuda_common/launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::direct {
namespace {

using backends::ConvolutionShape;

constexpr unsigned kMostThreads = 512;
constexpr int kBlocksWanted = 132;
constexpr int kWantedThreads = 480;
constexpr int64_t kMostSharedBytes = 200 * 1024;

struct Dgrad {
  Stage stage;  // of dy
  Bulk bulk;
  int images = 0;
  int filters = 0;            // channels of dx in a group
  int rows = 0, columns = 0;  // of dx
  int taps_r = 0;
  int pad_r = 0, pad_s = 0;
  int images_per_block = 1;
  int k_groups = 1;
  int splits = 1;
  int result_plane = 0;  // floats, of a channel of dx
  WeightStage weights;   // of channels of dy and filters
  int tk = 3, tq = 8;
  unsigned threads = 0;
  unsigned shared_bytes = 0;
  Divider by_images, by_row_items, by_filters, by_columns, by_out_rows, by_k_groups;
};

// Adds up what the splits made, in their order, and stores it: n floats, by `width` neighbours and some rounds at once.
template <int width>
__device__ __forceinline__ void add_splits(const float* results, const Dgrad& z, int pitch, int n, int split_step,
                                           float* out, int64_t image_step) {
  constexpr int kRounds = 4;
  const int threads = static_cast<int>(blockDim.x);
  const int out_plane = z.rows * z.columns;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x) * width; first < n; first += kRounds * threads * width) {
    const float* from[kRounds];
    float* to[kRounds];
    float sum[kRounds][width];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      // Beyond the end the last ones again.
      const auto [line, column] = z.by_columns(min(first + i * threads * width, n - width));
      const auto [plane_index, row] = z.by_out_rows(line);
      const auto [image, filter] = z.by_filters(plane_index);
      from[i] = results + (image * z.k_groups * z.tk + filter) * z.result_plane + row * pitch + column + z.pad_s;
      to[i] = out + image * image_step + filter * out_plane + row * z.columns + column;
#pragma unroll
      for (int j = 0; j < width; ++j) sum[i][j] = 0.0F;
    }
#pragma unroll 1
    for (int split = 0; split < z.splits; ++split) {
#pragma unroll
      for (int i = 0; i < kRounds; ++i) {
        float more[width];
        if constexpr (width == 4) {
          load_fours(more, from[i]);
        } else {
          more[0] = *from[i];
        }
        from[i] += split_step;
#pragma unroll
        for (int j = 0; j < width; ++j) sum[i][j] += more[j];
      }
    }
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      if (first + i * threads * width >= n) break;
      if constexpr (width == 4) {
        *reinterpret_cast<float4*>(to[i]) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
      } else {
        *to[i] = sum[i][0];
      }
    }
  }
}

template <int S, int TK, int TQ>
__global__ void __launch_bounds__(kMostThreads)
    direct_dgrad(const float* dy, const float* w, float* dx, Dgrad z, int in_width, bool out_fours) {
  constexpr int kX = four_fold(TQ);
  constexpr int kW = four_fold(TK * S);
  constexpr int kOut = four_fold(TQ + S - 1);
  extern __shared__ float4 shared_fours[];
  float* const shared = reinterpret_cast<float*>(shared_fours);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_image = static_cast<int>(blockIdx.x) * z.images_per_block;
  const int group = static_cast<int>(blockIdx.y);
  const int images = min(z.images_per_block, z.images - first_image);
  const int channels = z.stage.channels;

  const bool bulk = in_width == kBulk;
  // [channel of dy][r][k group][s][k]
  float* const weights = shared + z.stage.floats(z.images_per_block);
  float* const results = weights + channels * z.weights.channel_step;
  const WeightPlaces<S, TK> places(z.weights, w + static_cast<int64_t>(group) * z.weights.count, weights);
  // The lanes of a warp have the same row, so that they come to its end together.
  const auto [v, in_row] = z.by_row_items(thread);
  const auto [item, image] = z.by_images(in_row);
  const auto [split, k_group] = z.by_k_groups(item);
  const int out_plane = z.rows * z.columns;
  // [split][image][filter][row][a row's columns, pad_s of them before the first]
  constexpr int kPitch = odd_pitch(kOut);
  const int result_plane = z.result_plane;
  const int all = z.images_per_block * z.k_groups * TK * result_plane;

  __shared__ uint64_t barrier;
  if (bulk) begin_barrier(barrier);
  let_next_kernel_start();
  wait_for_kernel_before();
  if (bulk) {
    if (thread == 0) barrier_expect(&barrier, bulk_bytes(z.stage, images));
    stage_in_bulk(shared, dy, z.stage, z.bulk, first_image, images, group, barrier);
  } else {
    stage_images(shared, dy, z.stage, first_image, images, group, 0, in_width);
  }
  places.bring(z.weights);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (bulk) barrier_wait(&barrier, 0);
  __syncthreads();
  if (v < z.stage.in_rows) {
    float sums[TK][kOut];
    const auto clear = [&] {
#pragma unroll
      for (int k = 0; k < TK; ++k) {
#pragma unroll
        for (int q = 0; q < kOut; ++q) sums[k][q] = 0.0F;
      }
    };
    float* const to = results + split * all + (image * z.k_groups + k_group) * TK * result_plane;
    const auto flush = [&](int row) {
      if (row < 0 || row >= z.rows) return;
#pragma unroll
      for (int k = 0; k < TK; ++k) {
#pragma unroll
        for (int q = 0; q < kOut; q += 4) {
          *reinterpret_cast<float4*>(to + k * result_plane + row * kPitch + q) =
              make_float4(sums[k][q], sums[k][q + 1], sums[k][q + 2], sums[k][q + 3]);
        }
      }
    };
    const auto multiply = [&](const float(&pixel)[kX], const float(&factor)[kW]) {
#pragma unroll
      for (int s = 0; s < S; ++s) {
#pragma unroll
        for (int k = 0; k < TK; ++k) {
#pragma unroll
          for (int q = 0; q < TQ; ++q) sums[k][q + s] = fmaf(pixel[q], factor[s * TK + k], sums[k][q + s]);
        }
      }
    };
    const float* const of_image = shared + image * z.stage.image() + split * z.stage.plane;
    const float* const of_split = weights + split * z.weights.channel_step + k_group * kW;
    const int pixel_step = z.splits * z.stage.plane;
    const int weight_step = z.splits * z.weights.channel_step;
    const auto row_of = [&](int r) { return of_image + (v >= r ? v - r : v - r + z.stage.in_rows) * z.stage.pitch; };
    // Where there is room for two sets of registers, one is loaded while the other is multiplied, also across the ends
    // of rows.
    constexpr bool kAhead = TK * kOut + 2 * (kX + kW) <= 100;
    float pixel[kX], factor[kW];
    if constexpr (kAhead) {
      load_fours(pixel, row_of(0));
      load_fours(factor, of_split);
    }
    int r = 0;
#pragma unroll 1
    for (int end = min(v + 1, z.taps_r); r < z.taps_r; end = z.taps_r) {
      const int row = r <= v ? v : v + z.stage.in_rows;
      clear();
#pragma unroll 1
      for (; r < end; ++r) {
        const float* at = row_of(r);
        const float* weight = of_split + r * z.weights.row_step;
        int c = split;
        if constexpr (kAhead) {
          float next_pixel[kX], next_factor[kW];
          const int next_r = min(r + 1, z.taps_r - 1);
          const float* const next_at = row_of(next_r);
          const float* const next_weight = of_split + next_r * z.weights.row_step;
#pragma unroll 1
          for (; c + z.splits < channels; c += 2 * z.splits) {
            load_fours(next_pixel, at + pixel_step);
            load_fours(next_factor, weight + weight_step);
            multiply(pixel, factor);
            const bool more = c + 2 * z.splits < channels;
            at = more ? at + 2 * pixel_step : next_at;
            weight = more ? weight + 2 * weight_step : next_weight;
            load_fours(pixel, at);
            load_fours(factor, weight);
            multiply(next_pixel, next_factor);
          }
          if (c < channels) {
            load_fours(next_pixel, next_at);
            load_fours(next_factor, next_weight);
            multiply(pixel, factor);
#pragma unroll
            for (int i = 0; i < kX; ++i) pixel[i] = next_pixel[i];
#pragma unroll
            for (int i = 0; i < kW; ++i) factor[i] = next_factor[i];
          }
        } else {
#pragma unroll 2
          for (; c < channels; c += z.splits) {
            load_fours(pixel, at);
            load_fours(factor, weight);
            at += pixel_step;
            weight += weight_step;
            multiply(pixel, factor);
          }
        }
      }
      flush(row - z.pad_r);
    }
  }
  __syncthreads();
  const int64_t image_step = static_cast<int64_t>(z.stage.groups) * z.filters * out_plane;
  float* const out = dx + first_image * image_step + static_cast<int64_t>(group) * z.filters * out_plane;
  const int n = images * z.filters * out_plane;
  if (out_fours) {
    add_splits<4>(results, z, kPitch, n, all, out, image_step);
  } else {
    add_splits<1>(results, z, kPitch, n, all, out, image_step);
  }
}

using Kernel = void (*)(const float*, const float*, float*, Dgrad, int, bool);

struct Instance {
  int s, tk, tq;
  Kernel kernel;
};

template <int S, int TK, int TQ>
constexpr Instance instance() {
  return {S, TK, TQ, direct_dgrad<S, TK, TQ>};
}

constexpr std::array kInstances = {
    instance<5, 2, 8>(),  instance<5, 3, 8>(), instance<5, 2, 10>(), instance<5, 2, 12>(), instance<5, 3, 12>(),
    instance<5, 3, 14>(), instance<3, 2, 8>(), instance<3, 3, 8>(),  instance<3, 2, 16>(), instance<3, 3, 16>(),
};

bool fit(Dgrad& z, int s, int splits) {
  z.k_groups = cuda::divide_up(z.filters, z.tk);
  z.stage.rows = z.stage.in_rows;
  z.stage.quads = cuda::divide_up(z.tq, 4);
  z.stage.pitch = four_fold(z.tq);
  // Neighbouring lanes have different images, then groups of filters, then channels: all in different banks.
  z.stage.plane = z.stage.rows * z.stage.pitch;
  const bool many = cuda::divide_up(z.images * z.stage.groups, kBlocksWanted) >= 4;
  if (z.stage.pitch != z.stage.in_columns || !many) z.stage.plane = odd_fours(z.stage.plane);
  const int pixels_of_image = z.stage.channels * z.stage.plane;
  while ((pixels_of_image + z.stage.gap) / 4 % 8 != 1) z.stage.gap += 4;
  z.weights.row_step = z.k_groups * four_fold(z.tk * s);
  z.weights.channel_step = odd_fours(z.taps_r * z.weights.row_step);
  z.result_plane = odd_fours(z.rows * odd_pitch(z.tq + s - 1));
  z.images_per_block = std::clamp(cuda::divide_up(z.images * z.stage.groups, kBlocksWanted), 1, 8);
  while (z.images_per_block > 1 && z.images_per_block * z.stage.in_rows * z.k_groups > 256) --z.images_per_block;
  for (;; --z.images_per_block) {
    const int items = z.images_per_block * z.stage.in_rows * z.k_groups;
    if (items > static_cast<int>(kMostThreads)) return false;
    // A power of two, with two channels or more for each.
    z.splits = 1;
    while (2 * z.splits * items <= kWantedThreads && 4 * z.splits <= z.stage.channels) z.splits *= 2;
    if (splits != 0) {
      z.splits = std::min({splits, z.stage.channels, static_cast<int>(kMostThreads) / items});
    }
    const int64_t floats = z.stage.floats(z.images_per_block) + int64_t{z.stage.channels} * z.weights.channel_step +
                           int64_t{z.splits} * z.images_per_block * z.k_groups * z.tk * z.result_plane;
    const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
    if (bytes > kMostSharedBytes) {
      if (z.images_per_block == 1) return false;
      continue;
    }
    z.shared_bytes = static_cast<unsigned>(bytes);
    z.threads = static_cast<unsigned>(cuda::divide_up(items * z.splits, 32) * 32);
    return true;
  }
}

// Products, those of a tile's padding included; of equals the larger tile.
double cost(const Dgrad& z, int s) { return cuda::divide_up(z.filters, z.tk) * z.tk * (z.tq * s + 1.0) - 0.01 * z.tk; }

}  // namespace

struct DgradPlan::Data {
  Dgrad z;
  Kernel kernel = nullptr;
};

DgradPlan dgrad_of(const ConvolutionShape& shape, int tk, int splits) {
  DgradPlan plan;
  const int taps = static_cast<int>(shape.columns.taps);
  if (shape.rows.outputs < shape.rows.taps) return plan;
  double least = 0.0;
  for (const Instance& instance : kInstances) {
    if (instance.s != taps || (tk != 0 && instance.tk != tk)) continue;
    Dgrad z;
    z.images = static_cast<int>(shape.batch);
    z.filters = static_cast<int>(shape.group_inputs);
    z.rows = static_cast<int>(shape.rows.inputs);
    z.columns = static_cast<int>(shape.columns.inputs);
    z.taps_r = static_cast<int>(shape.rows.taps);
    z.pad_r = static_cast<int>(shape.rows.pad);
    z.pad_s = static_cast<int>(shape.columns.pad);
    z.stage.channels = static_cast<int>(shape.group_outputs);
    z.stage.groups = static_cast<int>(shape.groups);
    z.stage.in_rows = static_cast<int>(shape.rows.outputs);
    z.stage.in_columns = static_cast<int>(shape.columns.outputs);
    z.tk = instance.tk, z.tq = instance.tq;
    if (z.stage.in_columns > instance.tq) continue;
    const double costs = cost(z, taps);
    if (plan.data && costs >= least) continue;
    if (!fit(z, taps, splits)) continue;
    z.stage.finish();
    z.bulk = bulk_of(z.stage);
    z.by_images = Divider(z.images_per_block);
    z.by_row_items = Divider(z.images_per_block * z.k_groups * z.splits);
    z.weights.finish(z.stage.channels, z.filters, z.taps_r * taps);
    z.by_filters = Divider(z.filters);
    z.by_columns = Divider(z.columns);
    z.by_out_rows = Divider(z.rows);
    z.by_k_groups = Divider(z.k_groups);
    least = costs;
    plan.data = std::make_shared<DgradPlan::Data>(DgradPlan::Data{z, instance.kernel});
  }
  return plan;
}

void run_dgrad(const DgradPlan& plan, const float* dy, const float* w, float* dx, int early_blocks,
               cudaStream_t stream) {
  const Dgrad& z = plan.data->z;
  const bool out_fours = reinterpret_cast<uintptr_t>(dx) % 16 == 0 && z.columns % 4 == 0 && z.pad_s % 4 == 0;
  launch(plan.data->kernel,
         {dim3(cuda::grid_size(z.images, z.images_per_block), static_cast<unsigned>(z.stage.groups)), dim3(z.threads),
          z.shared_bytes},
         early_blocks, stream, dy, w, dx, z, piece_of(dy, z.stage, z.bulk, early_blocks > 0), out_fours);
}

uint64_t shared_bytes(const DgradPlan& plan) { return plan.data ? plan.data->z.shared_bytes : 0; }

}  // namespace gpunn::cuda_tiled::direct
