// direct:1, the direct convolution for few channels: CONV2D with bias and ReLU, and the data gradient, which is the
// same with the filter rotated by 180 degrees and its channels exchanged.
//
// cuda_naive loads two numbers for each product. Here a thread block copies some images with their border of zeros, and
// the filters, into shared memory. A thread keeps a tile of 4 filters x 4 or 8 neighbouring pixels (or 8 x 2) in
// registers. From a row of pixels and a row of the filters it makes 80 products with seven loads of 16 bytes, or 160
// with eight loads. The lanes of a warp have neighbouring tiles of one group of filters, so that they load the filters
// from the same address. The rows of the images are padded, so that the lanes load pixels from different banks. If
// there are few images, the channels are split over threads, whose sums are added in shared memory in their order.
//
// H200, cycles of a block of 4 images (5x5, 6 to 16 channels, 12x12), 11,000 in all: 1900 issue the copies of filters
// and pixels, 700 wait for them, 6300 make the products, which could take 4800, 800 add the splits and 1100 store.
// Images without a border are copied as a whole (cp.async.bulk), and threads copy neighbours of one filter. Loops that
// run once are not unrolled, since instructions that run once are fetched slowly. Blocks start before the previous
// kernel has ended (direct_stage.cuh). Tiles of 4 filters x 2 rows x 4 pixels load half as much as those of one row.
//
// The register file limits the speed. On an H200 a multiply-add that reads three new operands takes 1.56 cycles of its
// scheduler; with two of them reused it takes 1.0. In the compiler's order the products take 1.25 to 1.3 cycles.
//
// H200, 5x5, 6 to 16 channels, batch 512: 12x12 without padding 6.2 us, 25.2 TFLOP/s, 3.0 times cuDNN's best (18.8 us).
// 14x14, batch 128: 4.6 us, cuDNN 12.0. 1 to 6 channels, 28x28, batch 128: 3.0 us, cuDNN 17.8. 3x3, 3 to 16 channels,
// 32x32, batch 128: 7.3 us, cuDNN 18.4. 3x3, 16 to 16 channels, 28x28, batch 64: 10.2 us. 3x3, 3 to 64 channels, 32x32,
// batch 512: 81 us.
//
// If MAX_POOL2D follows (subgraphs/pooling.hpp), a block that has whole planes writes them to shared memory too and
// pools them there. H200: this adds 1.1 us to the 8.4 us of 5x5, 1 to 6 channels, 28x28, batch 512; the separate op
// takes 4.0 us. For 3x3, 3 to 16 channels, 32x32, batch 128, whose filters are split over blocks, both together take
// 8.8 us instead of 11.2.
#include <gpunn/plugin.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "conv/direct/direct_convolution.hpp"
#include "conv/direct/direct_stage.cuh"
#include "conv/direct/direct_store.cuh"
#include "cuda_common/launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::direct {

