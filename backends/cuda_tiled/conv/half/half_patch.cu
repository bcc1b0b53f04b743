// conv:half_patch: 3x3 convolutions of stride 1 of at most 64 channels, and their data gradients, which are
// convolutions of dy. As a product (half_product.hpp) one would fetch x once for each of the nine taps, and a tile of
// 64 filters waits for that.
//
// A thread block keeps the weights of 64 filters in shared memory and walks over the images. Of an image the output's
// pixels are counted with gaps behind each row, as many as a row of x has columns more that its windows see. A tile has
// kPixels such pixels, and TMA brings the rows of x that they see, its patch, with the same pitch. So a tap is an
// offset in shared memory, and the transposed product
//
//   y[filter, i] = sum over tap, channel of w[filter, tap, channel] x[i + row_of_tap * pitch + column_of_tap, channel]
//
// has 64 rows and kPixels columns, of which those in the gaps are left out. The swizzle of 128 bytes depends on the
// address alone, so that wgmma may begin at any pixel.
//
// Two warpgroups take turns with tiles: while one stores, the other multiplies.
#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "conv/convolution.hpp"
#include "conv/half/half_patch.cuh"
#include "conv/half/half_patch.hpp"
#include "cuda_common/divide_up.hpp"
#include "dependent_launch.cuh"
#include "divider.cuh"
#include "epilogue.cuh"
#include "gemm/wgmma/cluster.cuh"
#include "gemm/wgmma/wgmma.cuh"
#include "half/consumer_turns.cuh"
#include "half/half_copies.cuh"
#include "half/half_gradient.cuh"
#include "half/half_instructions.cuh"
#include "half/half_store.cuh"
#include "launch.hpp"
#include "moments.cuh"
#include "shared_memory.hpp"
#include "warp.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionAxis;
using backends::Refusal;
using backends::require;
using cuda::divide_up;

constexpr int kPatchFilters = 64;   // of a block
constexpr int kPatchChannels = 64;  // at most, of x
constexpr int kAllTaps = kPatchTaps * kPatchTaps;
constexpr int kTapBytes = kPatchFilters * kLineBytes;  // of weights
constexpr int kWeightBytes = kAllTaps * kTapBytes;
constexpr int kPatchConsumers = 2;
constexpr int kPatchThreads = (kPatchConsumers + 1) * kWarpgroup;  // a thread of the last warpgroup fills the ring
constexpr uint32_t kPatchProducerRegisters = 40, kPatchConsumerRegisters = 232;
// A warp stores this many pixels of its 16 filters at a time.
constexpr int kStoredPixels = 16;
constexpr int kStoredFilters = 16;
constexpr int kPatchStagingBytes = kStoredPixels * kStoredFilters * int{sizeof(uint16_t)};
constexpr int kAllStagingBytes = kPatchConsumers * kWarpgroup / 32 * kPatchStagingBytes;

struct PatchConvolution {
  CUtensorMap x{}, w{};
  void* y = nullptr;
  Epilogue epilogue{};
  const void* residual = nullptr;  // laid out as y
  HalfStatistics statistics{};     // a slab a tile
  HalfGradient gradient{};         // likewise
  int height = 0, width = 0;       // of y
  int filters = 0;                 // of y
  int filter_tiles = 1;
  int row_pad = 0, column_pad = 0, row_dilation = 1, column_dilation = 1;
  int pixels = 0;      // of a tile, with gaps
  int patch_rows = 0;  // of x
  Divider pitch = {};  // pixels of a row
  int channel_steps = 0;
  int stages = 0;
  int units = 0;  // tiles of all images
  Divider image_units = {};

  __host__ __device__ int row_pitch() const { return static_cast<int>(pitch.by); }
  __host__ __device__ int brought() const { return patch_rows * row_pitch() * kLineBytes; }
  // What the last pixels, which are in a gap, read behind the patch goes nowhere.
  __host__ __device__ int stage_bytes() const {
    const int pixels_read = patch_rows * row_pitch() + (kPatchTaps - 1) * column_dilation;
    return (pixels_read + 7) / 8 * 8 * kLineBytes;
  }
  // The weights and the stages want to begin at a multiple of 1024 bytes.
  int shared_bytes() const { return kWeightBytes + stages * stage_bytes() + kAllStagingBytes + 1024; }
  int blocks(int multiprocessors) const {
    return std::min(std::max(multiprocessors / filter_tiles, 1), units) * filter_tiles;
  }
};

