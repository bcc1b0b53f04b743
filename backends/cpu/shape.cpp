// PAD, SLICE, CONCAT and TRANSPOSE, all as the loops of COPY.
#include "common/shape.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <vector>

#include "add_op.hpp"
#include "copy.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct BoxPlan {
  CopyPlan copy;
  int64_t x_offset = 0;  // elements
  int64_t y_offset = 0;
};

BoxPlan plan_of(const Box& box) {
  return {.copy = plan_loops(box.loops), .x_offset = box.x_offset, .y_offset = box.y_offset};
}

void run_box(const BoxPlan& plan, const float* x, float* y) {
  if (plan.copy.loops.n != 0) run_loops(plan.copy, x + plan.x_offset, y + plan.y_offset);
}

BoxPlan plan_slice(const OpDesc& desc) { return plan_of(slice_of(desc)); }
BoxPlan plan_transpose(const OpDesc& desc) { return plan_of(transpose_of(desc)); }

void run_one(const BoxPlan& plan, const OpArgs& args) { run_box(plan, args.in<float>(0), args.out<float>(0)); }

struct ConcatPlan {
  std::vector<BoxPlan> parts;
};

ConcatPlan plan_concat(const OpDesc& desc) {
  ConcatPlan plan;
  for (const Box& part : concat_of(desc)) plan.parts.push_back(plan_of(part));
  return plan;
}

void run_concat(const ConcatPlan& plan, const OpArgs& args) {
  for (std::size_t i = 0; i < plan.parts.size(); ++i) run_box(plan.parts[i], args.in<float>(i), args.out<float>(0));
}

struct PadPlan {
  BoxPlan box;
  int64_t n = 0;  // elements of y
};

PadPlan plan_pad(const OpDesc& desc) {
  const Pad pad = pad_of(desc);
  return {.box = plan_of(pad.box), .n = pad.n};
}

// Zeros everywhere first: finding the few places that stay zero costs more than writing the others twice.
void run_pad(const PadPlan& plan, const OpArgs& args) {
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, 0.0F); });
  run_box(plan.box, args.in<float>(0), y);
}

}  // namespace

void add_shape_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_PAD, plan_pad, run_pad);
  add_op(device, GPUNN_OP_SLICE, plan_slice, run_one);
  add_op(device, GPUNN_OP_CONCAT, plan_concat, run_concat);
  add_op(device, GPUNN_OP_TRANSPOSE, plan_transpose, run_one);
}

}  // namespace gpunn::cpu