namespace {

using backends::ConvolutionShape;

constexpr unsigned kMostThreads = 512;
constexpr unsigned kThreadsOfTall = 256;  // of tiles of two rows, which take more registers
constexpr int kBlocksWanted = 128;
constexpr int64_t kMostSharedBytes = 96 * 1024;

struct Fprop {
  Stage stage;
  int images = 0;
  int filters = 0;  // of a group
  int rows = 0, columns = 0;
  int taps_r = 0;
  bool flipped = false;  // the data gradient: the filter is turned round, and its channels are the filters
  // A block's share.
  int images_per_block = 1;
  int band = 1;      // rows
  int bands = 1;     // of an image
  int tiles = 1;     // of a row
  int k_groups = 1;  // of TK filters
  int splits = 1;    // of the channels
  int channels_per_split = 1;
  int positions = 1;  // images, rows and tiles
  int parts = 1;      // of the filters, over blocks
  int tk = 4, tp = 1, tq = 4;
  unsigned threads = 0;
  unsigned shared_bytes = 0;
  int lanes = 1, filters_at_once = 1;  // how threads bring the filters
  Divider by_positions, by_band_tiles, by_tiles, by_taps, by_lanes, by_k_groups;
};

// What a thread makes: filters x rows x columns, with filters of r x s taps; r of 0: of any number of rows.
struct Tile {
  int r, s;
  int filters, rows, columns;
};

// clang-format off
constexpr std::array<Tile, 14> kTiles = {{
    {5, 5, 4, 1, 8}, {5, 5, 4, 2, 4}, {5, 5, 4, 1, 4}, {5, 5, 3, 1, 8}, {5, 5, 3, 1, 4}, {3, 3, 2, 4, 4},
    {3, 3, 4, 2, 8}, {3, 3, 4, 1, 8}, {3, 3, 4, 1, 4}, {3, 3, 3, 1, 4}, {0, 7, 4, 1, 4}, {0, 5, 4, 1, 4},
    {0, 3, 4, 1, 4}, {0, 1, 4, 1, 4}}};
// clang-format on

template <int kTile, bool kPool>  // of kTiles
__global__ void __launch_bounds__(kTiles[kTile].rows > 1 ? kThreadsOfTall : kMostThreads)
    direct_fprop(const float* x, const float* w, Epilogue epilogue, float* y, Fprop z, Widths widths, Pooling pooling) {
  constexpr int R = kTiles[kTile].r, S = kTiles[kTile].s;
  constexpr int TK = kTiles[kTile].filters, TP = kTiles[kTile].rows, TQ = kTiles[kTile].columns;
  constexpr int kX = four_fold(TQ + S - 1);
  constexpr int kW = four_fold(TK * S);
  extern __shared__ float4 shared_fours[];
  float* const shared = reinterpret_cast<float*>(shared_fours);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_image = static_cast<int>(blockIdx.x) / z.bands * z.images_per_block;
  const int first_row = static_cast<int>(blockIdx.x) % z.bands * z.band;
  const int first_filter = static_cast<int>(blockIdx.y) * z.k_groups * TK;
  const int group = static_cast<int>(blockIdx.z);
  const int images = min(z.images_per_block, z.images - first_image);
  const int filters = min(z.k_groups * TK, z.filters - first_filter);
  const int channels = z.stage.channels;
  const int taps_r = R != 0 ? R : z.taps_r;

  __shared__ uint64_t barrier;
  if (widths.in == kBulk) begin_barrier(barrier);
  let_next_kernel_start();
  wait_for_kernel_before();
  if (widths.in == kBulk && thread == 0) {
    barrier_expect(&barrier, images * channels * z.stage.plane * 4);
    stage_whole_images(shared, x, z.stage, first_image, images, group, barrier);
  }
  // [channel][r][k group][s][k]; some neighbouring threads for each filter.
  float* const weights = shared + z.stage.floats(z.images_per_block);
  const int taps = taps_r * S;
  const float* const of_group = w + static_cast<int64_t>(group) * z.filters * channels * taps;
  const auto [filter_of_thread, lane] = z.by_lanes(thread);
  for (int k = filter_of_thread; k < filters && filter_of_thread < z.filters_at_once; k += z.filters_at_once) {
    float* const to = weights + k / TK * kW + k % TK;
    const float* const from = of_group + static_cast<int64_t>(first_filter + k) * (z.flipped ? 1 : channels) * taps;
#pragma unroll 1
    for (int i = lane; i < channels * taps; i += z.lanes) {
      int row = i / S;
      int s = i % S;
      int at = i;
      if (z.flipped) {  // [channel][filter][r][s]
        const int channel = z.by_taps(i).quotient;
        row = (2 * channel + 1) * taps_r - 1 - row;
        s = S - 1 - s;
        at += channel * (z.filters - 1) * taps;
      }
      __pipeline_memcpy_async(to + row * z.k_groups * kW + s * TK, from + at, 4);
    }
  }
  if (widths.in != kBulk) stage_images(shared, x, z.stage, first_image, images, group, first_row, widths.in);
  __pipeline_commit();

  const auto [item, position] = z.by_positions(thread);
  const auto [split, k_group] = z.by_k_groups(item);
  const auto [image, in_band] = z.by_band_tiles(position);
  const auto [row, tile] = z.by_tiles(in_band);
  const bool works = split < z.splits;
  const int first_of_group = first_filter + k_group * TK;
  float bias[TK];
#pragma unroll
  for (int k = 0; k < TK; ++k) {
    bias[k] = epilogue.bias != nullptr && first_of_group + k < z.filters
                  ? epilogue.bias[group * z.filters + first_of_group + k]
                  : 0.0F;
  }
  float sums[TP][TK][TQ];
#pragma unroll
  for (int p = 0; p < TP; ++p) {
#pragma unroll
    for (int k = 0; k < TK; ++k) {
#pragma unroll
      for (int q = 0; q < TQ; ++q) sums[p][k][q] = 0.0F;
    }
  }
  __pipeline_wait_prior(0);
  if (widths.in == kBulk) barrier_wait(&barrier, 0);
  __syncthreads();
  if (works) {
    const int first = split * z.channels_per_split;
    const int last = min(first + z.channels_per_split, channels);
    const float* at = shared + image * z.stage.image() + first * z.stage.plane + row * TP * z.stage.pitch + tile * TQ;
    const float* weight = weights + (first * taps_r * z.k_groups + k_group) * kW;
    const auto multiply = [&](const float(&pixel)[kX], const float(&factor)[kW], int p) {
#pragma unroll
      for (int s = 0; s < S; ++s) {
#pragma unroll
        for (int k = 0; k < TK; ++k) {
#pragma unroll
          for (int q = 0; q < TQ; ++q) sums[p][k][q] = fmaf(pixel[q + s], factor[s * TK + k], sums[p][k][q]);
        }
      }
    };
    for (int c = first; c < last; ++c) {
      if constexpr (R != 0) {
        // A row of x meets as many rows of the filter as the tile has rows.
        float factor[R][kW];
#pragma unroll
        for (int i = 0; i < R + TP - 1; ++i) {
          float pixel[kX];
          load_fours(pixel, at + i * z.stage.pitch);
          if (i < R) load_fours(factor[i], weight + i * z.k_groups * kW);
#pragma unroll
          for (int p = 0; p < TP; ++p) {
            if (i >= p && i - p < R) multiply(pixel, factor[i - p], p);
          }
        }
      } else {
#pragma unroll 1
        for (int r = 0; r < taps_r; ++r) {
          float pixel[kX], factor[kW];
          load_fours(pixel, at + r * z.stage.pitch);
          load_fours(factor, weight + r * z.k_groups * kW);
          multiply(pixel, factor, 0);
        }
      }
      at += z.stage.plane;
      weight += taps_r * z.k_groups * kW;
    }
  }

  if (z.splits > 1) {
    const int slots = z.positions * z.k_groups;
    const int slot = thread - split * slots;
    __syncthreads();  // the images are done with
    if (works && split > 0) {
      float* const to = shared + (split - 1) * TP * TK * TQ * slots + slot;
#pragma unroll
      for (int j = 0; j < TP * TK * TQ; ++j) to[j * slots] = sums[j / (TK * TQ)][j / TQ % TK][j % TQ];
    }
    __syncthreads();
    if (!kPool && split > 0) return;
    for (int i = 0; i < (split > 0 ? 0 : z.splits - 1); ++i) {
      const float* const from = shared + i * TP * TK * TQ * slots + slot;
#pragma unroll
      for (int j = 0; j < TP * TK * TQ; ++j) sums[j / (TK * TQ)][j / TQ % TK][j % TQ] += from[j * slots];
    }
  }
  const bool makes = works && split == 0 && image < images;
  if (!kPool && !makes) return;
  float* planes = nullptr;
  if constexpr (kPool) {
    __syncthreads();  // the images and sums are done with
    planes = shared + ((image * filters + k_group * TK) * z.rows + row * TP) * z.columns + tile * TQ;
  }
  const int64_t out_plane = static_cast<int64_t>(z.rows) * z.columns;
  float* to =
      y +
      (static_cast<int64_t>(first_image + image) * z.stage.groups * z.filters + group * z.filters + first_of_group) *
          out_plane +
      static_cast<int64_t>(first_row + row * TP) * z.columns + tile * TQ;
#pragma unroll
  for (int k = 0; k < TK; ++k) {
    if (!makes || first_of_group + k >= z.filters) break;
#pragma unroll
    for (int p = 0; p < TP; ++p) {
      if (row * TP + p >= z.band || first_row + row * TP + p >= z.rows) break;
#pragma unroll
      for (int q = 0; q < TQ; ++q) {
        sums[p][k][q] += bias[k];
        if (epilogue.relu && sums[p][k][q] < 0.0F) sums[p][k][q] = 0.0F;
      }
      if (!kPool || y != nullptr) {
        store_row<TQ>(to + p * z.columns, sums[p][k], z.columns - tile * TQ, widths.out_fours, widths.out_twos);
      }
      if constexpr (kPool) {
        store_row<TQ>(planes + (k * z.rows + p) * z.columns, sums[p][k], z.columns - tile * TQ, z.columns % 4 == 0,
                      z.columns % 2 == 0);
      }
    }
    to += out_plane;
  }
  if constexpr (kPool) {
    __syncthreads();
    // One after another in memory as here, where a block has all filters; else those of an image.
    const int plane = pooling.rows * pooling.columns;
    const int64_t all_filters = static_cast<int64_t>(z.stage.groups) * z.filters;
    const int at_once = filters == all_filters ? images : 1;
    for (int i = 0; i < images; i += at_once) {
      pool_planes(shared + i * filters * z.rows * z.columns, pooling, z.rows, z.columns, at_once * filters,
                  pooling.pooled + ((first_image + i) * all_filters + group * z.filters + first_filter) * plane);
    }
  }
}

using Kernel = void (*)(const float*, const float*, Epilogue, float*, Fprop, Widths, Pooling);

struct Instance {
  Tile tile;
  Kernel kernel;
  Kernel pooling;
};

template <int... i>
constexpr std::array<Instance, sizeof...(i)> instances_of(std::integer_sequence<int, i...>) {
  return {{{kTiles[i], direct_fprop<i, false>, direct_fprop<i, true>}...}};
}

constexpr std::array kInstances = instances_of(std::make_integer_sequence<int, kTiles.size()>());

Stage stage_of(const ConvolutionShape& shape, bool backward_data) {
  const auto narrow = [](int64_t value) { return static_cast<int>(value); };
  Stage z;
  z.groups = narrow(shape.groups);
  if (backward_data) {
    z.channels = narrow(shape.group_outputs);
    z.in_rows = narrow(shape.rows.outputs);
    z.in_columns = narrow(shape.columns.outputs);
    z.pad_r = narrow(shape.rows.taps - 1 - shape.rows.pad);
    z.pad_s = narrow(shape.columns.taps - 1 - shape.columns.pad);
  } else {
    z.channels = narrow(shape.group_inputs);
    z.in_rows = narrow(shape.rows.inputs);
    z.in_columns = narrow(shape.columns.inputs);
    z.pad_r = narrow(shape.rows.pad);
    z.pad_s = narrow(shape.columns.pad);
  }
  return z;
}

// How many times a warp's loads of a row's pixels go to shared memory, at that pitch: eight lanes at once, if they meet
// eight different fours of banks or the same address.
int passes(const Fprop& z, int pitch) {
  int total = 0;
  for (int first = 0; first < std::min(32, z.positions); first += 8) {
    std::array<int, 8> of_bank{};
    std::array<int, 8> addresses{};
    for (int lane = 0; lane < 8; ++lane) {
      const int position = std::min(first + lane, z.positions - 1);
      const int of_image = cuda::divide_up(z.band, z.tp) * z.tiles;
      const int address = position / of_image * z.stage.channels * z.stage.rows * pitch +
                          position % of_image / z.tiles * z.tp * pitch + position % z.tiles * z.tq;
      const bool seen = std::find(addresses.begin(), addresses.begin() + lane, address) != addresses.begin() + lane;
      addresses[static_cast<std::size_t>(lane)] = address;
      if (!seen) ++of_bank[static_cast<std::size_t>(address / 4 % 8)];
    }
    total += *std::max_element(of_bank.begin(), of_bank.end());
  }
  return total;
}

// Fits the images of a block, `wanted` of them or fewer, where its rows are chosen.
bool fit_band(Fprop& z, int s, int splits, int blocks, int wanted) {
  const int columns = (z.tiles - 1) * z.tq + four_fold(z.tq + s - 1);
  const int floats_of_weight = four_fold(z.tk * s);
  const int row_tiles = cuda::divide_up(z.band, z.tp);
  const int of_image = row_tiles * z.tiles;
  const int most_threads = static_cast<int>(z.tp > 1 ? kThreadsOfTall : kMostThreads);
  z.images_per_block = wanted;
  z.stage.rows = row_tiles * z.tp + z.taps_r - 1;
  z.positions = z.images_per_block * of_image;
  z.stage.pitch = four_fold(columns);
  for (int pitch = z.stage.pitch; pitch < four_fold(columns) + 32; pitch += 4) {
    if (passes(z, pitch) < passes(z, z.stage.pitch)) z.stage.pitch = pitch;
  }
  z.stage.plane = z.stage.rows * z.stage.pitch;
  // About 512 threads to a multiprocessor.
  const int blocks_at_once =
      std::clamp(cuda::divide_up(cuda::divide_up(blocks, z.images_per_block), kBlocksWanted + 4), 1, 4);
  z.splits = std::clamp(most_threads / blocks_at_once / (z.positions * z.k_groups), 1, z.stage.channels);
  if (splits != 0) {
    z.splits = std::min({splits, z.stage.channels, most_threads / (z.positions * z.k_groups)});
  }
  z.channels_per_split = cuda::divide_up(z.stage.channels, z.splits);
  z.splits = cuda::divide_up(z.stage.channels, z.channels_per_split);
  const int64_t inputs =
      z.stage.floats(z.images_per_block) + int64_t{z.stage.channels} * z.taps_r * z.k_groups * floats_of_weight;
  const int64_t results = int64_t{z.splits - 1} * z.positions * z.k_groups * z.tk * z.tp * z.tq;
  const int64_t bytes = std::max(inputs, results) * static_cast<int64_t>(sizeof(float));
  if (bytes > kMostSharedBytes) {
    if (z.images_per_block > 1) return fit_band(z, s, splits, blocks, z.images_per_block / 2);
    return false;
  }
  z.shared_bytes = static_cast<unsigned>(bytes);
  z.threads = static_cast<unsigned>(cuda::divide_up(z.positions * z.k_groups * z.splits, 32) * 32);
  return true;
}

// Fits the block's share to a instance; false where shared memory does not hold it.
bool fit(Fprop& z, int s, int splits) {
  z.tiles = cuda::divide_up(z.columns, z.tq);
  const int all_groups = cuda::divide_up(z.filters, z.tk);
  const int columns = (z.tiles - 1) * z.tq + four_fold(z.tq + s - 1);
  z.stage.quads = cuda::divide_up(columns, 4);
  for (z.band = z.rows; z.band >= 1; z.band = z.band == 1 ? 0 : cuda::divide_up(z.band, 2)) {
    z.bands = cuda::divide_up(z.rows, z.band);
    const int row_tiles = cuda::divide_up(z.band, z.tp);
    const int of_image = row_tiles * z.tiles;
    const int most_threads = static_cast<int>(z.tp > 1 ? kThreadsOfTall : kMostThreads);
    z.parts = 1;
    while (cuda::divide_up(all_groups, z.parts) * of_image > most_threads && z.parts < all_groups) ++z.parts;
    z.k_groups = cuda::divide_up(all_groups, z.parts);
    if (z.k_groups * of_image > most_threads) continue;
    const int blocks = z.images * z.bands * z.parts * z.stage.groups;
    z.images_per_block = std::clamp(cuda::divide_up(blocks, kBlocksWanted + 4), 1, 8);
    // By halves: the blocks must come out even over the multiprocessors.
    while (z.images_per_block > 1 && z.images_per_block * of_image * z.k_groups > 256) z.images_per_block /= 2;
    if (fit_band(z, s, splits, blocks, z.images_per_block)) return true;
  }
  return false;
}

// Products, those that a tile does beyond the image's edge included; large tiles do them faster, where there are enough
// of them to hide each other's latency. Which is enough, and how much faster: as measured on an H200.
double cost(const Fprop& z) {
  const double tiles = static_cast<double>(cuda::divide_up(z.columns, z.tq)) * cuda::divide_up(z.rows, z.tp) *
                       cuda::divide_up(z.filters, z.tk);
  const double products = tiles * z.tq * z.tp * z.tk;
  const double at_once = tiles * z.images * z.stage.groups / kBlocksWanted;
  const int size = z.tp * z.tq;
  if (z.tp == 4 && z.flipped) return 4 * products;
  if (size <= 4) return products;
  if (5 * cuda::divide_up(z.columns, z.tq) * z.tq > 7 * z.columns)
    return 2 * products;  // too much of it lies beyond the edge
  if (z.tp == 2 && z.tq == 4 && at_once >= 100 && at_once < 256) return products / 1.2;
  if (z.tp == 4 && at_once >= 512) return products / 1.6;
  if (size <= 8) return products / (at_once >= 256 ? 1.4 : 0.9);
  return products / (at_once >= 2048 ? 1.6 : 0.7);
}

}  // namespace