// The filters of a block, and the tiles that it walks over.
struct PatchWork {
  int filter;
  int first, step;
  __device__ __forceinline__ explicit PatchWork(const PatchConvolution& plan)
      : filter(static_cast<int>(blockIdx.x) % plan.filter_tiles * kPatchFilters),
        first(static_cast<int>(blockIdx.x) / plan.filter_tiles),
        step(static_cast<int>(gridDim.x) / plan.filter_tiles) {}
};

struct PatchTile {
  int unit;
  int image;
  int row;     // of y, of its first pixel
  int column;  // of that; it may be in the gap
  __device__ __forceinline__ PatchTile(const PatchConvolution& plan, int number) {
    const Divider::Result of_images = plan.image_units(number);
    const Divider::Result first = plan.pitch(of_images.rest * plan.pixels);
    unit = number;
    image = of_images.quotient;
    row = first.quotient;
    column = first.rest;
  }
};

// One thread. `kGradient`: x is dy, and the filters are the channels of w, whose taps come in reverse.
template <bool kGradient>
__device__ __forceinline__ void fill_patches(const PatchConvolution& plan, uint8_t* weights, uint64_t* weights_full,
                                             uint8_t* stages, PatchBarriers& barriers) {
  const PatchWork work(plan);
  barrier_expect(weights_full, kWeightBytes);
  for (int tap = 0; tap < kAllTaps; ++tap) {
    uint8_t* const to = weights + tap * kTapBytes;
    if constexpr (kGradient) {
      copy_box_of_tap(to, &plan.w, weights_full, work.filter, kAllTaps - 1 - tap, 0);
    } else {
      copy_box_of_tap(to, &plan.w, weights_full, 0, tap, work.filter);
    }
  }
  PatchTurn turn(plan.stages);
  for (int unit = work.first; unit < plan.units; unit += work.step) {
    const PatchTile tile(plan, unit);
    uint64_t* const full = &barriers.full[turn.stage];
    barrier_wait(&barriers.empty[turn.stage], turn.phase ^ 1U);
    barrier_expect(full, static_cast<uint32_t>(plan.brought()));
    copy_box_of_image(stages + turn.stage * plan.stage_bytes(), &plan.x, full, 0,
                      {.row = tile.row - plan.row_pad, .column = -plan.column_pad, .image = tile.image});
    turn.advance();
  }
}

// Adds to d the sums of a tile whose first pixel is at `x`. One warpgroup.
template <bool kBf16, bool kGradient, int kPixels>
__device__ __forceinline__ void multiply_patch(const PatchConvolution& plan, const uint8_t* weights, const uint8_t* x,
                                               float (&d)[kPixels / 2]) {
  // 16 of K a step: along a line 32 bytes, across lines 16 lines.
  constexpr int kStepA = kGradient ? kPatchStep * kLineBytes : kPatchStep * int{sizeof(uint16_t)};
  constexpr int kStepB = kPatchStep * int{sizeof(uint16_t)};
  const uint64_t from_a = tile_descriptor(weights, 0), from_b = tile_descriptor(x, 0);
  int row = 0, column = 0;  // of the tap
#pragma unroll 1
  for (int tap = 0; tap < kAllTaps; ++tap) {
    // A descriptor's lowest bits are the address in units of 16 bytes.
    uint64_t a = from_a + static_cast<unsigned>(tap * (kTapBytes / 16));
    uint64_t b = from_b + static_cast<unsigned>((row * plan.row_pitch() + column) * (kLineBytes / 16));
    warpgroup_arrive();
#pragma unroll 1
    for (int step = 0; step < plan.channel_steps; ++step) {
      if constexpr (kBf16)
        wgmma_bf16<kGradient, 0>(d, a, b, true);
      else
        wgmma_f16<kGradient, 0>(d, a, b, true);
      a += kStepA / 16;
      b += kStepB / 16;
    }
    warpgroup_commit();
    column += plan.column_dilation;
    if (column == kPatchTaps * plan.column_dilation) {
      column = 0;
      row += plan.row_dilation;
    }
  }
}

