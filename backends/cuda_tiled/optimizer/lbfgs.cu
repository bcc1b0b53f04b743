// LBFGS_UPDATE: the two-loop recursion in one launch, by as many thread blocks as the GPU holds at once. Each thread
// reads and writes the parameters of its own alone: the blocks meet for sums only, once for each vector of the history
// (grid groups of CUDA, a cooperative launch). A block's part of the direction lies in shared memory where it fits.
//
// The history is read twice and, where a new pair moves the others down, written once: a vector is stored in its new
// place when the second loop reads it. While the blocks wait for each other, the vectors of the next pass come to the
// second-level cache.
#include <algorithm>
#include <cstdint>

#include <cooperative_groups.h>

#include "architecture.hpp"
#include "common/optimizer.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/lbfgs.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "launch.hpp"
#include "pack.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr unsigned kLbfgsThreads = 1024, kWarps = kLbfgsThreads / 32;
constexpr int64_t kMostPairs = 128;
constexpr int64_t kLine = 32;                  // numbers of a line of the cache
constexpr unsigned kSharedBytes = 160 * 1024;  // of a block's part of the direction

struct LbfgsPlan : Lbfgs {
  uint64_t workspace_bytes = 0;
  uint64_t change_at = 0, direction_at = 0;  // in the workspace, behind the sums
  unsigned blocks = 1;
  int64_t share = 0;  // of a block, a multiple of a line
  bool in_shared = false;
};

struct LbfgsArrays : LbfgsTensors {
  double2* sums;              // [2][blocks], in the workspace as what follows
  float *direction, *change;  // the change is that of the new pair
};

// A pass changes the direction and multiplies vectors with it or with each other.
struct Products {
  double first = 0.0, second = 0.0;
};

template <int width>
class LbfgsUpdate {
  using Numbers = Pack<float, width>;

 public:
  __device__ LbfgsUpdate(const LbfgsPlan& plan, const LbfgsArrays& arrays, float* own_direction)
      : plan_(plan), a_(arrays), first_(static_cast<int64_t>(blockIdx.x) * plan.share) {
    last_ = first_ + plan.share < plan.n ? first_ + plan.share : plan.n;
    direction_ = plan.in_shared ? own_direction - first_ : arrays.direction;
  }

  __device__ void run() {
    const Products start = meet_after(sums_at_first());
    if (!Lbfgs::is_finite(start.first)) return go_back();
    good_ = Lbfgs::is_good(start.second);
    const bool falls = Lbfgs::falls(find_direction());
    const auto rate = static_cast<float>(static_cast<double>(*a_.lr) * Lbfgs::rate(*a_.step, start.first));
    for_own([&](int64_t i) {
      Numbers w = at(a_.w, i), forward = at(direction_, i);
      for (int k = 0; k < width; ++k) {
        forward.values[k] = falls ? rate * forward.values[k] : 0.0F;
        w.values[k] += forward.values[k];
      }
      at(a_.w, i) = w;
      at(a_.last_step, i) = forward;
    });
  }

 private:
  static __device__ Numbers& at(float* x, int64_t i) { return *reinterpret_cast<Numbers*>(x + i); }
  static __device__ const Numbers& at(const float* x, int64_t i) { return *reinterpret_cast<const Numbers*>(x + i); }

  // body(first of `width` numbers) for those of this thread.
  template <class Body>
  __device__ void for_own(const Body& body) const {
    for (int64_t i = first_ + width * static_cast<int64_t>(threadIdx.x); i < last_; i += width * kLbfgsThreads) body(i);
  }

