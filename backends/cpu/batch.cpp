// SAMPLE_INDICES, GATHER_ROWS and GATHER_NORMALIZE.
//
// An index comes from device memory: one that names no row, negative or too large, gives a row of zeros.
#include "simd/batch.hpp"

#include <gpunn/plugin.hpp>

#include <cstring>
#include <limits>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "simd/random.hpp"

namespace gpunn::cpu {
namespace {

struct SamplePlan {
  gpunn_sample_attrs attrs{};
  int64_t steps = 0;  // of an epoch
  const RandomKernels* kernels = nullptr;
};

SamplePlan plan_sample(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 2);
  const auto attrs = require_attrs<gpunn_sample_attrs>(desc);
  require(attrs.rows >= 1 && attrs.rows <= std::numeric_limits<int32_t>::max(), "rows must be 1 to 2^31 - 1");
  require(attrs.batch >= 1, "the batch must be at least 1");
  require(attrs.drop_last == 0 || attrs.batch <= attrs.rows,
          "the batch is larger than the rows, and the last is dropped");
  require_scalar(desc.input(0), GPUNN_I64, "step");
  require_packed(desc.output(0), GPUNN_I32, "index");
  require_shape(desc.output(0), {attrs.batch}, "index");
  require_scalar(desc.output(1), GPUNN_I32, "count");
  return {.attrs = attrs,
          .steps = attrs.drop_last != 0 ? attrs.rows / attrs.batch : (attrs.rows + attrs.batch - 1) / attrs.batch,
          .kernels = &GPUNN_SELECT_ISA(random_kernels)};
}

void run_sample(const SamplePlan& plan, const OpArgs& args) {
  const gpunn_sample_attrs& attrs = plan.attrs;
  const int64_t step = std::max<int64_t>(0, *args.in<int64_t>(0));
  auto* index = args.out<int32_t>(0);
  const int64_t first = step % plan.steps * attrs.batch;
  const int64_t epoch = step / plan.steps;
  const int64_t count = std::min<int64_t>(attrs.batch, attrs.rows - first);
  parallel_ranges(count, 512, [&](int64_t begin, int64_t end) {
    if (attrs.shuffle != 0) {
      plan.kernels->permute(attrs.seed, attrs.stream, epoch, static_cast<uint32_t>(attrs.rows),
                            static_cast<uint32_t>(first + begin), index + begin, end - begin);
    } else {
      for (int64_t i = begin; i < end; ++i) index[i] = static_cast<int32_t>(first + i);
    }
  });
  std::fill(index + count, index + attrs.batch, -1);
  *args.out<int32_t>(1) = static_cast<int32_t>(count);
}

// data[n,...], index[B] -> y[B,...].
struct GatherPlan {
  int64_t rows = 0;
  int64_t batch = 0;
  int64_t row_size = 0;
  int32_t from = 0;
  int32_t to = 0;
  int64_t channels = 0;
  const BatchKernels* kernels = nullptr;
};

GatherPlan plan_gather(const OpDesc& desc, int32_t to) {
  const gpunn_tensor& data = desc.input(0);
  const gpunn_tensor& index = desc.input(1);
  const gpunn_tensor& y = desc.output(0);
  require_packed(data, data.dtype, "data");
  require_packed(index, GPUNN_I32, "index");
  require_packed(y, to, "y");
  require(data.rank >= 1, "data must be [n,...]");
  require(index.rank == 1, "index must be [B]");
  gpunn_tensor expected = data;
  expected.dim[0] = index.dim[0];
  require_same_shape(y, expected, "y and the gathered data");
  GatherPlan plan;
  plan.rows = data.dim[0];
  plan.batch = index.dim[0];
  plan.row_size = 1;
  for (int32_t i = 1; i < data.rank; ++i) plan.row_size *= data.dim[i];
  plan.from = data.dtype;
  plan.to = to;
  plan.kernels = &GPUNN_SELECT_ISA(batch_kernels);
  return plan;
}

GatherPlan plan_gather_rows(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const int32_t from = desc.input(0).dtype;
  const int32_t to = desc.output(0).dtype;
  require(from == GPUNN_U8 || from == GPUNN_I32 || from == GPUNN_I64 || from == GPUNN_F32,
          "data must be u8, i32, i64 or f32");
  require(to == from || (to == GPUNN_I32 && (from == GPUNN_U8 || from == GPUNN_I64)),
          "y must have data's type, or be i32 where data is u8 or i64");
  return plan_gather(desc, to);
}

// Calls body(row of the batch, row of the data, or -1).
template <class Body>
void for_gathered(const GatherPlan& plan, const int32_t* index, const Body& body) {
  parallel_ranges(plan.batch, rows_per_task(plan.row_size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, index[i] < plan.rows ? index[i] : -1);
  });
}