// Four matrices of 8 x 8 numbers of 16 bits between registers and the rows whose addresses the lanes name: in registers
// a thread has two neighbours of a column.
__device__ __forceinline__ void store_transposed(uint32_t address, const uint32_t (&words)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
__device__ __forceinline__ void store_chunk(uint32_t address, const uint4& eight) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(eight.x), "r"(eight.y), "r"(eight.z),
               "r"(eight.w)
               : "memory");
}
__device__ __forceinline__ void load_transposed(uint32_t address, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

// Whether a pixel of a tile, gaps included, is one of y, and its place there.
struct PatchPixel {
  bool there;
  int64_t place;  // of its first filter
  __device__ __forceinline__ PatchPixel(const PatchConvolution& plan, const PatchTile& tile, int number) {
    const Divider::Result at = plan.pitch(tile.column + number);
    const int row = tile.row + at.quotient;
    there = row < plan.height && at.rest < plan.width;
    place = ((int64_t{tile.image} * plan.height + row) * plan.width + at.rest) * plan.filters;
  }
};

// Mean and squares of two filters, over those of a tile's pixels that a lane has. Squares are summed around the first
// pixel's number, so that a mean far from zero costs no digits.
class PatchStatistics {
 public:
  // A pixel's two numbers.
  __device__ __forceinline__ void add(float first, float second) {
    if (pixels_ == 0.0F) around_[0] = first, around_[1] = second;
    const float apart[2] = {first - around_[0], second - around_[1]};
    pixels_ += 1.0F;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      sums_[k] += apart[k];
      squares_[k] += apart[k] * apart[k];
    }
  }

  // Of filter k, of all four lanes that have it; the first of them gets it.
  __device__ __forceinline__ Moments of(int k) const {
    Moments all{pixels_, 0.0F, 0.0F};
    if (pixels_ > 0.0F) {
      const float apart = sums_[k] / pixels_, squares = squares_[k] - sums_[k] * apart;
      all.mean = around_[k] + apart;
      all.squares = squares < 0.0F ? 0.0F : squares;  // NaN stays NaN
    }
#pragma unroll
    for (int reach = 2; reach > 0; reach /= 2) {
      all = merge(all, {__shfl_down_sync(kEveryLane, all.n, reach), __shfl_down_sync(kEveryLane, all.mean, reach),
                        __shfl_down_sync(kEveryLane, all.squares, reach)});
    }
    return all;
  }

 private:
  float around_[2] = {}, sums_[2] = {}, squares_[2] = {};
  float pixels_ = 0.0F;
};

// What the statistics and sums of a tile are taken of.
__device__ __forceinline__ bool counts(const int32_t* images, const PatchTile& tile) {
  return images == nullptr || tile.image < *images;
}

// Stores a warp's 16 filters from `filter` on, with bias, residual and ReLU, through its part of shared memory. A lane
// stores eight filters of a pixel. `kEnds`: with HalfStatistics or, of a data gradient, HalfGradient.
template <bool kBf16, bool kGradient, bool kEnds, int kPixels>
__device__ __forceinline__ void store_patch(const PatchConvolution& plan, const PatchTile& tile, int filter,
                                            const float (&d)[kPixels / 2], uint8_t* staging) {
  constexpr int kTogether = 4;  // passes whose loads are under way at a time
  constexpr bool kSumsUp = kEnds && kGradient, kMeasures = kEnds && !kGradient;
  const int lane = lane_index();
  float bias[2] = {};
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int of = filter + lane / 4 + k * 8;
    if (plan.epilogue.bias != nullptr && of < plan.filters) bias[k] = plan.epilogue.bias[of];
  }
  const bool relu = plan.epilogue.relu, adds = plan.residual != nullptr;
  // Of the lane in the staging: the row of a matrix, and the chunk that it stores.
  const uint32_t shared = shared_address(staging);
  const uint32_t matrix_row = shared + static_cast<uint32_t>((lane / 16 * 8 + lane % 8) * 32 + lane / 8 % 2 * 16);
  const uint32_t chunk = shared + static_cast<uint32_t>(lane * 16);
  const int my_filter = filter + lane % 2 * 8;
  const bool has_filter = my_filter < plan.filters;
  [[maybe_unused]] PatchStatistics statistics;
  [[maybe_unused]] bool counted = false;
  [[maybe_unused]] float totals[16] = {}, mean[8] = {};
  if constexpr (kMeasures) counted = counts(plan.statistics.images, tile);
  if constexpr (kSumsUp) {
    counted = counts(plan.gradient.images, tile);
    if (has_filter) load_means(plan.gradient, my_filter, mean);
  }
