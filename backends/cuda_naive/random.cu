// UNIFORM, NORMAL, PERMUTATION and DROPOUT, by the counter layout of <gpunn/random.h>.
//
// Philox suits GPUs: the words of a block follow from the block's number. A thread therefore draws its words without
// any state in memory and independently of the other threads. A thread draws one block of four words and makes four
// outputs of them. The generator is the same as cuRAND's.
//
// A warp of UNIFORM or NORMAL writes 512 neighbouring bytes in four accesses of every fourth number: each access
// touches all 512 bytes to write 128. The caches merge these accesses before they reach memory. The next version would
// write a float4 instead, as DROPOUT does.
//
// The numbers equal those of every other backend to the bit if the compiler has no choice of rounding. UNIFORM uses
// __fmul_rn and __fadd_rn, which the compiler never fuses to one multiply-add with one rounding, unlike * and +.
// NORMAL's logarithm, sine and cosine differ between libraries in the last bits. They are computed in f64 and rounded
// once to f32, so such a difference shows in about one of 10^8 numbers.
#include <gpunn/random.h>

#include <numbers>

#include <curand_philox4x32_x.h>

#include "common/random.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// The words that curand4 gives after curand_init(seed, stream, 4 * block). Those two keep a state from which the next
// words can be drawn, and curand_init, to fill it, draws one block too many; so the function beneath them is called.
__device__ gpunn_random_words draw(uint64_t seed, uint64_t stream, uint64_t block) {
  const uint4 words =
      curand_Philox4x32_10(make_uint4(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                      static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)),
                           make_uint2(static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)));
  return {{words.x, words.y, words.z, words.w}};
}

// The elements that one block of words is for.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T of[4];
};

int64_t blocks_of(int64_t n) { return (n + 3) / 4; }

// Calls body(i, words, k) for each element i = 4 * thread_index() + k of a tensor of n that is drawn at `counter`.
template <class Body>
__device__ void for_elements(uint64_t seed, uint64_t stream, int64_t counter, int64_t n, const Body& body) {
  const int64_t block = thread_index();
  if (4 * block >= n) return;
  const gpunn_random_words words = draw(seed, stream, gpunn_random_block(counter, n) + static_cast<uint64_t>(block));
  for (int k = 0; k < 4 && 4 * block + k < n; ++k) body(4 * block + k, words, k);
}

__global__ void uniform(Draw plan, const int64_t* counter, float* y) {
  const float range = __fsub_rn(plan.high, plan.low);
  for_elements(plan.seed, plan.stream, *counter, plan.n, [&](int64_t i, const gpunn_random_words& words, int k) {
    y[i] = __fadd_rn(plan.low, __fmul_rn(gpunn_random_unit(words.word[k]), range));
  });
}

// The elements 0 and 1 of a block are a pair of normal numbers made of the words 0 and 1, as are 2 and 3. Either
// element computes the pair's radius and angle again: plain, and twice the work of the next version.
__global__ void normal(Draw plan, const int64_t* counter, float* y) {
  for_elements(plan.seed, plan.stream, *counter, plan.n, [&](int64_t i, const gpunn_random_words& words, int k) {
    const int pair = k & ~1;
    const auto u1 = static_cast<double>(gpunn_random_positive(words.word[pair]));
    const auto u2 = static_cast<double>(gpunn_random_unit(words.word[pair + 1]));
    const double radius = static_cast<double>(plan.high) * sqrt(-2.0 * log(u1));
    const double angle = 2.0 * std::numbers::pi * u2;
    const double z = k == pair ? cos(angle) : sin(angle);
    y[i] = static_cast<float>(__dadd_rn(static_cast<double>(plan.low), __dmul_rn(radius, z)));
  });
}

// A thread has the four elements of a block. It loads all of them before it draws the words, so that the memory works
// while the thread computes, and moves them in one access where `packed` says that all blocks are aligned to their
// size.
template <class T>
__global__ void dropout(Dropout plan, const T* x, const int64_t* counter, T* y, bool packed) {
  const int64_t block = thread_index();
  const int64_t first = 4 * block;
  if (first >= plan.n) return;
  const bool whole = packed && first + 4 <= plan.n;
  Four<T> four;
  if (whole) {
    four = *reinterpret_cast<const Four<T>*>(x + first);
  } else {
    for (int k = 0; k < 4 && first + k < plan.n; ++k) four.of[k] = x[first + k];
  }
  const gpunn_random_words words =
      draw(plan.seed, plan.stream, gpunn_random_block(*counter, plan.n) + static_cast<uint64_t>(block));
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const bool dropped = words.word[k] >> 8 < plan.threshold;
    four.of[k] = static_cast<T>(dropped ? 0.0F : plan.factor * static_cast<float>(four.of[k]));
  }
  if (whole) {
    *reinterpret_cast<Four<T>*>(y + first) = four;
  } else {
    for (int k = 0; k < 4 && first + k < plan.n; ++k) y[first + k] = four.of[k];
  }
}

// A thread an element: the permutation is a function of the position, so no thread needs another's result. How often
// the walk goes round differs, though, and a warp takes as long as its slowest thread.
__global__ void permutation(Draw plan, const int64_t* counter, int32_t* y) {
  const int64_t i = thread_index();
  if (i >= plan.n) return;
  y[i] = static_cast<int32_t>(
      gpunn_random_permute(plan.seed, plan.stream, *counter, static_cast<uint32_t>(plan.n), static_cast<uint32_t>(i)));
}

void run_uniform(const Draw& plan, cudaStream_t stream, const OpArgs& args) {
  launch(uniform, thread_each(blocks_of(plan.n)), stream, plan, args.in<int64_t>(0), args.out<float>(0));
}

void run_normal(const Draw& plan, cudaStream_t stream, const OpArgs& args) {
  launch(normal, thread_each(blocks_of(plan.n)), stream, plan, args.in<int64_t>(0), args.out<float>(0));
}

void run_permutation(const Draw& plan, cudaStream_t stream, const OpArgs& args) {
  launch(permutation, thread_each(plan.n), stream, plan, args.in<int64_t>(0), args.out<int32_t>(0));
}

template <class T>
void run_dropout(const Dropout& plan, cudaStream_t stream, const OpArgs& args) {
  const auto* x = args.in<T>(0);
  auto* y = args.out<T>(0);
  const bool packed = are_aligned({x, y}, sizeof(Four<T>));
  launch(dropout<T>, thread_each(blocks_of(plan.n)), stream, plan, x, args.in<int64_t>(1), y, packed);
}

}  // namespace

void add_random_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_RANDOM_UNIFORM, "uniform", draw_of, run_uniform);
  add_op(device, GPUNN_OP_RANDOM_NORMAL, "normal", draw_of, run_normal);
  add_op(device, GPUNN_OP_RANDOM_PERMUTATION, "permutation", draw_of, run_permutation);
  add_op(device, GPUNN_OP_DROPOUT, "dropout", dropout_of,
         each_floating([](auto x) { return run_dropout<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
