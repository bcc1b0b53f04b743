// BIAS_ADD, BIAS_BACKWARD and BIAS_ACTIVATION_BACKWARD.
//
// Sums over rows are taken in parts of a fixed number of rows, which are added in order: neither the parts nor their
// order know of the threads.
#include "simd/bias.hpp"

#include <gpunn/kernel.hpp>

#include <cstring>

#include "add_op.hpp"
#include "common/bias.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// At most this many partial sums a channel, so that adding them stays a small share of the work.
constexpr int64_t kMostBiasParts = 64;

struct BiasPlan {
  BiasShape shape{};
  int64_t rows_per_part = 0;
  int64_t parts = 0;
  bool relu = false;
  const BiasKernels* kernels = nullptr;
  uint64_t workspace_bytes = 0;
};

BiasPlan make_plan(const Bias& bias) {
  BiasPlan plan;
  plan.shape = {.rows = bias.rows, .channels = bias.channels, .size = bias.size};
  plan.relu = bias.relu;
  const int64_t row = plan.shape.channels * plan.shape.size;
  plan.rows_per_part = std::max(rows_per_task(row), (plan.shape.rows + kMostBiasParts - 1) / kMostBiasParts);
  plan.parts = (plan.shape.rows + plan.rows_per_part - 1) / plan.rows_per_part;
  plan.kernels = &GPUNN_SELECT_ISA(bias_kernels);
  return plan;
}

BiasShape part_shape(const BiasPlan& plan, int64_t part) {
  BiasShape shape = plan.shape;
  shape.rows = std::min(plan.rows_per_part, plan.shape.rows - part * plan.rows_per_part);
  return shape;
}

int64_t part_offset(const BiasPlan& plan, int64_t part) {
  return part * plan.rows_per_part * plan.shape.channels * plan.shape.size;
}

BiasPlan plan_bias_add(const OpDesc& desc) { return make_plan(bias_add_of(desc)); }

void run_add(const BiasPlan& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *bias = args.in<float>(1);
  auto* y = args.out<float>(0);
  parallel_for(plan.parts, [&](int64_t part) {
    const int64_t offset = part_offset(plan, part);
    plan.kernels->add(x + offset, bias, y + offset, part_shape(plan, part));
  });
}

BiasPlan with_partial_sums(BiasPlan plan) {
  if (plan.parts > 1) {
    plan.workspace_bytes = static_cast<uint64_t>(plan.parts * plan.shape.channels) * sizeof(float);
  }
  return plan;
}

BiasPlan plan_bias_backward(const OpDesc& desc) { return with_partial_sums(make_plan(bias_backward_of(desc))); }

BiasPlan plan_activation_backward(const OpDesc& desc) {
  return with_partial_sums(make_plan(bias_activation_backward_of(desc)));
}

// db = the sum over the parts of body(part, sums of that part).
template <class Body>
void sum_parts(const BiasPlan& plan, const OpArgs& args, float* db, const Body& body) {
  const int64_t channels = plan.shape.channels;
  if (plan.parts == 0) {
    std::fill(db, db + channels, 0.0F);
    return;
  }
  auto* sums = plan.parts > 1 ? args.workspace<float>() : db;
  parallel_for(plan.parts, [&](int64_t part) { body(part, sums + part * channels); });
  if (plan.parts == 1) return;
  std::copy(sums, sums + channels, db);
  for (int64_t part = 1; part < plan.parts; ++part) {
    const float* more = sums + part * channels;
    for (int64_t c = 0; c < channels; ++c) db[c] += more[c];
  }
}

void run_backward(const BiasPlan& plan, const OpArgs& args) {
  const auto* dy = args.in<float>(0);
  sum_parts(plan, args, args.out<float>(0), [&](int64_t part, float* sums) {
    plan.kernels->sum(dy + part_offset(plan, part), sums, part_shape(plan, part));
  });
}

void run_activation_backward(const BiasPlan& plan, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *y = args.in<float>(1);
  auto* dx = args.out<float>(0);
  sum_parts(plan, args, args.out<float>(1), [&](int64_t part, float* sums) {
    const int64_t offset = part_offset(plan, part);
    const BiasShape shape = part_shape(plan, part);
    if (plan.relu) {
      plan.kernels->relu_backward(dy + offset, y + offset, dx + offset, sums, shape);
      return;
    }
    plan.kernels->sum(dy + offset, sums, shape);
    const auto bytes = static_cast<std::size_t>(shape.rows * shape.channels * shape.size) * sizeof(float);
    if (dx != dy && bytes != 0) std::memcpy(dx + offset, dy + offset, bytes);
  });
}

}  // namespace

void add_bias_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_BIAS_ADD, plan_bias_add, run_add, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BIAS_BACKWARD, plan_bias_backward, run_backward, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BIAS_ACTIVATION_BACKWARD, plan_activation_backward, run_activation_backward, Dtypes::f32,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cpu