#pragma unroll
  for (int first = 0; first < kPixels / kStoredPixels; first += kTogether) {
    bool stored[kTogether];
    int64_t place[kTogether];
    [[maybe_unused]] uint4 residual[kTogether];
    [[maybe_unused]] GradientChunk behind[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const PatchPixel pixel(plan, tile, (first + i) * kStoredPixels + lane / 2);
      stored[i] = has_filter && pixel.there;
      place[i] = pixel.place + my_filter;
      if constexpr (kSumsUp) {
        if (stored[i]) behind[i].load(plan.gradient, place[i]);
      }
      if constexpr (!kEnds) {
        residual[i] = make_uint4(0, 0, 0, 0);
        if (adds && stored[i]) residual[i] = load_eight(plan.residual, place[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int pass = first + i;
      float sums[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) sums[k] = d[pass * 8 + k] + bias[k / 2 % 2];
      uint32_t words[4];
      if (!kEnds && adds) {
        store_chunk(chunk, residual[i]);
        __syncwarp();
        load_transposed(matrix_row, words);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 two = numbers_of<kBf16>(words[k]);
          sums[k * 2] += two.x;
          sums[k * 2 + 1] += two.y;
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        words[k] = half_pair<kBf16>(rectified(sums[k * 2], relu), rectified(sums[k * 2 + 1], relu));
      }
      if constexpr (kMeasures) {
        // Of each eight pixels a lane has two neighbours, of two filters.
#pragma unroll
        for (int eight = 0; eight < 2; ++eight) {
          const int number = pass * kStoredPixels + eight * 8 + lane % 4 * 2;
          const float2 a = numbers_of<kBf16>(words[eight * 2]), b = numbers_of<kBf16>(words[eight * 2 + 1]);
          if (counted && PatchPixel(plan, tile, number).there) statistics.add(a.x, b.x);
          if (counted && PatchPixel(plan, tile, number + 1).there) statistics.add(a.y, b.y);
        }
      }
      store_transposed(matrix_row, words);
      __syncwarp();
      uint4 eight = load_chunk(chunk);
      if (stored[i]) {
        if constexpr (kSumsUp) {
          const bool more = plan.gradient.more != nullptr;
          eight = masked_gradient<kBf16>(behind[i], eight, more, mean, counted, totals);
        }
        *reinterpret_cast<uint4*>(static_cast<uint16_t*>(plan.y) + place[i]) = eight;
      }
      __syncwarp();
    }
  }
  if constexpr (kMeasures) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const Moments all = statistics.of(k);
      const int of = filter + lane / 4 + k * 8;
      if (lane % 4 > 0 || of >= plan.filters) continue;
      plan.statistics.slabs[int64_t{tile.unit} * plan.filters + of] = make_float2(all.mean, all.squares);
    }
  }
  if constexpr (kSumsUp) {
    halve<8>(totals, lane / 16 == 1, 16);
    halve<4>(totals, lane / 8 % 2 == 1, 8);
    halve<2>(totals, lane / 4 % 2 == 1, 4);
    halve<1>(totals, lane / 2 % 2 == 1, 2);
    const int of = my_filter + lane / 8 % 2 * 4 + lane / 4 % 2 * 2 + lane / 2 % 2;
    float* const slabs = reinterpret_cast<float*>(plan.gradient.slabs);
    if (has_filter) slabs[(int64_t{tile.unit} * plan.filters + of) * 2 + lane / 16] = totals[0];
  }
}

