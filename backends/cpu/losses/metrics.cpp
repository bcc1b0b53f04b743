// METRICS_ACCUMULATE: on the calling thread, row by row, so that the f64 sums have one order.
#include "common/metrics.hpp"

#include <gpunn/kernel.hpp>

#include <cmath>

#include "add_op.hpp"
#include "kernels.hpp"

namespace gpunn::cpu {
namespace {

int64_t rank_of(const float* x, int64_t label, int64_t classes) {
  const float own = x[label];
  int64_t rank = 0;
  bool nan = false;
  for (int64_t c = 0; c < classes; ++c) {
    nan = nan || std::isnan(x[c]);
    rank += x[c] > own || (x[c] == own && c < label) ? 1 : 0;
  }
  return nan ? classes : rank;
}

void run_metrics(const Metrics& plan, const OpArgs& args) {
  const auto* loss = args.in<float>(0);
  const int64_t count = std::clamp<int64_t>(*args.in<int32_t>(1), 0, plan.rows);
  auto* totals = args.out<double>(0);
  double sum = 0.0;
  int64_t first = 0;
  int64_t top5 = 0;
  for (int64_t row = 0; row < count; ++row) sum += static_cast<double>(loss[row]);
  if (plan.classes > 0) {
    const auto* x = args.in<float>(3);
    const auto* label = args.in<int32_t>(4);
    for (int64_t row = 0; row < count; ++row) {
      // A label that names no class has no rank and counts nowhere.
      if (label[row] < 0 || label[row] >= plan.classes) continue;
      const int64_t rank = rank_of(x + row * plan.classes, label[row], plan.classes);
      first += rank == 0 ? 1 : 0;
      top5 += rank < 5 ? 1 : 0;
    }
  }
  totals[0] += sum;
  totals[1] += static_cast<double>(first);
  totals[2] += static_cast<double>(top5);
  totals[3] += static_cast<double>(count);
}

}  // namespace

void add_metrics_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_METRICS_ACCUMULATE, metrics_of, run_metrics);
}

}  // namespace gpunn::cpu
