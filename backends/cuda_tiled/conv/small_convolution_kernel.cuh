// The kernel of small_convolution.hpp: implicit GEMM (Chetlur et al., 2014) in TF32 with mma.sync.
//
// wgmma reads TF32 from shared memory only where the contraction is contiguous, so the rungs before pack their filters
// by a kernel of its own, and add up what blocks share by another. Where an op takes 5 us these kernels are most of it.
// mma.sync takes its fragments from registers, at a lower rate, which few tiles don't notice: tiles lie in shared
// memory as they lie in memory, and the blocks that share a tile's terms are a cluster, which adds up what they have
// through each other's shared memory, in the order of their ranks.
//
// A multiprocessor has one or two blocks, so that waits are what is spent: fragments of the next step, and of the next
// stage's first, are loaded before the products of this one; a lane looks up one term's channel and tap for its warp;
// and where copies are of 4 bytes, twice as many blocks share the work.
//
// H200, all convolutions of ResNet-50 of 28x28, batch 32, best of all rungs against best of those before: forward 0.55
// against 0.95 ms, data gradients 0.66 against 1.02, filter gradients 0.69 against 1.06; together 1.89 against 3.03,
// and cuDNN's best 3.08. 1x1: 1024 to 256 channels of 4x4 8.5, 5.7 and 7.1 us against 15.1, 14.8 and 11.4; 512 to 2048
// of 2x2 8.9, 10.5 and 10.0 against 20.4, 21.1 and 14.6. 3x3: 512 channels of 4x4 at stride 2 21.3 forward
// against 35.2, 128 of 7x7 12.5 against 15.8, its filter gradient 17.6 against 24.8; data gradients of 3x3 at a stride
// stay with the rungs before, since here all taps of a pixel are multiplied, those that have no output too.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cooperative_groups.h>

#include "conv/small_convolution_parts.cuh"
#include "dependent_launch.cuh"
#include "gemm/async_copy.cuh"

