// PAD, SLICE, CONCAT and TRANSPOSE, all as the loops of COPY, and QUANTIZED_CONCAT as runs of bytes.
#include "common/shape.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "add_op.hpp"
#include "copy.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

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

// x and y are whole tensors, of any type.
void run_box(const BoxPlan& plan, const char* x, char* y) {
  if (plan.copy.loops.n == 0) return;
  run_loops(plan.copy, x + plan.x_offset * plan.copy.x_size, y + plan.y_offset * plan.copy.y_size);
}

BoxPlan plan_slice(const OpDesc& desc) { return plan_of(slice_of(desc)); }
BoxPlan plan_transpose(const OpDesc& desc) { return plan_of(transpose_of(desc)); }

void run_one(const BoxPlan& plan, const OpArgs& args) { run_box(plan, args.in<char>(0), args.out<char>(0)); }

struct ConcatPlan {
  std::vector<BoxPlan> parts;
};

ConcatPlan plan_concat(const OpDesc& desc) {
  ConcatPlan plan;
  for (const Box& part : concat_of(desc)) plan.parts.push_back(plan_of(part));
  return plan;
}

void run_concat(const ConcatPlan& plan, const OpArgs& args) {
  for (std::size_t i = 0; i < plan.parts.size(); ++i) run_box(plan.parts[i], args.in<char>(i), args.out<char>(0));
}

void run_byte_concat(const ByteConcat& concat, const OpArgs& args) {
  if (concat.row == 0) return;
  auto* const y = args.out<uint8_t>(0);
  parallel_ranges(concat.rows, rows_per_task(concat.row), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      uint8_t* to = y + row * concat.row;
      for (std::size_t i = 0; i < concat.runs.size(); ++i) {
        const int64_t run = concat.runs[i];
        std::memcpy(to, args.in<uint8_t>(i) + row * run, static_cast<std::size_t>(run));
        to += run;
      }
    }
  });
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
  auto* y = args.out<char>(0);
  const int64_t size = plan.box.copy.y_size;
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) { std::fill(y + begin * size, y + end * size, 0); });
  run_box(plan.box, args.in<char>(0), y);
}

}  // namespace

void add_shape_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_PAD, plan_pad, run_pad, Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_SLICE, plan_slice, run_one, Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_CONCAT, plan_concat, run_concat, Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_QUANTIZED_CONCAT, byte_concat_of, run_byte_concat, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_TRANSPOSE, plan_transpose, run_one, Dtypes::floating);
}

}  // namespace gpunn::cpu