struct FpropPlan::Data {
  Fprop z;
  Kernel kernel = nullptr;
  Kernel pooling_kernel = nullptr;
  Pooling pooling{};
};

FpropPlan fprop_of(const ConvolutionShape& shape, bool backward_data, int tk, int tq, int splits, int tp) {
  FpropPlan plan;
  const int taps = static_cast<int>(shape.columns.taps);
  double least = 0.0;
  for (const Instance& instance : kInstances) {
    if (instance.tile.s != taps || (instance.tile.r != 0 && instance.tile.r != shape.rows.taps)) continue;
    if (tp != 0 && instance.tile.rows != tp) continue;
    if ((tk != 0 && instance.tile.filters != tk) || (tq != 0 && instance.tile.columns != tq)) continue;
    Fprop z;
    z.stage = stage_of(shape, backward_data);
    z.flipped = backward_data;
    z.images = static_cast<int>(shape.batch);
    z.filters = static_cast<int>(backward_data ? shape.group_inputs : shape.group_outputs);
    z.rows = static_cast<int>(backward_data ? shape.rows.inputs : shape.rows.outputs);
    z.columns = static_cast<int>(backward_data ? shape.columns.inputs : shape.columns.outputs);
    z.taps_r = static_cast<int>(shape.rows.taps);
    z.tk = instance.tile.filters, z.tp = instance.tile.rows, z.tq = instance.tile.columns;
    if (instance.tile.columns % 4 != 0 && z.columns > instance.tile.columns)
      continue;  // the second tile would lie askew
    const double costs = cost(z);
    if (plan.data && costs >= least) continue;
    if (!fit(z, taps, splits)) continue;
    z.stage.finish();
    z.by_positions = Divider(z.positions);
    z.by_band_tiles = Divider(cuda::divide_up(z.band, z.tp) * z.tiles);
    z.by_tiles = Divider(z.tiles);
    z.by_taps = Divider(z.taps_r * taps);
    z.by_k_groups = Divider(z.k_groups);
    const int threads = static_cast<int>(z.threads);
    z.lanes = std::max(1, threads / std::min(z.filters, z.k_groups * z.tk));
    z.filters_at_once = threads / z.lanes;
    z.by_lanes = Divider(z.lanes);
    least = costs;
    plan.data = std::make_shared<FpropPlan::Data>(FpropPlan::Data{z, instance.kernel, instance.pooling});
  }
  return plan;
}

