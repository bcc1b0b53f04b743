// NON_MAXIMUM_SUPPRESSION in two kernels. The first collects the scores that count, of all images at once, as keys: the
// score in the high bits, its position in the low bits. So no two keys are equal, and a larger key comes first.
//
// In the second kernel each image has one thread block. The block selects the 1024 largest remaining keys digit by
// digit, sorts them in shared memory, and removes boxes that overlap boxes kept earlier. Then it walks down the list:
// it keeps the first remaining box, and each thread checks whether that box covers its own. It takes the next 1024 keys
// only if these are used up before enough boxes are kept.
#include <cstdint>
#include <limits>

#include "common/detection.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/check.hpp"
#include "cuda_common/launch.hpp"
#include "cuda_common/workspace.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "warp.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::Corners;
using backends::overlap_of;
using backends::Refusal;
using backends::Suppression;

using Key = unsigned long long;

constexpr int kTaken = 1024;  // keys at a time, a thread each
constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
constexpr int64_t kMostImages = 65535;  // of a grid's second dimension
constexpr Key kNone = 0;                // below the key of any score

// Workspace: how many keys each image has, and the keys [images, candidates].
uint64_t bytes_of_counts(int64_t images) { return workspace_aligned(static_cast<uint64_t>(images) * sizeof(unsigned)); }

Suppression plan_suppression(const OpDesc& desc) {
  Suppression plan = backends::suppression_of(desc);
  if (plan.candidates() > std::numeric_limits<int32_t>::max()) throw Refusal("is for fewer than 2^31 scores an image");
  if (plan.images > kMostImages) throw Refusal("is for up to 65535 images");
  plan.workspace_bytes =
      bytes_of_counts(plan.images) + static_cast<uint64_t>(plan.images * plan.candidates()) * sizeof(Key);
  return plan;
}

// Larger for a larger score, and among equal ones for a smaller place. Never kNone.
__device__ __forceinline__ Key key_of(float score, unsigned place) {
  const unsigned bits = __float_as_uint(score + 0.0F);  // one zero
  const unsigned ordered = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return Key{ordered} << 32U | (0xffffffffU - place);
}

__device__ __forceinline__ int64_t place_of(Key key) { return 0xffffffffU - static_cast<unsigned>(key); }

__global__ void collect(const float* scores, unsigned* counts, Key* keys, Suppression plan) {
  const int64_t n = blockIdx.y, candidates = plan.candidates();
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const float score = i < candidates ? scores[n * candidates + i] : 0.0F;
  const bool counts_too = i < candidates && score > plan.attrs.least_score;
  // One count a warp.
  const unsigned them = __ballot_sync(kEveryLane, counts_too);
  if (!counts_too) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first = __ffs(static_cast<int>(them)) - 1;
  unsigned base = 0;
  if (lane == first) base = atomicAdd(counts + n, static_cast<unsigned>(__popc(them)));
  base = __shfl_sync(them, base, first);
  const unsigned before = static_cast<unsigned>(__popc(them & ((1U << static_cast<unsigned>(lane)) - 1U)));
  keys[n * candidates + base + before] = key_of(score, static_cast<unsigned>(i));
}

struct Shared {
  Key keys[kTaken];
  unsigned digits[kDigits];
  unsigned alive[kTaken / kWarp];  // a bit a key
  unsigned taken;
  Key chosen;
  unsigned wanted;
};

// The largest key of which `wanted` keys below `bound` are no smaller. There are more than `wanted`.
__device__ Key least_of_largest(const Key* keys, unsigned count, Key bound, unsigned wanted, Shared& s) {
  Key prefix = 0;
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    const Key above = shift + kDigitBits == 64 ? Key{0} : ~Key{0} << static_cast<unsigned>(shift + kDigitBits);
    if (threadIdx.x < kDigits) s.digits[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
      const Key key = keys[i];
      if (key < bound && (key & above) == prefix)
        atomicAdd(&s.digits[key >> static_cast<unsigned>(shift) & (kDigits - 1)], 1U);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned left = wanted;
      int digit = kDigits - 1;
      while (digit > 0 && s.digits[digit] < left) left -= s.digits[digit--];
      s.chosen = prefix | static_cast<Key>(digit) << static_cast<unsigned>(shift);
      s.wanted = left;
    }
    __syncthreads();
    prefix = s.chosen;
    wanted = s.wanted;
    __syncthreads();
  }
  return prefix;
}

// Bitonic, the largest first (Batcher, 1968).
__device__ void sort(Key* keys) {
  const auto mine = static_cast<int>(threadIdx.x);
  for (int size = 2; size <= kTaken; size *= 2) {
    for (int reach = size / 2; reach > 0; reach /= 2) {
      __syncthreads();
      const int other = mine ^ reach;
      if (other <= mine) continue;
      const Key a = keys[mine], b = keys[other];
      const bool descending = (mine & size) == 0;
      if ((a < b) == descending) keys[mine] = b, keys[other] = a;
    }
  }
  __syncthreads();
}

