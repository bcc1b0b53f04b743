// REDUCE over any axes, MEAN_ROWS and its backward, NORM.
//
// REDUCE merges neighbouring dimensions of one kind, which leaves kept and reduced ones in turn. Where the innermost is
// reduced, an output is the sum of runs of neighbouring numbers; where it is kept, a block of neighbouring outputs is
// the sum of rows. The reduced range is cut into parts by the shape alone; parts are combined in order, so that the
// result does not depend on the number of threads.
#include "simd/reduction.hpp"

#include <gpunn/kernel.hpp>

#include <cmath>
#include <limits>

#include "add_op.hpp"
#include "common/reduction.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// Where the element of that index lies.
int64_t offset(const Nest& nest, int64_t index) {
  int64_t sum = 0;
  for (int32_t i = nest.rank - 1; i >= 0; --i) {
    sum += index % nest.dim[i] * nest.stride[i];
    index /= nest.dim[i];
  }
  return sum;
}

// Takes the innermost dimension off and returns its size.
int64_t take_innermost(Nest& nest) { return nest.dim[--nest.rank]; }

struct ReducePlan {
  int32_t kind = GPUNN_REDUCE_SUM;
  Nest kept;          // without the innermost dimension where that is kept
  Nest reduced;       // without the innermost dimension where that is reduced
  int64_t run = 1;    // the innermost dimension's size, if reduced
  int64_t width = 0;  // the innermost dimension's size, if kept; 0: it is reduced
  int64_t block = 1;  // neighbouring outputs of a task
  int64_t outputs = 0;
  int64_t terms = 0;  // of an output
  int64_t part = 0;   // terms of a task
  int64_t parts = 0;
  const ReductionKernels* kernels = nullptr;
  uint64_t workspace_bytes = 0;
};

// Enough tasks for a large team; with fewer outputs the terms are cut as well.
constexpr int64_t kManyTasks = 64;
constexpr int64_t kBlockWidth = 256;

ReducePlan plan_reduce(const OpDesc& desc) {
  const Reduce reduce = reduce_of(desc);
  ReducePlan plan;
  plan.kind = reduce.kind;
  plan.kept = reduce.kept;
  plan.reduced = reduce.reduced;
  if (reduce.innermost_is_reduced) {
    plan.run = take_innermost(plan.reduced);
  } else if (plan.kept.rank > 0) {
    plan.width = take_innermost(plan.kept);
  }
  plan.outputs = reduce.outputs;
  plan.terms = reduce.terms;
  plan.block = plan.width > 0 ? std::min(plan.width, kBlockWidth) : 1;
  const int64_t blocks = plan.outputs / std::max<int64_t>(1, plan.block);
  plan.part = blocks < kManyTasks ? rows_per_task(plan.block) : std::max<int64_t>(1, plan.terms);
  plan.parts = std::max<int64_t>(1, (plan.terms + plan.part - 1) / plan.part);
  plan.kernels = &GPUNN_SELECT_ISA(reduction_kernels);
  if (plan.parts > 1) plan.workspace_bytes = static_cast<uint64_t>(plan.parts * plan.outputs) * sizeof(float);
  return plan;
}

float larger(float a, float b) {
  if (std::isnan(a)) return a;
  return b > a || std::isnan(b) ? b : a;
}

// Terms [begin, end) of one output, whose terms start at x.
float reduce_runs(const ReducePlan& plan, const float* x, int64_t begin, int64_t end) {
  const bool max = plan.kind == GPUNN_REDUCE_MAX;
  float total = max ? -std::numeric_limits<float>::infinity() : 0.0F;
  while (begin < end) {
    const int64_t row = begin / plan.run;
    const int64_t first = begin % plan.run;
    const int64_t n = std::min(end - begin, plan.run - first);
    const float* from = x + offset(plan.reduced, row) + first;
    total = max ? larger(total, plan.kernels->max(from, n)) : total + plan.kernels->sum(from, n);
    begin += n;
  }
  return total;
}

// Terms [begin, end) of `width` neighbouring outputs, whose terms start at x.
void reduce_rows(const ReducePlan& plan, const float* x, int64_t begin, int64_t end, float* y, int64_t width) {
  constexpr int64_t kRowsAtOnce = 512;  // keeps the rounding error of long sums down
  const bool max = plan.kind == GPUNN_REDUCE_MAX;
  const float nothing = max ? -std::numeric_limits<float>::infinity() : 0.0F;
  std::fill(y, y + width, nothing);
  const int64_t inner = plan.reduced.rank > 0 ? plan.reduced.dim[plan.reduced.rank - 1] : 1;
  const int64_t stride = plan.reduced.rank > 0 ? plan.reduced.stride[plan.reduced.rank - 1] : 0;
  float totals[kBlockWidth];
  while (begin < end) {
    const int64_t rows = std::min({end - begin, inner - begin % inner, kRowsAtOnce});
    const float* from = x + offset(plan.reduced, begin);
    if (max) {
      plan.kernels->max_rows(from, stride, rows, y, width);
    } else {
      std::fill(totals, totals + width, 0.0F);
      plan.kernels->add_rows(from, stride, rows, totals, width);
      for (int64_t i = 0; i < width; ++i) y[i] += totals[i];
    }
    begin += rows;
  }
}