FpropPlan fprop_pooling_of(const ConvolutionShape& shape, const backends::Pool& pool) {
  const FpropPlan plain = fprop_of(shape, false);
  if (!plain.data || plain.data->z.bands > 1) return {};
  auto data = std::make_shared<FpropPlan::Data>(*plain.data);
  Fprop& z = data->z;
  const int64_t bytes = int64_t{std::min(z.filters, z.k_groups * z.tk)} * z.images_per_block * z.rows * z.columns *
                        static_cast<int64_t>(sizeof(float));
  if (bytes > kMostSharedBytes) return {};
  z.shared_bytes = std::max(z.shared_bytes, static_cast<unsigned>(bytes));
  const auto narrow = [](int64_t value) { return static_cast<int>(value); };
  data->kernel = data->pooling_kernel;
  const auto halves = [](const backends::PoolAxis& axis) {
    return axis.window == 2 && axis.stride == 2 && axis.pad == 0 && axis.inputs % 2 == 0;
  };
  data->pooling = {.pooled = nullptr,
                   .halves = halves(pool.rows) && halves(pool.columns),
                   .rows = narrow(pool.rows.outputs),
                   .columns = narrow(pool.columns.outputs),
                   .window = {narrow(pool.rows.window), narrow(pool.columns.window)},
                   .stride = {narrow(pool.rows.stride), narrow(pool.columns.stride)},
                   .pad = {narrow(pool.rows.pad), narrow(pool.columns.pad)},
                   .by_plane = Divider(pool.output_size()),
                   .by_columns = Divider(pool.columns.outputs)};
  return {std::move(data)};
}

void run_fprop(const FpropPlan& plan, const float* x, const float* w, const float* bias, bool relu, float* y,
               int early_blocks, cudaStream_t stream, float* pooled) {
  const Fprop& z = plan.data->z;
  Pooling pooling = plan.data->pooling;
  pooling.pooled = pooled;
  const auto chunks = static_cast<unsigned>(cuda::divide_up(z.images, z.images_per_block) * z.bands);
  launch(plan.data->kernel,
         {dim3(chunks, static_cast<unsigned>(z.parts), static_cast<unsigned>(z.stage.groups)), dim3(z.threads),
          z.shared_bytes},
         early_blocks, stream, x, w, Epilogue{bias, relu}, y, z,
         Widths{piece_of(x, z.stage, early_blocks > 0 && z.bands == 1),
                z.columns % 4 == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0,
                z.columns % 2 == 0 && reinterpret_cast<uintptr_t>(y) % 8 == 0},
         pooling);
}

uint64_t shared_bytes(const FpropPlan& plan) { return plan.data ? plan.data->z.shared_bytes : 0; }

}  // namespace gpunn::cuda_tiled::direct