// What a thread has of its key.
struct Candidate {
  Corners box;
  int64_t kind = 0;  // its class
  bool alive = false;
};

__device__ __forceinline__ bool covers(const Corners& kept, int64_t kind, const Candidate& own,
                                       const Suppression& plan) {
  return (plan.attrs.by_class == 0 || kind == own.kind) &&
         overlap_of(kept, own.box) > static_cast<double>(plan.attrs.overlap);
}

// The number of the first key that is left; -1: none is.
__device__ __forceinline__ int first_alive(const Candidate& own, Shared& s) {
  const unsigned them = __ballot_sync(kEveryLane, own.alive);
  if (threadIdx.x % kWarp == 0) s.alive[threadIdx.x / kWarp] = them;
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned word = s.alive[lane];
  const unsigned some = __ballot_sync(kEveryLane, word != 0);
  if (some == 0) return -1;
  const int which = __ffs(static_cast<int>(some)) - 1;
  return which * kWarp + __ffs(static_cast<int>(__shfl_sync(kEveryLane, word, which))) - 1;
}

__global__ void __launch_bounds__(kTaken) suppress(const float* boxes, const unsigned* counts, const Key* all_keys,
                                                   float* y, Suppression plan, const float* scores) {
  __shared__ Shared s;
  static_assert(kTaken / kWarp == kWarp, "a warp's lanes are the words of the bits");
  const int64_t n = blockIdx.x, candidates = plan.candidates();
  const float* const box = boxes + n * plan.boxes * 4;
  const float* const score = scores + n * candidates;
  const Key* const keys = all_keys + n * candidates;
  float* const out = y + n * plan.attrs.most * Suppression::kColumns;
  const unsigned count = counts[n];
  Key bound = ~Key{0};  // keys from here on are done
  unsigned left = count;
  int kept = 0;
  while (kept < plan.attrs.most && left > 0) {
    const Key least = left > kTaken ? least_of_largest(keys, count, bound, kTaken, s) : kNone;
    if (threadIdx.x == 0) s.taken = 0;
    s.keys[threadIdx.x] = kNone;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
      const Key key = keys[i];
      if (key < bound && key >= least) s.keys[atomicAdd(&s.taken, 1U)] = key;
    }
    __syncthreads();
    sort(s.keys);
    left -= s.taken;
    bound = least;
    const Key own_key = s.keys[threadIdx.x];
    Candidate own;
    if (own_key != kNone) {
      const int64_t place = place_of(own_key);
      own = {.box = Corners::of(box + place / plan.classes * 4), .kind = place % plan.classes, .alive = true};
    }
    for (int k = 0; k < kept && own.alive; ++k) {
      const float* const other = out + k * Suppression::kColumns;
      own.alive = !covers(Corners::of(other), static_cast<int64_t>(other[5]), own, plan);
    }
    for (; kept < plan.attrs.most; ++kept) {
      const int first = first_alive(own, s);
      if (first < 0) break;
      const int64_t place = place_of(s.keys[first]);
      const int64_t kind = place % plan.classes;
      const float* const corners = box + place / plan.classes * 4;
      if (threadIdx.x == 0) {
        float* const row = out + kept * Suppression::kColumns;
        for (int i = 0; i < 4; ++i) row[i] = corners[i];
        row[4] = score[place];
        row[5] = static_cast<float>(kind);
      }
      if (own.alive) {
        own.alive = static_cast<int>(threadIdx.x) != first && !covers(Corners::of(corners), kind, own, plan);
      }
      __syncthreads();  // all have read the bits
    }
    __syncthreads();  // of rows that other threads read, and of the keys
  }
  for (int64_t i = kept * Suppression::kColumns + threadIdx.x; i < plan.attrs.most * Suppression::kColumns;
       i += blockDim.x) {
    out[i] = i % Suppression::kColumns == 5 ? -1.0F : 0.0F;
  }
}

void run_suppression(const Suppression& plan, cudaStream_t stream, const OpArgs& args) {
  if (plan.images == 0) return;
  auto* const counts = args.workspace<unsigned>();
  auto* const keys = reinterpret_cast<Key*>(args.workspace<uint8_t>() + bytes_of_counts(plan.images));
  const auto* const scores = args.in<float>(1);
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(plan.images) * sizeof(unsigned), stream),
        "clearing counts");
  if (plan.candidates() > 0) {
    const Launch all{.grid = dim3(grid_size(plan.candidates(), cuda::kThreads), static_cast<unsigned>(plan.images)),
                     .block = dim3(cuda::kThreads)};
    launch(collect, all, stream, scores, counts, keys, plan);
  }
  launch(suppress, Launch{.grid = dim3(static_cast<unsigned>(plan.images)), .block = dim3(kTaken)}, stream,
         args.in<float>(0), counts, keys, args.out<float>(0), plan, scores);
}

}  // namespace

void add_suppression_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_NON_MAXIMUM_SUPPRESSION, "non_maximum_suppression", plan_suppression, run_suppression);
}

}  // namespace gpunn::cuda_tiled