  // What this block has of a vector comes to the second-level cache.
  __device__ void fetch(const float* x) const {
    for (int64_t i = first_ + kLine * static_cast<int64_t>(threadIdx.x); i < last_; i += kLine * kLbfgsThreads) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
    }
  }

  // Vectors of pair k of the history as it is from now on, where they still lie.
  __device__ const float* step_of(int64_t k) const {
    if (!good_) return a_.steps + k * plan_.n;
    return k + 1 < plan_.pairs ? a_.steps + (k + 1) * plan_.n : a_.last_step;
  }
  __device__ const float* change_of(int64_t k) const {
    if (!good_) return a_.changes + k * plan_.n;
    return k + 1 < plan_.pairs ? a_.changes + (k + 1) * plan_.n : a_.change;
  }

  // Adds up over all threads of all blocks. The order is that of their numbers, so that equal inputs give equal bits.
  __device__ Products meet_after(Products mine) {
    __shared__ double2 warps[kWarps];
    __shared__ double2 all;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double2* const sums = a_.sums + (meetings_++ % 2) * plan_.blocks;
    mine = warp_sums(mine);
    if (lane == 0) warps[warp] = {mine.first, mine.second};
    __syncthreads();
    if (warp == 0) {
      mine = warp_sums({warps[lane].x, warps[lane].y});
      if (lane == 0) sums[blockIdx.x] = {mine.first, mine.second};
    }
    if (plan_.blocks > 1) cooperative_groups::this_grid().sync();
    if (warp == 0) {
      Products of_blocks;
      if (plan_.blocks > 1) {
        for (unsigned i = lane; i < plan_.blocks; i += 32) {
          const double2 one = __ldcg(sums + i);
          of_blocks.first += one.x;
          of_blocks.second += one.y;
        }
        of_blocks = warp_sums(of_blocks);
      } else {
        of_blocks = mine;
      }
      if (lane == 0) all = {of_blocks.first, of_blocks.second};
    }
    __syncthreads();
    return {all.x, all.y};
  }

  // Every lane gets the sums.
  static __device__ Products warp_sums(Products mine) {
    for (int offset = 16; offset > 0; offset /= 2) {
      mine.first += __shfl_xor_sync(0xffffffffU, mine.first, offset);
      mine.second += __shfl_xor_sync(0xffffffffU, mine.second, offset);
    }
    return mine;
  }

  static __device__ double product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

  __device__ Numbers gradient_at(int64_t i) const {
    Numbers gradient = at(a_.g, i);
    if (plan_.attrs.weight_decay == 0.0F) return gradient;
    const Numbers w = at(a_.w, i);
    for (int k = 0; k < width; ++k) {
      if (i + k < plan_.attrs.decayed) gradient.values[k] += plan_.attrs.weight_decay * w.values[k];
    }
    return gradient;
  }

  // That of the gradient's absolute values, and the product of the new pair.
  __device__ Products sums_at_first() {
    Products sums;
    for_own([&](int64_t i) {
      const Numbers gradient = gradient_at(i), before = at(a_.last_gradient, i), step = at(a_.last_step, i);
      Numbers change;
      for (int k = 0; k < width; ++k) {
        change.values[k] = gradient.values[k] - before.values[k];
        sums.first += static_cast<double>(fabsf(gradient.values[k]));
        sums.second += product(change.values[k], step.values[k]);
      }
      at(a_.change, i) = change;
    });
    return sums;
  }

  __device__ void go_back() {
    for_own([&](int64_t i) {
      Numbers w = at(a_.w, i), step = at(a_.last_step, i);
      for (int k = 0; k < width; ++k) {
        step.values[k] *= 0.5F;
        w.values[k] -= step.values[k];
      }
      at(a_.w, i) = w;
      at(a_.last_step, i) = step;
    });
  }

  // The direction becomes minus the gradient, which is the last one from now on.
  __device__ Products begin(const float* step, const float* change) {
    Products sums;
    for_own([&](int64_t i) {
      const Numbers gradient = gradient_at(i), s = at(step, i), y = at(change, i);
      Numbers direction;
      for (int k = 0; k < width; ++k) {
        direction.values[k] = -gradient.values[k];
        sums.first += product(s.values[k], direction.values[k]);
        sums.second += product(s.values[k], y.values[k]);
      }
      at(a_.last_gradient, i) = gradient;
      at(direction_, i) = direction;
    });
    return sums;
  }

  // direction += factor * change; then the products of `step` with it and with `next`.
  __device__ Products go_down(float factor, const float* change, const float* step, const float* next) {
    Products sums;
    for_own([&](int64_t i) {
      Numbers direction = at(direction_, i);
      const Numbers y = at(change, i), a = at(step, i), b = at(next, i);
      for (int k = 0; k < width; ++k) {
        direction.values[k] += factor * y.values[k];
        sums.first += product(a.values[k], direction.values[k]);
        sums.second += product(a.values[k], b.values[k]);
      }
      at(direction_, i) = direction;
    });
    return sums;
  }

  // direction = scale * direction + factor * step; then its product with `next`. The step is stored in `step_to`, and
  // `next` in `next_to`, unless these are null.
  __device__ Products go_up(float scale, float factor, const float* step, const float* next, float* step_to,
                            float* next_to) {
    Products sums;
    for_own([&](int64_t i) {
      Numbers direction = at(direction_, i);
      const Numbers y = at(next, i);
      if (step == nullptr) {
        for (int k = 0; k < width; ++k) direction.values[k] *= scale;
      } else {
        const Numbers s = at(step, i);
        for (int k = 0; k < width; ++k) direction.values[k] += factor * s.values[k];
        if (step_to != nullptr) at(step_to, i) = s;
      }
      for (int k = 0; k < width; ++k) sums.first += product(y.values[k], direction.values[k]);
      if (next_to != nullptr) at(next_to, i) = y;
      at(direction_, i) = direction;
    });
    return sums;
  }

  // Returns the product of gradient and direction.
  __device__ double find_direction() {
    __shared__ double inverse[kMostPairs], share[kMostPairs];
    const int64_t newest = plan_.pairs - 1;
    const float* const newest_change = change_of(newest);
    double newest_product = 0.0;
    Products next = meet_after(begin(step_of(newest), newest_change));
    for (int64_t k = newest; k >= 0; --k) {
      if (k == newest) newest_product = next.second;
      const double one = Lbfgs::inverse(next.second), part = one * next.first;
      if (threadIdx.x == 0) {
        inverse[k] = one;
        share[k] = part;
      }
      const bool last = k == 0;  // the scale is that of the newest change
      const Products mine = go_down(static_cast<float>(-part), change_of(k), last ? newest_change : step_of(k - 1),
                                    last ? newest_change : change_of(k - 1));
      if (k > 1) {
        fetch(step_of(k - 2));
        fetch(change_of(k - 2));
      }
      next = meet_after(mine);
    }
    const auto scale = static_cast<float>(Lbfgs::scale(newest_product, next.second));
    next = meet_after(go_up(scale, 0.0F, nullptr, change_of(0), nullptr, good_ ? a_.changes : nullptr));
    for (int64_t k = 0; k <= newest; ++k) {
      const double factor = share[k] - inverse[k] * next.first;
      const bool last = k == newest;
      float* const step_to = good_ ? a_.steps + k * plan_.n : nullptr;
      float* const change_to = good_ && !last ? a_.changes + (k + 1) * plan_.n : nullptr;
      const Products mine = go_up(1.0F, static_cast<float>(factor), step_of(k),
                                  last ? a_.last_gradient : change_of(k + 1), step_to, change_to);
      if (k + 1 <= newest) fetch(step_of(k + 1));
      if (k + 2 <= newest) fetch(change_of(k + 2));
      next = meet_after(mine);
    }
    return next.first;
  }

  const LbfgsPlan& plan_;
  const LbfgsArrays& a_;
  int64_t first_, last_;
  float* direction_;
  bool good_ = false;
  unsigned meetings_ = 0;
};