template <bool kBf16, bool kGradient, bool kEnds, int kPixels>
__global__ void __launch_bounds__(kPatchThreads, 1) patch_convolution(const __grid_constant__ PatchConvolution plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t patch_shared[];
  __shared__ PatchBarriers barriers;
  __shared__ uint64_t weights_full, begins[kPatchConsumers];
  uint8_t* const weights = patch_shared + (1024 - shared_address(patch_shared) % 1024) % 1024;
  uint8_t* const stages = weights + kWeightBytes;
  uint8_t* const staging = stages + plan.stages * plan.stage_bytes();
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&plan.w);
    prefetch_tensor_map(&plan.x);
    barrier_init(&weights_full, 1);
    for (int i = 0; i < plan.stages; ++i) {
      barrier_init(&barriers.full[i], 1);
      barrier_init(&barriers.empty[i], kWarpgroup / 32);
    }
    for (uint64_t& begin : begins) barrier_init(&begin, ConsumerTurns::kArrivals);
    fence_barrier_init();
  }
  __syncthreads();
  let_next_kernel_start();
  wait_for_kernel_before();

  const int consumer = warpgroup_index();
  if (consumer == kPatchConsumers) {
    give_up_registers<kPatchProducerRegisters>();
    if (threadIdx.x == kPatchConsumers * kWarpgroup)
      fill_patches<kGradient>(plan, weights, &weights_full, stages, barriers);
    return;
  }
  take_registers<kPatchConsumerRegisters>();
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup, warp = thread / 32;
  const PatchWork work(plan);
  ConsumerTurns turns(begins, consumer);
  PatchTurn turn(plan.stages);
  barrier_wait(&weights_full, 0);
  for (int unit = work.first, of = 0; unit < plan.units; unit += work.step, of ^= 1, turn.advance()) {
    if (of != consumer) continue;
    const PatchTile tile(plan, unit);
    float d[kPixels / 2] = {};
    turns.wait(consumer);
    barrier_wait(&barriers.full[turn.stage], turn.phase);
    multiply_patch<kBf16, kGradient, kPixels>(plan, weights,
                                              stages + turn.stage * plan.stage_bytes() + tile.column * kLineBytes, d);
    turns.hand_over(consumer, thread);
    warpgroup_wait<0>();
    if (thread % 32 == 0) barrier_arrive(&barriers.empty[turn.stage]);
    store_patch<kBf16, kGradient, kEnds, kPixels>(plan, tile, work.filter + warp * kStoredFilters, d,
                                                  staging + (consumer * (kWarpgroup / 32) + warp) * kPatchStagingBytes);
  }
#endif
}

// With tiles of this many pixels.
PatchConvolution with_tiles(PatchConvolution plan, int pixels, int64_t images) {
  const int pitch = plan.row_pitch();
  plan.pixels = pixels;
  plan.patch_rows = (pitch - 1 + pixels - 1) / pitch + 1 + (kPatchTaps - 1) * plan.row_dilation;
  plan.image_units = Divider(divide_up(plan.height * pitch, pixels));
  plan.units = static_cast<int>(images * plan.image_units.by);
  plan.stages = 0;
  plan.stages =
      std::min(kMostPatchStages, (shared_memory_of_block() - 1024 - plan.shared_bytes()) / plan.stage_bytes());
  return plan;
}

// Clock cycles of the tensor cores, and those that a tile takes beside.
double cycles_of(const PatchConvolution& plan) {
  constexpr double kTileCycles = 300, kTwoStages = 1.1;
  const int walkers = plan.blocks(multiprocessors()) / plan.filter_tiles;
  return divide_up(plan.units, walkers) * (plan.stages > 2 ? 1.0 : kTwoStages) *
         (kAllTaps * plan.channel_steps * plan.pixels / 2.0 + kTileCycles);
}

// Throws Refusal.
PatchConvolution patch_of(const HalfConvolution& problem) {
  const backends::ConvolutionShape& shape = problem.shape;
  const ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  const bool gradient = problem.pass == backends::ConvolutionPass::backward_data;
  require(rows.taps == kPatchTaps && columns.taps == kPatchTaps && rows.stride == 1 && columns.stride == 1,
          "is for filters of 3x3 and stride 1");
  require(shape.groups == 1 && shape.group_inputs % 8 == 0 && shape.group_outputs % 8 == 0,
          "is for channels and filters by the eight in one group");
  const int64_t channels = gradient ? shape.group_outputs : shape.group_inputs;
  const int64_t filters = gradient ? shape.group_inputs : shape.group_outputs;
  require(channels <= kPatchChannels, "is for sums over at most 64 channels");
  if (const std::string refusal = half_refusal_of_gpu(); !refusal.empty()) throw Refusal(refusal);
  // A data gradient's windows lie the other way round.
  const auto pad_of = [&](const ConvolutionAxis& axis) {
    return static_cast<int>(gradient ? (kPatchTaps - 1) * axis.dilation - axis.pad : axis.pad);
  };
  const int64_t height = gradient ? rows.inputs : rows.outputs, width = gradient ? columns.inputs : columns.outputs;
  const int64_t pitch = width + (kPatchTaps - 1) * columns.dilation;
  require(pitch <= kMostBox && rows.dilation <= kMostBox / kPatchTaps, "the images are too wide");
  require(shape.batch > 0 && height > 0 && width > 0 && filters > 0 && channels > 0, "a tensor is empty");
  constexpr int64_t kMost = int64_t{1} << 30;
  require(shape.batch * height * pitch <= kMost && filters <= kMost, "a tensor is too large");
  PatchConvolution plan;
  plan.height = static_cast<int>(height);
  plan.width = static_cast<int>(width);
  plan.filters = static_cast<int>(filters);
  plan.filter_tiles = static_cast<int>(divide_up(filters, int64_t{kPatchFilters}));
  plan.row_pad = pad_of(rows);
  plan.column_pad = pad_of(columns);
  plan.row_dilation = static_cast<int>(rows.dilation);
  plan.column_dilation = static_cast<int>(columns.dilation);
  plan.pitch = Divider(pitch);
  plan.channel_steps = static_cast<int>(divide_up(channels, int64_t{kPatchStep}));
  plan.epilogue.relu = problem.relu;
  const PatchConvolution narrow = with_tiles(plan, 192, shape.batch), wide = with_tiles(plan, 256, shape.batch);
  const auto fits = [](const PatchConvolution& tiles) {
    return tiles.stages >= kLeastPatchStages && tiles.patch_rows <= kMostBox;
  };
  require(fits(narrow), "two patches of the image don't fit into shared memory");
  return fits(wide) && cycles_of(wide) < cycles_of(narrow) ? wide : narrow;
}

