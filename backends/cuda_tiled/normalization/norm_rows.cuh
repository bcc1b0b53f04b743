// Kernels that normalise rows, or the planes of an instance norm. One thread block normalises one row. If rows are long
// or few, a cluster of blocks shares a row and adds its sums through distributed shared memory. The threads keep their
// elements in registers, so that x is read once and y written once, unless a row is too long for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>

#include <cooperative_groups.h>

#include "architecture.hpp"
#include "common/requirements.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/divide_up.hpp"
#include "cuda_common/launch.hpp"
#include "launch.hpp"
#include "pack.cuh"
#include "warp.hpp"

namespace gpunn::cuda_tiled::rows {

inline constexpr int kMostThreads = 512;
inline constexpr int kMostBlocks = 8;  // of a cluster
inline constexpr int kHopper = 90;

// The packs of a thread, of `width` numbers each: at most 32 numbers of a tensor are kept in registers.
constexpr int most_packs(int width) { return width == 8 ? 4 : 8; }

// The numbers of one access, in f32.
template <int width>
struct Wide {
  float of[width];
};

// Of an array that begins, and whose rows do, at a multiple of 16 bytes where width > 1. 8 floats take two accesses.
template <int width, class T>
__device__ __forceinline__ Wide<width> load(const T* from) {
  constexpr int kAccess = width * sizeof(T) > 16 ? 16 / sizeof(T) : width;
  Wide<width> wide;
#pragma unroll
  for (int first = 0; first < width; first += kAccess) {
    const auto pack = *reinterpret_cast<const Pack<T, kAccess>*>(from + first);
#pragma unroll
    for (int e = 0; e < kAccess; ++e) wide.of[first + e] = static_cast<float>(pack.values[e]);
  }
  return wide;
}

template <class T, int width>
__device__ __forceinline__ void store(T* to, const Wide<width>& wide) {
  Pack<T, width> pack;
#pragma unroll
  for (int e = 0; e < width; ++e) pack.values[e] = static_cast<T>(wide.of[e]);
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

// How rows are shared out.
struct Rows {
  int64_t columns = 0;
  float terms = 1;
  int threads = kWarp;
  int packs = 1;   // that a thread keeps: 1, 2, 4 or 8; 0: none, as there are more
  int blocks = 1;  // of a row
  int packs_of_block = 0;
};

inline Rows rows_of(int64_t rows, int64_t columns, int width) {
  const int64_t all = columns / width;
  const int most = most_packs(width);
  const int most_blocks = compute_capability() >= kHopper ? kMostBlocks : 1;
  const auto with = [&](int blocks) {
    const int64_t of_block = cuda::divide_up(all, int64_t{blocks});
    const int64_t threads = std::min<int64_t>(kMostThreads, cuda::divide_up(of_block, int64_t{kWarp}) * kWarp);
    int64_t packs = 1;
    while (packs * threads < of_block) packs *= 2;
    return Rows{.columns = columns,
                .terms = static_cast<float>(columns),
                .threads = static_cast<int>(threads),
                .packs = static_cast<int>(std::min<int64_t>(packs, most * 2)),
                .blocks = blocks,
                .packs_of_block = static_cast<int>(of_block)};
  };
  Rows plan = with(1);
  const auto is_short_of_blocks = [&] { return rows * plan.blocks < int64_t{multiprocessors()} && plan.packs > 1; };
  while (plan.blocks < most_blocks && (plan.packs > most || is_short_of_blocks())) plan = with(plan.blocks * 2);
  if (plan.packs > most) plan.packs = 0;
  return plan;
}

// Sums over all threads of a cluster, the same bits in each of them. `round` tells apart the sums of a kernel.
template <int count>
struct ClusterSums {
  float of_warp[kMostThreads / kWarp][count];
  float of_block[count];

  __device__ void add(float (&sums)[count], int blocks) {
    const int warps = static_cast<int>(blockDim.x) / kWarp;
#pragma unroll
    for (int i = 0; i < count; ++i) {
#pragma unroll
      for (int reach = kWarp / 2; reach > 0; reach /= 2) sums[i] += __shfl_xor_sync(kEveryLane, sums[i], reach);
    }
    if (threadIdx.x % kWarp == 0) {
#pragma unroll
      for (int i = 0; i < count; ++i) of_warp[threadIdx.x / kWarp][i] = sums[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < count; ++i) {
      sums[i] = 0.0F;
      for (int warp = 0; warp < warps; ++warp) sums[i] += of_warp[warp][i];
    }
    if (blocks == 1) return;
    if (threadIdx.x == 0) {
#pragma unroll
      for (int i = 0; i < count; ++i) of_block[i] = sums[i];
    }
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    cluster.sync();
#pragma unroll
    for (int i = 0; i < count; ++i) {
      sums[i] = 0.0F;
      for (int block = 0; block < blocks; ++block) {
        sums[i] += *cluster.map_shared_rank(&of_block[i], static_cast<unsigned>(block));
      }
    }
  }
};

// The positions of a thread's packs: pack i is at first + i * blockDim.x, if that is below `end`.
struct Place {
  int64_t row;
  int first, end;
  bool leads;  // the thread that writes what a row has once

  __device__ explicit Place(const Rows& plan) : row(blockIdx.x / static_cast<unsigned>(plan.blocks)) {
    const int block = static_cast<int>(blockIdx.x) % plan.blocks;
    const int begin = block * plan.packs_of_block;
    first = begin + static_cast<int>(threadIdx.x);
    end = begin + plan.packs_of_block;
    leads = block == 0 && threadIdx.x == 0;
  }
};

// The scale and shift of a row: one element each for LAYER_NORM, one for the whole row for INSTANCE_NORM.
struct Affine {
  const float* gamma = nullptr;
  const float* beta = nullptr;
  int channels = 0;  // 0: an element each
};

template <int width>
__device__ __forceinline__ Wide<width> affine_of(const float* of, const Affine& by, int64_t row, int64_t at) {
  if (by.channels == 0) return load<width>(of + at);
  Wide<width> pack;
  const float one = of[row % by.channels];
#pragma unroll
  for (float& element : pack.of) element = one;
  return pack;
}

// A row's packs of a thread. They stay in registers, or where `packs` is 0 are read anew each time.
template <class T, int width, int packs>
class OwnPacks {
 public:
  __device__ OwnPacks(const T* row, const Place& at, int last) : row_(row), first_(at.first), last_(last) {
    if constexpr (packs > 0) {
#pragma unroll
      for (int i = 0; i < packs; ++i) {
        const int pack = first_ + i * static_cast<int>(blockDim.x);
        if (pack < last_) kept_[i] = load<width>(row_ + int64_t{pack} * width);
      }
    }
  }

  // Calls use(number, column, pack) for each; the number is a constant where packs are kept.
  template <class Use>
  __device__ __forceinline__ void each(const Use& use) const {
    if constexpr (packs > 0) {
#pragma unroll
      for (int i = 0; i < packs; ++i) {
        const int pack = first_ + i * static_cast<int>(blockDim.x);
        if (pack < last_) use(i, int64_t{pack} * width, kept_[i]);
      }
    } else {
#pragma unroll 4
      for (int pack = first_; pack < last_; pack += static_cast<int>(blockDim.x)) {
        use(0, int64_t{pack} * width, load<width>(row_ + int64_t{pack} * width));
      }
    }
  }

 private:
  const T* row_;
  int first_, last_;
  Wide<width> kept_[packs > 0 ? packs : 1];
};

template <class T, int width, int packs>
__global__ void norm_rows(const T* x, Affine by, T* y, float* means, float* rstds, Rows plan, float epsilon) {
  __shared__ ClusterSums<1> mean_sums, square_sums;
  const Place at(plan);
  const int last = min(at.end, static_cast<int>(plan.columns / width));
  const OwnPacks<T, width, packs> own(x + at.row * plan.columns, at, last);
  float sum[1] = {0.0F};
  own.each([&](int, int64_t, const Wide<width>& pack) {
#pragma unroll
    for (const float element : pack.of) sum[0] += element;
  });
  mean_sums.add(sum, plan.blocks);
  const float mean = sum[0] / plan.terms;
  float squares[1] = {0.0F};
  own.each([&](int, int64_t, const Wide<width>& pack) {
#pragma unroll
    for (const float element : pack.of) squares[0] += (element - mean) * (element - mean);
  });
  square_sums.add(squares, plan.blocks);
  const float rstd = 1.0F / sqrtf(squares[0] / plan.terms + epsilon);
  T* const to = y + at.row * plan.columns;
  own.each([&](int, int64_t column, const Wide<width>& pack) {
    const Wide<width> gamma = affine_of<width>(by.gamma, by, at.row, column);
    const Wide<width> beta = affine_of<width>(by.beta, by, at.row, column);
    Wide<width> out;
#pragma unroll
    for (int e = 0; e < width; ++e) out.of[e] = (pack.of[e] - mean) * rstd * gamma.of[e] + beta.of[e];
    store(to + column, out);
  });
  if (at.leads) {
    means[at.row] = mean;
    rstds[at.row] = rstd;
  }
  if (plan.blocks > 1) cooperative_groups::this_cluster().sync();  // others read this block's sums
}

struct Saved {
  const float* gamma;
  const float* mean;
  const float* rstd;
};

// The sums of a plane, for the gradients of its channel.
struct PlaneSums {
  double* dgamma = nullptr;  // null: not needed
  double* dbeta = nullptr;
};

template <class T, int width, int packs>
__global__ void norm_rows_backward(const T* dy, const T* x, Saved saved, int channels, T* dx, PlaneSums to, Rows plan) {
  __shared__ ClusterSums<2> row_sums;
  const Place at(plan);
  const int last = min(at.end, static_cast<int>(plan.columns / width));
  const int64_t begin = at.row * plan.columns;
  const float mean = saved.mean[at.row];
  const float rstd = saved.rstd[at.row];
  const OwnPacks<T, width, packs> own(x + begin, at, last);
  // The gradients of what was normalised, but for a gamma of the whole row.
  const auto gradients_at = [&](int64_t column) {
    Wide<width> gradients = load<width>(dy + begin + column);
    if (channels > 0) return gradients;  // the row's own gamma comes last
    const Wide<width> gamma = load<width>(saved.gamma + column);
#pragma unroll
    for (int e = 0; e < width; ++e) gradients.of[e] *= gamma.of[e];
    return gradients;
  };
  Wide<width> kept[packs > 0 ? packs : 1] = {};
  float sums[2] = {0.0F, 0.0F};
  own.each([&]([[maybe_unused]] int i, int64_t column, const Wide<width>& pack) {
    const Wide<width> gradients = gradients_at(column);
    if constexpr (packs > 0) kept[i] = gradients;
#pragma unroll
    for (int e = 0; e < width; ++e) {
      sums[0] += gradients.of[e];
      sums[1] += gradients.of[e] * (pack.of[e] - mean);
    }
  });
  row_sums.add(sums, plan.blocks);
  const float offset = sums[0] / plan.terms;
  const float slope = sums[1] / plan.terms * rstd * rstd;
  const float factor = channels == 0 ? rstd : rstd * saved.gamma[at.row % channels];
  own.each([&]([[maybe_unused]] int i, int64_t column, const Wide<width>& pack) {
    const Wide<width> gradients = packs > 0 ? kept[i] : gradients_at(column);
    Wide<width> out;
#pragma unroll
    for (int e = 0; e < width; ++e) out.of[e] = factor * (gradients.of[e] - offset - (pack.of[e] - mean) * slope);
    store(dx + begin + column, out);
  });
  if (at.leads && to.dgamma != nullptr) {
    to.dgamma[at.row] = static_cast<double>(sums[1] * rstd);
    to.dbeta[at.row] = static_cast<double>(sums[0]);
  }
  if (plan.blocks > 1) cooperative_groups::this_cluster().sync();
}

template <int width, class Run>
void by_packs(const Rows& plan, const Run& run) {
  switch (plan.packs) {
    case 1:
      return run(std::integral_constant<int, width>(), std::integral_constant<int, 1>());
    case 2:
      return run(std::integral_constant<int, width>(), std::integral_constant<int, 2>());
    case 4:
      return run(std::integral_constant<int, width>(), std::integral_constant<int, 4>());
    case 8:
      if constexpr (most_packs(width) == 8) {
        return run(std::integral_constant<int, width>(), std::integral_constant<int, 8>());
      }
      [[fallthrough]];
    default:
      return run(std::integral_constant<int, width>(), std::integral_constant<int, 0>());
  }
}

// Calls run(plan, width, packs), the last two as constants, for rows of T. `tensors` are all that is read or written by
// packs.
template <class T, class Run>
void by_shape(int64_t rows, int64_t columns, std::initializer_list<const void*> tensors, const Run& run) {
  constexpr int kWidth = 16 / sizeof(T);
  if (columns % kWidth == 0 && cuda::are_aligned(tensors, 16)) {
    const Rows plan = rows_of(rows, columns, kWidth);
    by_packs<kWidth>(plan, [&](auto width, auto packs) { run(plan, width, packs); });
  } else {
    const Rows plan = rows_of(rows, columns, 1);
    by_packs<1>(plan, [&](auto width, auto packs) { run(plan, width, packs); });
  }
}

template <class... Parameters, class... Arguments>
void launch_rows(void (*kernel)(Parameters...), int64_t rows, const Rows& plan, cudaStream_t stream,
                 Arguments&&... arguments) {
  const cuda::Launch shape{.grid = dim3(static_cast<unsigned>(rows * plan.blocks)),
                           .block = dim3(static_cast<unsigned>(plan.threads))};
  LaunchAttributes attributes;
  if (plan.blocks > 1) attributes.cluster = dim3(static_cast<unsigned>(plan.blocks), 1, 1);
  launch_with(kernel, shape, attributes, stream, std::forward<Arguments>(arguments)...);
}

// Throws Refusal.
inline void require_rows(int64_t rows, int64_t columns) {
  if (rows < 1 || columns < 1) throw backends::Refusal("a row: the base does as well without");
  if (rows * kMostBlocks > std::numeric_limits<int32_t>::max()) throw backends::Refusal("is for fewer than 2^28 rows");
  if (columns > std::numeric_limits<int32_t>::max()) throw backends::Refusal("is for rows of fewer than 2^31 elements");
}

}  // namespace gpunn::cuda_tiled::rows