// Outputs [output, output + block) over one part of their terms.
void reduce_part(const ReducePlan& plan, const float* x, int64_t output, int64_t part, float* y) {
  const int64_t begin = part * plan.part;
  const int64_t end = std::min(plan.terms, begin + plan.part);
  if (plan.width == 0) {
    *y = reduce_runs(plan, x + offset(plan.kept, output), begin, end);
    return;
  }
  const int64_t column = output % plan.width;
  const float* from = x + offset(plan.kept, output / plan.width) + column;
  reduce_rows(plan, from, begin, end, y, std::min(plan.block, plan.width - column));
}

void finish(const ReducePlan& plan, const float* partial, float* y) {
  const auto terms = static_cast<float>(plan.terms);
  for (int64_t i = 0; i < plan.outputs; ++i) {
    float total = partial[i];
    for (int64_t part = 1; part < plan.parts; ++part) {
      const float more = partial[part * plan.outputs + i];
      total = plan.kind == GPUNN_REDUCE_MAX ? larger(total, more) : total + more;
    }
    y[i] = plan.kind == GPUNN_REDUCE_MEAN ? total / terms : total;
  }
}

void run_reduce(const ReducePlan& plan, const OpArgs& args) {
  if (plan.outputs == 0) return;
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  auto* partial = plan.parts > 1 ? args.workspace<float>() : y;
  // A block never crosses a row of the output.
  const int64_t blocks_per_row = plan.width > 0 ? (plan.width + plan.block - 1) / plan.block : 1;
  const int64_t blocks = plan.width > 0 ? plan.outputs / plan.width * blocks_per_row : plan.outputs;
  const int64_t cost = std::max<int64_t>(1, plan.block * std::min(plan.part, plan.terms));
  parallel_ranges(blocks * plan.parts, rows_per_task(cost), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task / blocks;
      const int64_t block = task % blocks;
      const int64_t output =
          plan.width > 0 ? block / blocks_per_row * plan.width + block % blocks_per_row * plan.block : block;
      reduce_part(plan, x, output, part, partial + part * plan.outputs + output);
    }
  });
  if (plan.parts > 1 || plan.kind == GPUNN_REDUCE_MEAN) finish(plan, partial, y);
}

// A count comes from device memory: beyond the rows it means all of them.
int64_t clamped_count(const OpArgs& args, int64_t rows) { return std::clamp<int64_t>(*args.in<int32_t>(1), 0, rows); }

void run_mean_rows(const int64_t& rows, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const int64_t count = clamped_count(args, rows);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  *args.out<float>(0) = count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
}

void run_mean_rows_backward(const int64_t& rows, const OpArgs& args) {
  auto* dx = args.out<float>(0);
  const int64_t count = clamped_count(args, rows);
  if (count > 0) std::fill(dx, dx + count, *args.in<float>(0) / static_cast<float>(count));
  std::fill(dx + count, dx + rows, 0.0F);
}

struct NormPlan {
  int64_t n = 0;
  const ReductionKernels* kernels = nullptr;
  uint64_t workspace_bytes = 0;
};

int64_t norm_parts(int64_t n) { return (n + kGrain - 1) / kGrain; }

NormPlan plan_norm(const OpDesc& desc) {
  const int64_t n = norm_of(desc);
  return {.n = n,
          .kernels = &GPUNN_SELECT_ISA(reduction_kernels),
          .workspace_bytes = static_cast<uint64_t>(norm_parts(n)) * sizeof(double)};
}

void run_norm(const NormPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* parts = args.workspace<double>();
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    parts[begin / kGrain] = plan.kernels->sum_of_squares(x + begin, end - begin);
  });
  double sum = 0.0;
  for (int64_t i = 0; i < norm_parts(plan.n); ++i) sum += parts[i];
  *args.out<float>(0) = static_cast<float>(std::sqrt(sum));
}

}  // namespace

void add_reduction_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_REDUCE, plan_reduce, run_reduce, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_MEAN_ROWS, mean_rows_of, run_mean_rows);
  add_op(device, GPUNN_OP_MEAN_ROWS_BACKWARD, mean_rows_backward_of, run_mean_rows_backward);
  add_op(device, GPUNN_OP_NORM, plan_norm, run_norm);
}

}  // namespace gpunn::cpu