template <int width>
__global__ void __launch_bounds__(kLbfgsThreads, 1)
    lbfgs(const __grid_constant__ LbfgsPlan plan, const __grid_constant__ LbfgsArrays arrays) {
  extern __shared__ float4 own_direction[];
  LbfgsUpdate<width>(plan, arrays, reinterpret_cast<float*>(own_direction)).run();
}

LbfgsPlan plan_lbfgs(const OpDesc& desc) {
  LbfgsPlan plan{lbfgs_of(desc)};
  require(plan.n > 0, "there is nothing to update");
  require(plan.pairs <= kMostPairs, "is for at most 128 pairs");
  const int64_t most = std::max(multiprocessors(), 1);
  const int64_t lines = divide_up(plan.n, kLine);
  plan.share = divide_up(lines, std::min(most, divide_up(lines, kLbfgsThreads / kLine))) * kLine;
  plan.blocks = static_cast<unsigned>(divide_up(plan.n, plan.share));
  plan.in_shared = plan.share * static_cast<int64_t>(sizeof(float)) <= kSharedBytes;
  const uint64_t vector_bytes = static_cast<uint64_t>(lines) * kLine * sizeof(float);
  plan.change_at = divide_up(uint64_t{2} * plan.blocks * sizeof(double2), uint64_t{128}) * 128;
  plan.direction_at = plan.change_at + vector_bytes;
  plan.workspace_bytes = plan.direction_at + (plan.in_shared ? 0 : vector_bytes);
  return plan;
}

bool fits_packs(const OpArgs& args, int64_t n) {
  bool fits = n % 4 == 0 && is_aligned(args.in<float>(1), 16);
  for (std::size_t i = 0; i < 5; ++i) fits = fits && is_aligned(args.out<float>(i), 16);
  return fits;
}

void run_lbfgs(const LbfgsPlan& plan, cudaStream_t stream, const OpArgs& args) {
  auto* const workspace = args.workspace<char>();
  const LbfgsArrays arrays{lbfgs_tensors(args), reinterpret_cast<double2*>(workspace),
                           reinterpret_cast<float*>(workspace + plan.direction_at),
                           reinterpret_cast<float*>(workspace + plan.change_at)};
  const unsigned shared = plan.in_shared ? static_cast<unsigned>(plan.share * sizeof(float)) : 0;
  auto* const kernel = fits_packs(args, plan.n) ? &lbfgs<4> : &lbfgs<1>;
  allow_shared_memory(kernel, shared);
  launch_with(kernel, {dim3(plan.blocks), dim3(kLbfgsThreads), shared}, {.together = plan.blocks > 1}, stream, plan,
              arrays);
}

}  // namespace

void add_lbfgs_kernels(TiledDevice& device) { add_op(device, GPUNN_OP_LBFGS_UPDATE, "lbfgs", plan_lbfgs, run_lbfgs); }

}  // namespace gpunn::cuda_tiled
