// UNIFORM, NORMAL, PERMUTATION and DROPOUT, by the counter layout of <gpunn/random.h>.
//
// Here, and not in simd/, whatever rounds: this file is compiled without fused multiply-adds, so that the numbers are
// the same on every machine. NORMAL computes in f64 and rounds once, for the same reason.
#include "simd/random.hpp"

#include <gpunn/kernel.hpp>
#include <gpunn/random.h>

#include <cmath>
#include <numbers>
#include <type_traits>

#include "add_op.hpp"
#include "common/random.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

const RandomKernels& simd_random() { return GPUNN_SELECT_ISA(random_kernels); }

// A draw is worth some ten plain operations.
constexpr int64_t kDrawGrain = kGrain / 4;

// Calls body(begin, n, words) over pieces of the tensor that is drawn at the counter's value; begin is a multiple of 4.
template <class Body>
void for_words(uint64_t seed, uint64_t stream, int64_t counter, int64_t n, int64_t grain, const Body& body) {
  const uint64_t first_block = gpunn_random_block(counter, n);
  parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kWordsAtOnce];
    for (int64_t i = begin; i < end; i += kWordsAtOnce) {
      const int64_t count = std::min(kWordsAtOnce, end - i);
      // To the end of its last block, since NORMAL takes words in pairs.
      simd_random().words(seed, stream, first_block + static_cast<uint64_t>(i / 4), words, (count + 3) / 4 * 4);
      body(i, count, words);
    }
  });
}

void run_uniform(const Draw& plan, const OpArgs& args) {
  auto* y = args.out<float>(0);
  const float low = plan.low;
  const float range = plan.high - plan.low;
  for_words(plan.seed, plan.stream, *args.in<int64_t>(0), plan.n, kDrawGrain,
            [&](int64_t begin, int64_t n, const uint32_t* words) {
              for (int64_t i = 0; i < n; ++i) y[begin + i] = low + gpunn_random_unit(words[i]) * range;
            });
}

void run_normal(const Draw& plan, const OpArgs& args) {
  auto* y = args.out<float>(0);
  const auto mean = static_cast<double>(plan.low);
  const auto deviation = static_cast<double>(plan.high);
  for_words(plan.seed, plan.stream, *args.in<int64_t>(0), plan.n, kDrawGrain / 8,
            [&](int64_t begin, int64_t n, const uint32_t* words) {
              for (int64_t i = 0; i < n; i += 2) {
                const auto u1 = static_cast<double>(gpunn_random_positive(words[i]));
                const auto u2 = static_cast<double>(gpunn_random_unit(words[i + 1]));
                const double radius = deviation * std::sqrt(-2.0 * std::log(u1));
                const double angle = 2.0 * std::numbers::pi * u2;
                y[begin + i] = static_cast<float>(mean + radius * std::cos(angle));
                if (i + 1 < n) y[begin + i + 1] = static_cast<float>(mean + radius * std::sin(angle));
              }
            });
}

void run_permutation(const Draw& plan, const OpArgs& args) {
  auto* y = args.out<int32_t>(0);
  const int64_t counter = *args.in<int64_t>(0);
  parallel_ranges(plan.n, 512, [&](int64_t begin, int64_t end) {
    simd_random().permute(plan.seed, plan.stream, counter, static_cast<uint32_t>(plan.n), static_cast<uint32_t>(begin),
                          y + begin, end - begin);
  });
}

template <class T>
void run_dropout(const Dropout& plan, const OpArgs& args) {
  const auto* x = args.in<T>(0);
  auto* y = args.out<T>(0);
  for_words(plan.seed, plan.stream, *args.in<int64_t>(1), plan.n, kDrawGrain,
            [&](int64_t begin, int64_t n, const uint32_t* words) {
              if constexpr (std::is_same_v<T, float>) {
                simd_random().drop(x + begin, words, plan.threshold, plan.factor, y + begin, n);
              } else {
                float wide[kWordsAtOnce];
                widen(x + begin, 1, wide, n);
                simd_random().drop(wide, words, plan.threshold, plan.factor, wide, n);
                narrow(wide, y + begin, n);
              }
            });
}

}  // namespace

void add_random_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_RANDOM_UNIFORM, draw_of, run_uniform);
  add_op(device, GPUNN_OP_RANDOM_NORMAL, draw_of, run_normal);
  add_op(device, GPUNN_OP_RANDOM_PERMUTATION, draw_of, run_permutation);
  serve(device, GPUNN_OP_DROPOUT, dropout_of, each_floating([](auto x) { return run_dropout<decltype(x)>; }),
        Dtypes::floating);
}

}  // namespace gpunn::cpu
