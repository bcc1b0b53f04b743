// SAMPLE_INDICES, GATHER_ROWS and GATHER_NORMALIZE, which pick a batch out of the data set on the device, and
// SCATTER_ADD.
//
// In SAMPLE_INDICES one thread computes one entry of the batch. In the gathers one thread computes one element of y.
// Within a row neighbouring threads read neighbouring elements, so the reads are coalesced. The exceptions are warps
// that span two rows, and rows that begin within a 32-byte sector. With u8 data a warp reads only 32 bytes: one sector
// instead of a whole cache line. The next version would give each row a thread block, which reads the row's index once
// and needs no division. It would move 4 or 16 elements a thread, and merge the op into the kernel that trains on the
// batch.
//
// In SCATTER_ADD one thread computes one element of y: it goes through all the indices and adds its own rows. No
// addition is atomic, so the order of the sum is fixed, but each thread reads the whole list. The next version would
// sort the indices first and give each run of equal indices to one block.
//
// An index comes from device memory and may have any value. An index outside the data set gives a row of zeros and is
// never used as an address.
#include <gpunn/random.h>

#include "common/batch.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__global__ void sample_indices(Sample plan, const int64_t* step_number, int32_t* index, int32_t* count) {
  const gpunn_sample_attrs& attrs = plan.attrs;
  const int64_t step = max(*step_number, int64_t{0});
  const int64_t first = step % plan.steps * attrs.batch;
  const int64_t i = thread_index();
  if (i == 0) *count = static_cast<int32_t>(min(int64_t{attrs.batch}, attrs.rows - first));
  if (i >= attrs.batch) return;
  const int64_t position = first + i;
  if (position >= attrs.rows) {
    index[i] = -1;
  } else if (attrs.shuffle != 0) {
    index[i] =
        static_cast<int32_t>(gpunn_random_permute(attrs.seed, attrs.stream, step / plan.steps,
                                                  static_cast<uint32_t>(attrs.rows), static_cast<uint32_t>(position)));
  } else {
    index[i] = static_cast<int32_t>(position);
  }
}

__device__ bool names_row(int64_t row, const Gather& plan) { return row >= 0 && row < plan.rows; }

template <class From, class To>
__global__ void gather_rows(Gather plan, const From* data, const int32_t* index, To* y) {
  const int64_t i = thread_index();
  if (i >= plan.batch * plan.row_size) return;
  const int64_t row = index[i / plan.row_size];
  y[i] = names_row(row, plan) ? static_cast<To>(data[row * plan.row_size + i % plan.row_size]) : To{0};
}

__global__ void scatter_add(Scatter plan, const float* x, const int32_t* index, float* y) {
  const int64_t i = thread_index();
  if (i >= plan.rows * plan.row_size) return;
  const int64_t row = i / plan.row_size;
  const int64_t at = i % plan.row_size;
  float sum = 0.0F;
  for (int64_t k = 0; k < plan.batch; ++k) {
    if (index[k] == row) sum += x[k * plan.row_size + at];
  }
  y[i] = sum;
}

template <class From>
__global__ void gather_normalize(Gather plan, const From* data, const int32_t* index, const float* scale,
                                 const float* shift, float* y) {
  const int64_t i = thread_index();
  if (i >= plan.batch * plan.row_size) return;
  const int64_t row = index[i / plan.row_size];
  const int64_t at = i % plan.row_size;
  const int64_t channel = at / (plan.row_size / plan.channels);
  // Not the shift where there is no row: a row that is missing is 0 after normalising, too.
  y[i] = names_row(row, plan) ? static_cast<float>(data[row * plan.row_size + at]) * scale[channel] + shift[channel]
                              : 0.0F;
}

void run_sample(const Sample& plan, cudaStream_t stream, const OpArgs& args) {
  launch(sample_indices, thread_each(plan.attrs.batch), stream, plan, args.in<int64_t>(0), args.out<int32_t>(0),
         args.out<int32_t>(1));
}

template <class From, class To>
void gather(const Gather& plan, cudaStream_t stream, const OpArgs& args) {
  launch(gather_rows<From, To>, thread_each(plan.batch * plan.row_size), stream, plan, args.in<From>(0),
         args.in<int32_t>(1), args.out<To>(0));
}

void run_gather_rows(const Gather& plan, cudaStream_t stream, const OpArgs& args) {
  switch (plan.from) {
    case GPUNN_U8:
      return gather<uint8_t, int32_t>(plan, stream, args);
    case GPUNN_I64:
      return gather<int64_t, int32_t>(plan, stream, args);
    case GPUNN_I32:
      return gather<int32_t, int32_t>(plan, stream, args);
    default:
      return gather<float, float>(plan, stream, args);
  }
}

void run_scatter_add(const Scatter& plan, cudaStream_t stream, const OpArgs& args) {
  launch(scatter_add, thread_each(plan.rows * plan.row_size), stream, plan, args.in<float>(0), args.in<int32_t>(1),
         args.out<float>(0));
}

template <class From>
void normalize(const Gather& plan, cudaStream_t stream, const OpArgs& args) {
  launch(gather_normalize<From>, thread_each(plan.batch * plan.row_size), stream, plan, args.in<From>(0),
         args.in<int32_t>(1), args.in<float>(2), args.in<float>(3), args.out<float>(0));
}

void run_gather_normalize(const Gather& plan, cudaStream_t stream, const OpArgs& args) {
  if (plan.from == GPUNN_U8) {
    normalize<uint8_t>(plan, stream, args);
  } else {
    normalize<float>(plan, stream, args);
  }
}

}  // namespace

void add_batch_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SAMPLE_INDICES, "sample_indices", sample_of, run_sample);
  add_op(device, GPUNN_OP_GATHER_ROWS, "gather_rows", gather_rows_of, run_gather_rows);
  add_op(device, GPUNN_OP_SCATTER_ADD, "scatter_add", scatter_add_of, run_scatter_add);
  add_op(device, GPUNN_OP_GATHER_NORMALIZE, "gather_normalize", gather_normalize_of, run_gather_normalize);
}

}  // namespace gpunn::cuda_naive
