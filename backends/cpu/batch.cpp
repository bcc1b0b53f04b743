// SAMPLE_INDICES, GATHER_ROWS, SCATTER_ADD and GATHER_NORMALIZE.
//
// An index comes from device memory: one that names no row, negative or too large, gives a row of zeros.
#include "simd/batch.hpp"

#include <gpunn/kernel.hpp>

#include "add_op.hpp"
#include "common/batch.hpp"
#include "kernels.hpp"
#include "simd/random.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

void run_sample(const Sample& plan, const OpArgs& args) {
  const gpunn_sample_attrs& attrs = plan.attrs;
  const int64_t step = std::max<int64_t>(0, *args.in<int64_t>(0));
  auto* index = args.out<int32_t>(0);
  const int64_t first = step % plan.steps * attrs.batch;
  const int64_t epoch = step / plan.steps;
  const int64_t count = std::min<int64_t>(attrs.batch, attrs.rows - first);
  parallel_ranges(count, 512, [&](int64_t begin, int64_t end) {
    if (attrs.shuffle != 0) {
      GPUNN_SELECT_ISA(random_kernels)
          .permute(attrs.seed, attrs.stream, epoch, static_cast<uint32_t>(attrs.rows),
                   static_cast<uint32_t>(first + begin), index + begin, end - begin);
    } else {
      for (int64_t i = begin; i < end; ++i) index[i] = static_cast<int32_t>(first + i);
    }
  });
  std::fill(index + count, index + attrs.batch, -1);
  *args.out<int32_t>(1) = static_cast<int32_t>(count);
}

// Calls body(row of the batch, row of the data, or -1).
template <class Body>
void for_gathered(const Gather& plan, const int32_t* index, const Body& body) {
  parallel_ranges(plan.batch, rows_per_task(plan.row_size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, index[i] < plan.rows ? index[i] : -1);
  });
}

template <class From, class To>
void gather(const Gather& plan, const OpArgs& args) {
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

void run_gather_rows(const Gather& plan, const OpArgs& args) {
  switch (plan.from) {
    case GPUNN_U8:
      return gather<uint8_t, int32_t>(plan, args);
    case GPUNN_I64:
      return gather<int64_t, int32_t>(plan, args);
    case GPUNN_I32:
      return gather<int32_t, int32_t>(plan, args);
    default:
      return gather<float, float>(plan, args);
  }
}

// A task has rows of y to itself, and takes what is theirs in the order of x.
void run_scatter_add(const Scatter& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const auto* index = args.in<int32_t>(1);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.rows, rows_per_task(plan.row_size), [&](int64_t begin, int64_t end) {
    std::fill(y + begin * plan.row_size, y + end * plan.row_size, 0.0F);
    for (int64_t i = 0; i < plan.batch; ++i) {
      if (index[i] < begin || index[i] >= end) continue;
      const float* from = x + i * plan.row_size;
      float* to = y + index[i] * plan.row_size;
      for (int64_t k = 0; k < plan.row_size; ++k) to[k] += from[k];
    }
  });
}

template <class From>
void gather_normalize(const Gather& plan, const OpArgs& args,
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

void run_gather_normalize(const Gather& plan, const OpArgs& args) {
  if (plan.from == GPUNN_U8) {
    gather_normalize<uint8_t>(plan, args, GPUNN_SELECT_ISA(batch_kernels).normalize_u8);
  } else {
    gather_normalize<float>(plan, args, GPUNN_SELECT_ISA(batch_kernels).normalize_f32);
  }
}

}  // namespace

void add_batch_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SAMPLE_INDICES, sample_of, run_sample);
  add_op(device, GPUNN_OP_GATHER_ROWS, gather_rows_of, run_gather_rows);
  add_op(device, GPUNN_OP_SCATTER_ADD, scatter_add_of, run_scatter_add);
  add_op(device, GPUNN_OP_GATHER_NORMALIZE, gather_normalize_of, run_gather_normalize);
}

}  // namespace gpunn::cpu
