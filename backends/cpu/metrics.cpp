// METRICS_ACCUMULATE: on the calling thread, row by row, so that the f64 sums have one order.
#include <gpunn/plugin.hpp>

#include <cmath>

#include "add_op.hpp"
#include "kernels.hpp"

namespace gpunn::cpu {
namespace {

struct MetricsPlan {
  int64_t rows = 0;
  int64_t classes = 0;  // 0: loss alone
};

MetricsPlan plan_metrics(const OpDesc& desc) {
  require_tensors(desc, 3, 5, 1);
  require(desc.inputs() != 4, "takes x and label together");
  const gpunn_tensor& loss = desc.input(0);
  require_packed(loss, GPUNN_F32, "loss");
  require(loss.rank == 1, "loss must be [N]");
  require_scalar(desc.input(1), GPUNN_I32, "count");
  for (const gpunn_tensor* totals : {&desc.input(2), &desc.output(0)}) {
    require_packed(*totals, GPUNN_F64, "totals");
    require_shape(*totals, {4}, "totals");
  }
  MetricsPlan plan;
  plan.rows = loss.dim[0];
  if (desc.inputs() == 5) {
    const gpunn_tensor& x = desc.input(3);
    require_packed(x, GPUNN_F32, "x");
    require(x.rank == 2 && x.dim[0] == plan.rows && x.dim[1] >= 1, "x must be [N,C]");
    require_packed(desc.input(4), GPUNN_I32, "label");
    require_shape(desc.input(4), {plan.rows}, "label");
    plan.classes = x.dim[1];
  }
  return plan;
}

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

void run_metrics(const MetricsPlan& plan, const OpArgs& args) {
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
  add_op(device, GPUNN_OP_METRICS_ACCUMULATE, plan_metrics, run_metrics);
}

}  // namespace gpunn::cpu