namespace gpunn::cuda_tiled::small {

inline constexpr int kStages = 4;

// Rows of terms: ldmatrix meets all banks.
constexpr int term_pitch(int terms) { return terms + 4; }

// Terms by columns: 4 terms by 8 columns lie in 32 banks.
constexpr int column_pitch(int columns) { return columns + 8; }

constexpr int threads_of(int rows, int columns, int groups) { return rows * columns * groups / 32; }

constexpr int first_words(ConvolutionPass pass, const Tile& tile) {
  return pass == ConvolutionPass::backward_data ? tile.terms * column_pitch(tile.rows)
                                                : tile.rows * term_pitch(tile.terms);
}

constexpr int second_words(ConvolutionPass pass, const Tile& tile) {
  return pass == ConvolutionPass::backward_filter ? tile.columns * term_pitch(tile.terms)
                                                  : tile.terms * column_pitch(tile.columns);
}

constexpr int shared_bytes(ConvolutionPass pass, const Tile& tile) {
  const int stages = kStages * (first_words(pass, tile) + second_words(pass, tile));
  const int sums = tile.rows * column_pitch(tile.columns);
  return (stages > sums ? stages : sums) * 4;
}

// Of a multiprocessor: 128 registers for each of 512 threads.
template <int kThreads>
inline constexpr int kBlocks = 512 / kThreads;

struct Arguments {
  const float* first;
  const float* second;
  const float* bias;
  float* out;
  bool relu;
};

template <ConvolutionPass kPass, Source kSource, int kRows, int kColumns, int kTerms, int kGroups>
__global__ void __launch_bounds__(threads_of(kRows, kColumns, kGroups), kBlocks<kRows * kColumns * kGroups / 32>)
    small_convolution_kernel(const __grid_constant__ Plan plan, const Arguments arguments) {
#ifdef GPUNN_CONV_TENSOR_CORES
  constexpr Tile kTile{kRows, kColumns, kTerms, kGroups};
  constexpr int kThreads = threads_of(kRows, kColumns, kGroups);
  constexpr int kWarps = kThreads / 32;
  constexpr bool kFilter = kPass == ConvolutionPass::backward_filter;
  constexpr bool kData = kPass == ConvolutionPass::backward_data;
  constexpr bool kScattered = kData && kSource != Source::kTaps;  // pixels of dy, whose stride is that of the outputs
  constexpr int kFirst = first_words(kPass, kTile);
  constexpr int kStage = kFirst + second_words(kPass, kTile);
  constexpr int kPitch = column_pitch(kColumns);
  constexpr int kTermPitch = term_pitch(kTerms);
  extern __shared__ __align__(128) float shared[];
  __shared__ int tap_offsets[kMaxTaps];
  __shared__ int2 column_offsets[kFilter && kSource == Source::kTaps ? kColumns : 1];

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = __shfl_sync(0xffffffff, thread / 32, 0);
  const int block = static_cast<int>(blockIdx.x);
  const int tile = block / plan.splits;
  const int rank = block - tile * plan.splits;
  const int column_tile = tile / plan.row_tiles;
  const int first_row = (tile - column_tile * plan.row_tiles) * kRows;
  const int first_column = column_tile * kColumns;
  const int first_chunk = plan.chunks * rank / plan.splits;
  const int chunks = plan.chunks * (rank + 1) / plan.splits - first_chunk;
  const int rows_left = plan.rows - first_row;
  const int columns_left = plan.columns - first_column;

  if constexpr (kSource == Source::kTaps) {
    if (thread < plan.taps) tap_offsets[thread] = kData ? output_offset(plan, thread) : input_offset(plan, thread);
    if constexpr (kFilter) {
      for (int i = thread; i < kColumns; i += kThreads) {
        const auto [channel, tap] = plan.by_taps(first_column + i);
        column_offsets[i] = {channel * plan.input_plane + input_offset(plan, tap), i < columns_left ? 1 << tap : 0};
      }
    }
    __syncthreads();
  }

  // What this thread's column of pixels is, the same in each chunk.
  int pixel_from = 0;
  uint32_t pixel_taps = 0;
  const float* x = kPass == ConvolutionPass::forward ? arguments.first : arguments.second;
  if constexpr (!kFilter) {
    const int column = kSource == Source::kVectors ? thread % (kColumns / 4) * 4 : warp % (kColumns / 32) * 32 + lane;
    if (column < columns_left) {
      if constexpr (kSource == Source::kTaps || (kSource == Source::kPixels && !kData)) {
        TapPixel pixel;
        if constexpr (kData) {
          pixel = output_pixel(plan, first_column + column);
        } else {
          pixel = input_pixel<kSource>(plan, first_column + column);
        }
        pixel_from = pixel.from;
        pixel_taps = pixel.taps;
      } else {
        const auto [image, place] = plan.by_output_plane(first_column + column);
        pixel_from = image * (kData ? plan.outputs : plan.inputs) * plan.output_plane + place;
        pixel_taps = 1;
      }
    }
  }
  uint32_t stages;  // once: the compiler would look it up at each use
  asm volatile("mov.b32 %0, %1;" : "=r"(stages) : "r"(tensor::shared_address(shared)));

  wait_for_kernel_before();

  const auto copy_stage = [&](int chunk, uint32_t stage) {
    const uint32_t second = stage + kFirst * 4;
    const int term = chunk * kTerms;
    const int terms_left = plan.terms - term;
    if constexpr (kFilter) {
      const int at = kSource == Source::kVectors ? thread % (kTerms / 4) * 4 : warp % (kTerms / 32) * 32 + lane;
      const bool exists = at < terms_left;
      int dy_from = 0;
      TapPixel pixel{};
      if (exists) {
        const auto [image, place] = plan.by_output_plane(term + at);
        dy_from = image * plan.outputs * plan.output_plane + place;
        if constexpr (kSource == Source::kVectors) {
          pixel = {image * plan.inputs * plan.input_plane + place, 1};
        } else {
          pixel = input_pixel<kSource>(plan, term + at);
        }
      }
      constexpr int kAtOnce = kSource == Source::kVectors ? kThreads / (kTerms / 4) : kWarps / (kTerms / 32);
      constexpr int kBytes = kSource == Source::kVectors ? 16 : 4;
      const int first = kSource == Source::kVectors ? thread / (kTerms / 4) : warp / (kTerms / 32);
      const float* dy = arguments.first + dy_from + (first_row + first) * plan.output_plane;
      uint32_t to = stage + static_cast<uint32_t>(first * kTermPitch + at) * 4;
#pragma unroll
      for (int i = 0; i < kRows; i += kAtOnce) {
        copy<kBytes>(to + static_cast<uint32_t>(i * kTermPitch) * 4, dy + int64_t{i} * plan.output_plane,
                     exists && first + i < rows_left);
      }
      to += kFirst * 4;
      if constexpr (kSource == Source::kTaps) {
#pragma unroll
        for (int i = 0; i < kColumns; i += kAtOnce) {
          const int2 column = column_offsets[first + i];
          copy<kBytes>(to + static_cast<uint32_t>(i * kTermPitch) * 4, x + (pixel.from + column.x),
                       (pixel.taps & static_cast<uint32_t>(column.y)) != 0);
        }
      } else {
        const float* from = x + pixel.from + (first_column + first) * plan.input_plane;
#pragma unroll
        for (int i = 0; i < kColumns; i += kAtOnce) {
          copy<kBytes>(to + static_cast<uint32_t>(i * kTermPitch) * 4, from + int64_t{i} * plan.input_plane,
                       exists && first + i < columns_left);
        }
      }
    } else {
      if constexpr (kData && kSource == Source::kTaps) {
        // A warp takes 8 terms of 4 rows, which lie side by side.
        const int low_term = lane % 8;
#pragma unroll
        for (int i = 0; i < kTerms; i += 8) {
          const auto [filter, tap] = plan.by_taps(term + i + low_term);
          const float* from = arguments.second + (filter * plan.rows + first_row) * plan.taps + tap;
          const uint32_t to = stage + static_cast<uint32_t>((i + low_term) * column_pitch(kRows)) * 4;
#pragma unroll
          for (int row = warp * 4 + lane / 8; row < kRows; row += kWarps * 4) {
            copy<4>(to + static_cast<uint32_t>(row) * 4, from + int64_t{row} * plan.taps,
                    i + low_term < terms_left && row < rows_left);
          }
        }
      } else if constexpr (kData) {
        copy_rows<kThreads, kTerms, kRows, column_pitch(kRows)>(stage, arguments.second + term * plan.rows + first_row,
                                                                plan.rows, terms_left, rows_left);
      } else {
        copy_rows<kThreads, kRows, kTerms, kTermPitch>(stage, arguments.second + first_row * plan.terms + term,
                                                       plan.terms, rows_left, terms_left);
      }
      const float* pixels = arguments.first;
      const int plane = kData ? plan.output_plane : plan.input_plane;
      if constexpr (kSource == Source::kVectors) {
        constexpr int kVectors = kColumns / 4;
        const int first = thread / kVectors;
        const uint32_t to = second + static_cast<uint32_t>(first * kPitch + thread % kVectors * 4) * 4;
        const float* from = pixels + pixel_from + (term + first) * plane;
#pragma unroll
        for (int i = 0; i < kTerms; i += kThreads / kVectors) {
          copy<16>(to + static_cast<uint32_t>(i * kPitch) * 4, from + int64_t{i} * plane,
                   pixel_taps != 0 && first + i < terms_left);
        }
      } else {
        constexpr int kAtOnce = kWarps / (kColumns / 32);
        const int first = warp / (kColumns / 32);
        const uint32_t to = second + static_cast<uint32_t>(first * kPitch + warp % (kColumns / 32) * 32 + lane) * 4;
        if constexpr (kSource == Source::kTaps) {
          // A lane looks up a term for the warp.
          static_assert(32 % kAtOnce == 0);
          int offset[kTerms / 32];
          uint32_t named[kTerms / 32];
#pragma unroll
          for (int i = 0; i < kTerms / 32; ++i) {
            const auto [channel, tap] = plan.by_taps(term + i * 32 + lane);
            offset[i] = channel * plane + tap_offsets[tap];
            named[i] = i * 32 + lane < terms_left ? 1U << tap : 0;
          }
#pragma unroll
          for (int i = 0; i < kTerms; i += kAtOnce) {
            const int place = __shfl_sync(0xffffffff, offset[i / 32], first + i % 32);
            const uint32_t tap = __shfl_sync(0xffffffff, named[i / 32], first + i % 32);
            copy<4>(to + static_cast<uint32_t>(i * kPitch) * 4, pixels + (pixel_from + place), (pixel_taps & tap) != 0);
          }
        } else {
          const float* from = pixels + pixel_from + (term + first) * plane;
#pragma unroll
          for (int i = 0; i < kTerms; i += kAtOnce) {
            copy<4>(to + static_cast<uint32_t>(i * kPitch) * 4, from + int64_t{i} * plane,
                    pixel_taps != 0 && first + i < terms_left);
          }
        }
      }
    }
  };

  // A warp multiplies 32 rows by 32 columns, at every kGroups-th eight terms.
  constexpr int kWarpColumns = kColumns / 32;
  constexpr int kGroupWarps = kRows / 32 * kWarpColumns;
  constexpr int kSteps = kTerms / 8 / kGroups;
  const int group = warp / kGroupWarps;
  const int warp_row = warp % kGroupWarps / kWarpColumns * 32;
  const int warp_column = warp % kWarpColumns * 32;
  float sum[2][4][4] = {};
  uint32_t a[2][2][4];
  uint32_t b[2][4][2];
  const auto load_step = [&](uint32_t(&to_a)[2][4], uint32_t(&to_b)[4][2], uint32_t stage, int step) {
    const uint32_t second = stage + kFirst * 4;
    const int term = (step * kGroups + group) * 8;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kData) {
        const int place = (term + lane % 4) * column_pitch(kRows) + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int word = place + j / 2 * 4 * column_pitch(kRows) + j % 2 * 8;
          to_a[i][j] = tensor::load_word(stage + static_cast<uint32_t>(word) * 4);
        }
      } else {
        const int word = (warp_row + i * 16 + lane % 16) * kTermPitch + term + lane / 16 * 4;
        load_matrices(to_a[i], stage + static_cast<uint32_t>(word) * 4);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kFilter) {
        if (i % 2 != 0) continue;
        uint32_t both[4];
        const int word = (warp_column + i * 8 + lane / 16 * 8 + lane % 8) * kTermPitch + term + lane / 8 % 2 * 4;
        load_matrices(both, second + static_cast<uint32_t>(word) * 4);
        to_b[i][0] = both[0];
        to_b[i][1] = both[1];
        to_b[i + 1][0] = both[2];
        to_b[i + 1][1] = both[3];
      } else {
        const int word = (term + lane % 4) * kPitch + warp_column + i * 8 + lane / 4;
        to_b[i][0] = tensor::load_word(second + static_cast<uint32_t>(word) * 4);
        to_b[i][1] = tensor::load_word(second + static_cast<uint32_t>(word + 4 * kPitch) * 4);
      }
    }
  };