std::string refuses(const HalfConvolution& problem) {
  try {
    patch_of(problem);
    return "";
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
}

uint64_t workspace(const HalfConvolution&) { return 0; }

using PatchKernel = void (*)(PatchConvolution);

template <bool kBf16, bool kGradient, bool kEnds>
PatchKernel kernel_with(const PatchConvolution& plan) {
  return plan.pixels == 192 ? patch_convolution<kBf16, kGradient, kEnds, 192>
                            : patch_convolution<kBf16, kGradient, kEnds, 256>;
}
template <bool kBf16>
PatchKernel kernel_of(const PatchConvolution& plan, bool gradient) {
  if (gradient)
    return (plan.gradient.slabs == nullptr ? kernel_with<kBf16, true, false> : kernel_with<kBf16, true, true>)(plan);
  return (plan.statistics.slabs == nullptr ? kernel_with<kBf16, false, false> : kernel_with<kBf16, false, true>)(plan);
}

void run(const HalfConvolution& problem, cudaStream_t stream, const OpArgs& args) {
  run_patch_convolution(problem, half_arguments(problem, args), stream);
}

}  // namespace

void run_patch_convolution(const HalfConvolution& problem, const HalfConvolutionArgs& args, cudaStream_t stream) {
  const backends::ConvolutionShape& shape = problem.shape;
  const bool gradient = problem.pass == backends::ConvolutionPass::backward_data;
  PatchConvolution plan = patch_of(problem);
  plan.x = pixel_tensor_map({.data = args.inputs[0],
                             .images = shape.batch,
                             .rows = gradient ? shape.rows.outputs : shape.rows.inputs,
                             .columns = gradient ? shape.columns.outputs : shape.columns.inputs,
                             .channels = gradient ? shape.group_outputs : shape.group_inputs},
                            plan.patch_rows, plan.row_pitch());
  plan.w = half_tensor_map({.data = args.inputs[1],
                            .inner = shape.group_inputs,
                            .taps = kAllTaps,
                            .outer = shape.group_outputs,
                            .pitch = shape.group_inputs},
                           kPatchFilters);
  plan.y = args.output;
  plan.epilogue.bias = args.bias;
  plan.residual = args.residual;
  plan.statistics = args.statistics;
  plan.gradient = args.gradient;
  const bool bf16 = problem.dtype == GPUNN_BF16;
  const PatchKernel kernel = bf16 ? kernel_of<true>(plan, gradient) : kernel_of<false>(plan, gradient);
  const auto shared_bytes = static_cast<unsigned>(plan.shared_bytes());
  allow_shared_memory(kernel, shared_bytes);
  launch_with(kernel, {dim3(static_cast<unsigned>(plan.blocks(multiprocessors()))), dim3(kPatchThreads), shared_bytes},
              {.early = true}, stream, plan);
}

HalfSlabs patch_slabs(const HalfConvolution& problem) {
  const PatchConvolution plan = patch_of(problem);
  return {.count = plan.units,
          .rows = {.image_slabs = plan.image_units,
                   .pixels = plan.pixels,
                   .pitch = plan.pitch,
                   .width = plan.width,
                   .image_rows = int64_t{plan.height} * plan.width}};
}

Variant<HalfConvolution> patch_variant() {
  return {.name = "conv:half_patch", .refuses = refuses, .workspace_bytes = workspace, .run = run};
}

}  // namespace gpunn::cuda_tiled