template <class From, class To>
void gather(const GatherPlan& plan, const OpArgs& args) {
  const auto* data = args.in<From>(0);
  auto* y = args.out<To>(0);
  for_gathered(plan, args.in<int32_t>(1), [&](int64_t to, int64_t from) {
    To* row = y + to * plan.row_size;
    if (from < 0) {
      std::fill(row, row + plan.row_size, To{0});
    } else {
      const From* source = data + from * plan.row_size;
      for (int64_t i = 0; i < plan.row_size; ++i) row[i] = static_cast<To>(source[i]);
    }
  });
}

void run_gather_rows(const GatherPlan& plan, const OpArgs& args) {
  if (plan.from == GPUNN_U8)
    return plan.to == GPUNN_U8 ? gather<uint8_t, uint8_t>(plan, args) : gather<uint8_t, int32_t>(plan, args);
  if (plan.from == GPUNN_I64)
    return plan.to == GPUNN_I64 ? gather<int64_t, int64_t>(plan, args) : gather<int64_t, int32_t>(plan, args);
  if (plan.from == GPUNN_I32) return gather<int32_t, int32_t>(plan, args);
  gather<float, float>(plan, args);
}

GatherPlan plan_gather_normalize(const OpDesc& desc) {
  require_tensors(desc, 4, 4, 1);
  const gpunn_tensor& data = desc.input(0);
  require(data.dtype == GPUNN_U8 || data.dtype == GPUNN_F32, "data must be u8 or f32");
  require(data.rank >= 2, "data must be [n,C,...]");
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
    require_packed(desc.input(i), GPUNN_F32, "scale and shift");
    require_shape(desc.input(i), {data.dim[1]}, "scale and shift");
  }
  GatherPlan plan = plan_gather(desc, GPUNN_F32);
  plan.channels = data.dim[1];
  return plan;
}

template <class From>
void gather_normalize(const GatherPlan& plan, const OpArgs& args,
                      void (*normalize)(const From*, float, float, float*, int64_t)) {
  const auto* data = args.in<From>(0);
  const auto *scale = args.in<float>(2), *shift = args.in<float>(3);
  auto* y = args.out<float>(0);
  const int64_t size = plan.channels > 0 ? plan.row_size / plan.channels : 0;
  for_gathered(plan, args.in<int32_t>(1), [&](int64_t to, int64_t from) {
    float* row = y + to * plan.row_size;
    if (from < 0) {
      std::fill(row, row + plan.row_size, 0.0F);
      return;
    }
    const From* source = data + from * plan.row_size;
    for (int64_t c = 0; c < plan.channels; ++c) {
      normalize(source + c * size, scale[c], shift[c], row + c * size, size);
    }
  });
}

void run_gather_normalize(const GatherPlan& plan, const OpArgs& args) {
  if (plan.from == GPUNN_U8) {
    gather_normalize<uint8_t>(plan, args, plan.kernels->normalize_u8);
  } else {
    gather_normalize<float>(plan, args, plan.kernels->normalize_f32);
  }
}

}  // namespace

void add_batch_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SAMPLE_INDICES, plan_sample, run_sample);
  add_op(device, GPUNN_OP_GATHER_ROWS, plan_gather_rows, run_gather_rows);
  add_op(device, GPUNN_OP_GATHER_NORMALIZE, plan_gather_normalize, run_gather_normalize);
}

}  // namespace gpunn::cpu