#pragma unroll
  for (int i = 0; i < kStages; ++i) {
    if (i < chunks) copy_stage(first_chunk + i, stages + i * kStage * 4);
    commit_copies();
  }
  // The fragments of a step are loaded before the products of the one before it, those of a stage's first step too.
  static_assert(kSteps % 2 == 0);
  wait_copies<kStages - 1>();
  __syncthreads();
  load_step(a[0], b[0], stages, 0);
  uint32_t stage = stages;
  for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        load_step(a[(step + 1) % 2], b[(step + 1) % 2], stage, step + 1);
      } else {
        wait_copies<kStages - 2>();
        __syncthreads();
        const uint32_t free = stage;
        stage = stage == stages + (kStages - 1) * kStage * 4 ? stages : stage + kStage * 4;
        if (chunk + 1 < chunks) load_step(a[0], b[0], stage, 0);
        if (chunk + kStages < chunks) copy_stage(first_chunk + chunk + kStages, free);
        commit_copies();
      }
      // What the tensor cores cut off by themselves would make every sum too small.
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (uint32_t& word : b[step % 2][j]) word = tensor::round_tf32(__uint_as_float(word));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint32_t rounded[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) rounded[j] = tensor::round_tf32(__uint_as_float(a[step % 2][i][j]));
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply(sum[i][j], rounded, b[step % 2][j][0], b[step % 2][j][1]);
      }
    }
  }

  // The groups' sums, in order, where the stages were, which all have read.
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (g > 0) __syncthreads();
    if (group == g) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            auto* to = reinterpret_cast<float2*>(shared + (warp_row + i * 16 + half * 8 + lane / 4) * kPitch +
                                                 warp_column + j * 8 + lane % 4 * 2);
            const float2 before = g == 0 ? make_float2(0.0f, 0.0f) : *to;
            *to = make_float2(before.x + sum[i][j][half * 2], before.y + sum[i][j][half * 2 + 1]);
          }
        }
      }
    }
  }
  namespace groups = cooperative_groups;
  const groups::cluster_group cluster = groups::this_cluster();
  if (plan.splits > 1) {
    meet_cluster();
  } else {
    __syncthreads();
  }

  // The rows of this rank, from all groups of all ranks.
  const int own_rows = kRows / plan.splits;
  const int plane = kData ? plan.input_plane : plan.output_plane;
  const int channels = kData ? plan.inputs : plan.outputs;
  const int row_size = kFilter ? plan.columns : plane;
  const auto finished = [&](float value, float bias) {
    if constexpr (kPass == ConvolutionPass::forward) {
      value += bias;
      if (arguments.relu) value = value < 0.0f ? 0.0f : value;
    }
    return value;
  };
  const auto bias_of = [&](int row) {
    return kPass == ConvolutionPass::forward && arguments.bias != nullptr ? arguments.bias[row] : 0.0f;
  };
  // What all ranks have at `word`, in their order.
  const auto total_of = [&]<class Value>(int word, const Value& zero) {
    const auto part_of = [&](int other) {
      return *reinterpret_cast<const Value*>(cluster.map_shared_rank(shared, other) + word);
    };
    const auto add = [&](auto count) {
      Value part[count()];
#pragma unroll
      for (int other = 0; other < count(); ++other) part[other] = part_of(other);
      Value total = zero;
#pragma unroll
      for (int other = 0; other < count(); ++other) total = sum_of(total, part[other]);
      return total;
    };
    switch (plan.splits) {
      case 1:
        return *reinterpret_cast<const Value*>(shared + word);
      case 2:
        return add(std::integral_constant<int, 2>());
      case 4:
        return add(std::integral_constant<int, 4>());
      default:
        return add(std::integral_constant<int, kMostSplits>());
    }
  };
  if (plan.together) {
    constexpr int kVectors = kColumns / 4;
    const int column = thread % kVectors * 4;
    int place = first_column + column;
    if constexpr (!kFilter) {
      const auto [image, at] = plan.by_pixel_plane(place);
      place = image * channels * plane + at;
    }
    for (int i = thread / kVectors; i < own_rows && column < columns_left; i += kThreads / kVectors) {
      const int row = rank * own_rows + i;
      if (row >= rows_left) break;
      const float4 total = total_of(row * kPitch + column, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      const float bias = bias_of(first_row + row);
      *reinterpret_cast<float4*>(arguments.out + place + (first_row + row) * row_size) = make_float4(
          finished(total.x, bias), finished(total.y, bias), finished(total.z, bias), finished(total.w, bias));
    }
  } else {
    const int column = thread % kColumns;
    int place = first_column + column;
    // Of a data gradient with a stride the zeros up to the next pixel of dy, or to the edge, are written too.
    int block_rows = 1;
    int block_columns = 1;
    if constexpr (!kFilter) {
      const auto [image, at] = plan.by_pixel_plane(place);
      place = image * channels * plane + at;
      if constexpr (kScattered) {
        const auto [y, x] = plan.by_pixel_columns(at);
        place = image * channels * plane + y * plan.row_stride * plan.input_columns + x * plan.column_stride;
        block_rows = y + 1 == plan.output_rows ? plan.input_rows - y * plan.row_stride : plan.row_stride;
        block_columns = x + 1 == plan.output_columns ? plan.input_columns - x * plan.column_stride : plan.column_stride;
      }
    }
    for (int i = thread / kColumns; i < own_rows && column < columns_left; i += kThreads / kColumns) {
      const int row = rank * own_rows + i;
      if (row >= rows_left) break;
      const float total = total_of(row * kPitch + column, 0.0f);
      float* out = arguments.out + place + (first_row + row) * row_size;
      *out = finished(total, bias_of(first_row + row));
      if constexpr (kScattered) {
        for (int y = 0; y < block_rows; ++y) {
          for (int x = y == 0 ? 1 : 0; x < block_columns; ++x) out[y * plan.input_columns + x] = 0.0f;
        }
      }
    }
  }
  if (plan.splits > 1) meet_cluster_relaxed();  // nobody ends while others read what it has
#endif
}

}  // namespace gpunn::cuda_tiled::small
