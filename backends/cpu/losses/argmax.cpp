// ARGMAX and CONFUSION_ACCUMULATE. Each thread counts in a matrix of its own; the caller adds them up. Matrices of many
// classes are too large for that: there the threads add to the result itself, one atomic addition at a time. The
// counts are integers, so their order does not matter.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "add_op.hpp"
#include "kernels.hpp"
#include "losses/class_scores.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kMostOwnClasses = 128;

struct ArgmaxPlan {
  ClassScores shape{};
  RowBlocks blocks{};
  const ClassScoresKernels* kernels = nullptr;
  uint64_t workspace_bytes = blocks.workspace_bytes();

  int64_t cells() const { return shape.classes * shape.classes; }
  bool own_matrices() const { return blocks.strips_from > 0; }
};

ArgmaxPlan plan_argmax(const OpDesc& desc, int threads) {
  const ClassScores shape = argmax_of(desc);
  return {.shape = shape,
          .blocks = blocks_of(shape, desc.input(0).dtype, threads),
          .kernels = &GPUNN_SELECT_ISA(class_scores_kernels)};
}

ArgmaxPlan plan_confusion(const OpDesc& desc, int threads) {
  ArgmaxPlan plan = plan_argmax(desc, threads);
  if (plan.shape.classes <= kMostOwnClasses) {
    plan.blocks.strips_from = static_cast<uint64_t>(threads * plan.cells()) * sizeof(int64_t);
  }
  plan.workspace_bytes = plan.blocks.workspace_bytes();
  return plan;
}

// Calls body(position, classes, largest scores, count, thread) for the first `positions` positions, some at a time.
template <class T, class Body>
void for_each_largest(const ArgmaxPlan& plan, const OpArgs& args, int64_t positions, const Body& body) {
  const ClassScores& shape = plan.shape;
  if (shape.inner != 1) {
    for_each_strip(shape, positions, plan.blocks.threads, [&](const Strip& strip, int thread) {
      float best[kPositionStrip], wide[kPositionStrip];
      int32_t index[kPositionStrip] = {};
      const T* x = args.in<T>(0) + strip.first;
      std::copy_n(as_wide(x, strip.count, wide), strip.count, best);
      for (int64_t c = 1; c < shape.classes; ++c) {
        plan.kernels->take_larger(as_wide(x + c * shape.inner, strip.count, wide), static_cast<int32_t>(c), best, index,
                                  strip.count);
      }
      body(strip.position, index, best, strip.count, thread);
    });
    return;
  }
  RowBlocks blocks = plan.blocks;
  blocks.rows = positions;
  blocks.for_each_by_thread(args, [&](int64_t row, int64_t rows, float* strip, int thread) {
    float best[kRowBlock];
    int32_t index[kRowBlock];
    const float* x = as_wide(args.in<T>(0) + row * shape.classes, rows * shape.classes, strip);
    for (int64_t i = 0; i < rows; ++i) {
      index[i] = plan.kernels->first_largest(x + i * shape.classes, shape.classes);
      best[i] = x[i * shape.classes + index[i]];
    }
    body(row, index, best, rows, thread);
  });
}

template <class T>
void run_argmax(const ArgmaxPlan& plan, const OpArgs& args) {
  auto* y = args.out<int32_t>(0);
  for_each_largest<T>(plan, args, plan.shape.positions(),
                      [&](int64_t position, const int32_t* index, const float* /*best*/, int64_t count,
                          int /*thread*/) { std::copy_n(index, count, y + position); });
}

template <class T>
void run_confusion(const ArgmaxPlan& plan, const OpArgs& args) {
  const auto* label = args.in<int32_t>(1);
  const int64_t positions = plan.shape.counted(*args.in<int32_t>(2));
  auto* confusion = args.out<int64_t>(0);
  auto* own = plan.own_matrices() ? args.workspace<int64_t>() : nullptr;
  const int threads = plan.blocks.threads;
  if (own != nullptr) std::fill(own, own + threads * plan.cells(), 0);
  for_each_largest<T>(plan, args, positions,
                      [&](int64_t position, const int32_t* index, const float* best, int64_t count, int thread) {
                        for (int64_t i = 0; i < count; ++i) {
                          const int64_t actual = label[position + i];
                          if (actual < 0 || actual >= plan.shape.classes || std::isnan(best[i])) continue;
                          const int64_t cell = actual * plan.shape.classes + index[i];
                          if (own != nullptr) {
                            ++own[thread * plan.cells() + cell];
                          } else {
                            std::atomic_ref<int64_t>(confusion[cell]).fetch_add(1, std::memory_order_relaxed);
                          }
                        }
                      });
  for (int thread = 0; own != nullptr && thread < threads; ++thread) {
    for (int64_t cell = 0; cell < plan.cells(); ++cell) confusion[cell] += own[thread * plan.cells() + cell];
  }
}

}  // namespace

void add_argmax_kernels(plugin::Device& device) {
  add_floating_op(
      device, GPUNN_OP_ARGMAX, plan_argmax, [](auto x) { return run_argmax<decltype(x)>; }, Layouts::channels_last_too);
  add_floating_op(
      device, GPUNN_OP_CONFUSION_ACCUMULATE, plan_confusion, [](auto x) { return run_confusion<decltype(x)>; },
      Layouts::channels_last_too);
}

}  // namespace gpunn::cpu
