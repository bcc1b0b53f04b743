// UNIFORM, NORMAL, PERMUTATION and DROPOUT, by the counter layout of <gpunn/random.h>.
//
// Here, and not in simd/, whatever rounds: this file is compiled without fused multiply-adds, so that the numbers are
// the same on every machine. NORMAL computes in f64 and rounds once, for the same reason.
#include "simd/random.hpp"

#include <gpunn/plugin.hpp>
#include <gpunn/random.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct DrawPlan {
  int64_t n = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
  float low = 0.0F;
  float high = 0.0F;
  const RandomKernels* kernels = nullptr;
};

// A draw is worth some ten plain operations.
constexpr int64_t kDrawGrain = kGrain / 4;

DrawPlan plan_draw(const OpDesc& desc, int32_t dtype) {
  require_tensors(desc, 1, 1, 1);
  const auto attrs = require_attrs<gpunn_random_attrs>(desc);
  const gpunn_tensor& y = desc.output(0);
  require_scalar(desc.input(0), GPUNN_I64, "counter");
  require_packed(y, dtype, "y");
  require(attrs.rank == y.rank, "y must have the rank that the attributes name");
  gpunn_tensor wanted = y;
  std::copy(attrs.dim, attrs.dim + attrs.rank, wanted.dim);
  require_same_shape(y, wanted, "y and the attributes");
  return {.n = plugin::element_count(y),
          .seed = attrs.seed,
          .stream = attrs.stream,
          .low = attrs.low,
          .high = attrs.high,
          .kernels = &GPUNN_SELECT_ISA(random_kernels)};
}

DrawPlan plan_numbers(const OpDesc& desc) {
  DrawPlan plan = plan_draw(desc, GPUNN_F32);
  require(std::isfinite(plan.low) && std::isfinite(plan.high), "low and high must be finite");
  return plan;
}

// Calls body(begin, n, words) over pieces of the tensor that is drawn at the counter's value; begin is a multiple of 4.
template <class Body>
void for_words(const RandomKernels& kernels, uint64_t seed, uint64_t stream, int64_t counter, int64_t n, int64_t grain,
               const Body& body) {
  const uint64_t first_block = gpunn_random_block(counter, n);
  parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kWordsAtOnce];
    for (int64_t i = begin; i < end; i += kWordsAtOnce) {
      const int64_t count = std::min(kWordsAtOnce, end - i);
      // To the end of its last block, since NORMAL takes words in pairs.
      kernels.words(seed, stream, first_block + static_cast<uint64_t>(i / 4), words, (count + 3) / 4 * 4);
      body(i, count, words);
    }
  });
}

void run_uniform(const DrawPlan& plan, const OpArgs& args) {
  auto* y = args.out<float>(0);
  const float low = plan.low;
  const float range = plan.high - plan.low;
  for_words(*plan.kernels, plan.seed, plan.stream, *args.in<int64_t>(0), plan.n, kDrawGrain,
            [&](int64_t begin, int64_t n, const uint32_t* words) {
              for (int64_t i = 0; i < n; ++i) y[begin + i] = low + gpunn_random_unit(words[i]) * range;
            });
}

void run_normal(const DrawPlan& plan, const OpArgs& args) {
  auto* y = args.out<float>(0);
  const auto mean = static_cast<double>(plan.low);
  const auto deviation = static_cast<double>(plan.high);
  for_words(*plan.kernels, plan.seed, plan.stream, *args.in<int64_t>(0), plan.n, kDrawGrain / 8,
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

DrawPlan plan_permutation(const OpDesc& desc) {
  const DrawPlan plan = plan_draw(desc, GPUNN_I32);
  require(desc.output(0).rank == 1, "y must be [n]");
  require(plan.n <= std::numeric_limits<int32_t>::max(), "y must have fewer than 2^31 elements");
  return plan;
}

void run_permutation(const DrawPlan& plan, const OpArgs& args) {
  auto* y = args.out<int32_t>(0);
  const int64_t counter = *args.in<int64_t>(0);
  parallel_ranges(plan.n, 512, [&](int64_t begin, int64_t end) {
    plan.kernels->permute(plan.seed, plan.stream, counter, static_cast<uint32_t>(plan.n), static_cast<uint32_t>(begin),
                          y + begin, end - begin);
  });
}

struct DropoutPlan {
  int64_t n = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint32_t threshold = 0;
  float factor = 0.0F;
  const RandomKernels* kernels = nullptr;
};

DropoutPlan plan_dropout(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_dropout_attrs>(desc);
  require(attrs.p >= 0.0F && attrs.p < 1.0F, "p must be 0 to below 1");
  require_packed(desc.input(0), GPUNN_F32, "x");
  require_packed(desc.output(0), GPUNN_F32, "y");
  require_same_shape(desc.input(0), desc.output(0), "x and y");
  require_scalar(desc.input(1), GPUNN_I64, "counter");
  return {.n = plugin::element_count(desc.input(0)),
          .seed = attrs.seed,
          .stream = attrs.stream,
          .threshold = gpunn_dropout_threshold(attrs.p),
          .factor = 1.0F / (1.0F - attrs.p),
          .kernels = &GPUNN_SELECT_ISA(random_kernels)};
}

void run_dropout(const DropoutPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  for_words(*plan.kernels, plan.seed, plan.stream, *args.in<int64_t>(1), plan.n, kDrawGrain,
            [&](int64_t begin, int64_t n, const uint32_t* words) {
              plan.kernels->drop(x + begin, words, plan.threshold, plan.factor, y + begin, n);
            });
}

}  // namespace

void add_random_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_RANDOM_UNIFORM, plan_numbers, run_uniform);
  add_op(device, GPUNN_OP_RANDOM_NORMAL, plan_numbers, run_normal);
  add_op(device, GPUNN_OP_RANDOM_PERMUTATION, plan_permutation, run_permutation);
  add_op(device, GPUNN_OP_DROPOUT, plan_dropout, run_dropout);
}

}  // namespace gpunn::cpu
