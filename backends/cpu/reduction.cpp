// REDUCE over any axes, MEAN_ROWS and its backward.
//
// REDUCE merges neighbouring dimensions of one kind, which leaves kept and reduced ones in turn. Where the innermost is
// reduced, an output is the sum of runs of neighbouring numbers; where it is kept, a block of neighbouring outputs is
// the sum of rows. The reduced range is cut into parts by the shape alone; parts are combined in order, so that the
// result does not depend on the number of threads.
#include "simd/reduction.hpp"

#include <gpunn/plugin.hpp>

#include <cmath>
#include <limits>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// Dimensions of one kind, outermost first.
struct Nest {
  int32_t rank = 0;
  int64_t dim[GPUNN_MAX_RANK] = {};
  int64_t stride[GPUNN_MAX_RANK] = {};

  void add(int64_t size, int64_t step) {
    dim[rank] = size;
    stride[rank] = step;
    ++rank;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int32_t i = 0; i < rank; ++i) product *= dim[i];
    return product;
  }
  int64_t offset(int64_t index) const {
    int64_t sum = 0;
    for (int32_t i = rank - 1; i >= 0; --i) {
      sum += index % dim[i] * stride[i];
      index /= dim[i];
    }
    return sum;
  }
};

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

void require_reduced_shape(const gpunn_tensor& x, const gpunn_tensor& y, const gpunn_reduce_attrs& attrs) {
  gpunn_tensor expected{};
  for (int32_t i = 0; i < x.rank; ++i) {
    const bool reduced = (attrs.axes >> i & 1U) != 0;
    if (!reduced) expected.dim[expected.rank++] = x.dim[i];
    if (reduced && attrs.keep_dims != 0) expected.dim[expected.rank++] = 1;
  }
  require_same_shape(y, expected, "y and the reduced x");
}

ReducePlan plan_reduce(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  const auto attrs = require_attrs<gpunn_reduce_attrs>(desc);
  const gpunn_tensor& x = desc.input(0);
  const gpunn_tensor& y = desc.output(0);
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y");
  require(attrs.kind == GPUNN_REDUCE_SUM || attrs.kind == GPUNN_REDUCE_MEAN || attrs.kind == GPUNN_REDUCE_MAX,
          "no such kind of reduction");
  require(attrs.axes >> x.rank == 0, "an axis is beyond x's rank");
  require_reduced_shape(x, y, attrs);

  // Merged dimensions, innermost first.
  int64_t sizes[GPUNN_MAX_RANK] = {};
  bool is_reduced[GPUNN_MAX_RANK] = {};
  int32_t rank = 0;
  for (int32_t i = x.rank - 1; i >= 0; --i) {
    if (x.dim[i] == 1) continue;
    const bool reduced = (attrs.axes >> i & 1U) != 0;
    if (rank > 0 && is_reduced[rank - 1] == reduced) {
      sizes[rank - 1] *= x.dim[i];
    } else {
      sizes[rank] = x.dim[i];
      is_reduced[rank++] = reduced;
    }
  }

  ReducePlan plan;
  plan.kind = attrs.kind;
  int64_t stride[GPUNN_MAX_RANK] = {};
  for (int32_t i = 0; i < rank; ++i) stride[i] = i == 0 ? 1 : stride[i - 1] * sizes[i - 1];
  for (int32_t i = rank - 1; i > 0; --i) (is_reduced[i] ? plan.reduced : plan.kept).add(sizes[i], stride[i]);
  if (rank > 0 && is_reduced[0]) plan.run = sizes[0];
  if (rank > 0 && !is_reduced[0]) plan.width = sizes[0];

  plan.outputs = plugin::element_count(y);
  plan.terms = plan.reduced.count() * plan.run;
  require(plan.kind != GPUNN_REDUCE_MAX || plan.terms > 0 || plan.outputs == 0, "the maximum of nothing");
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
    const float* from = x + plan.reduced.offset(row) + first;
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
    const float* from = x + plan.reduced.offset(begin);
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
    *y = reduce_runs(plan, x + plan.kept.offset(output), begin, end);
    return;
  }
  const int64_t column = output % plan.width;
  const float* from = x + plan.kept.offset(output / plan.width) + column;
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

struct MeanRowsPlan {
  int64_t rows = 0;
};

MeanRowsPlan plan_mean_rows(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  require_packed(desc.input(0), GPUNN_F32, "x");
  require(desc.input(0).rank == 1, "x must be [N]");
  require_scalar(desc.input(1), GPUNN_I32, "count");
  require_scalar(desc.output(0), GPUNN_F32, "y");
  return {.rows = desc.input(0).dim[0]};
}

// A count comes from device memory: beyond the rows it means all of them.
int64_t clamped_count(const OpArgs& args, int64_t rows) { return std::clamp<int64_t>(*args.in<int32_t>(1), 0, rows); }

void run_mean_rows(const MeanRowsPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const int64_t count = clamped_count(args, plan.rows);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  *args.out<float>(0) = count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
}

MeanRowsPlan plan_mean_rows_backward(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_rows_attrs>(desc);
  require_scalar(desc.input(0), GPUNN_F32, "dy");
  require_scalar(desc.input(1), GPUNN_I32, "count");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_shape(desc.output(0), {attrs.rows}, "dx");
  return {.rows = attrs.rows};
}

void run_mean_rows_backward(const MeanRowsPlan& plan, const OpArgs& args) {
  auto* dx = args.out<float>(0);
  const int64_t count = clamped_count(args, plan.rows);
  if (count > 0) std::fill(dx, dx + count, *args.in<float>(0) / static_cast<float>(count));
  std::fill(dx + count, dx + plan.rows, 0.0F);
}

}  // namespace

void add_reduction_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_REDUCE, plan_reduce, run_reduce);
  add_op(device, GPUNN_OP_MEAN_ROWS, plan_mean_rows, run_mean_rows);
  add_op(device, GPUNN_OP_MEAN_ROWS_BACKWARD, plan_mean_rows_backward, run_mean_rows_backward);
}

}  // namespace gpunn::cpu
