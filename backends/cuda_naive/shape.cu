// PAD, SLICE, CONCAT, QUANTIZED_CONCAT and TRANSPOSE. One thread writes one element.
//
// Elements are numbered in the order of y's memory, so that neighbouring threads write neighbours and stores are
// coalesced. The loads of SLICE and CONCAT are coalesced too, except at the ends of rows. In a TRANSPOSE that moves the
// last dimension, each thread's 4 bytes come from a separate 32-byte sector. CONCAT launches one kernel for each input.
// PAD checks for each element of y whether x contains it.
//
// The next version would transpose tiles of 32 x 32 through shared memory, as copy.cu describes. If rows are contiguous
// on both sides, a thread would move 16 bytes, which saves three of four divisions.
#include "common/shape.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class T>
__global__ void copy_box(const T* x, T* y, Copy loops) {
  const int64_t i = thread_index();
  if (i >= loops.n) return;
  int64_t rest = i;
  int64_t from = 0;
  int64_t to = 0;
  for (int32_t d = loops.rank - 1; d > 0; --d) {
    const int64_t position = rest % loops.dim[d];
    rest /= loops.dim[d];
    from += position * loops.x_stride[d];
    to += position * loops.y_stride[d];
  }
  y[to + rest * loops.y_stride[0]] = x[from + rest * loops.x_stride[0]];
}

template <class T>
__global__ void pad_with_zeros(const T* x, T* y, Pad pad) {
  const int64_t i = thread_index();
  if (i >= pad.n) return;
  int64_t rest = i;
  int64_t from = 0;
  int64_t stride = 1;
  bool inside = true;
  for (int32_t d = pad.rank - 1; d >= 0; --d) {
    const int64_t position = (d > 0 ? rest % pad.dim[d] : rest) - pad.before[d];
    rest /= pad.dim[d];
    inside = inside && position >= 0 && position < pad.size[d];
    from += position * stride;
    stride *= pad.size[d];
  }
  y[i] = inside ? x[from] : static_cast<T>(0.0F);
}

template <class T>
void launch_box(const Box& box, cudaStream_t stream, const T* x, T* y) {
  if (box.loops.n == 0) return;  // an offset would point behind the end
  launch(copy_box<T>, thread_each(box.loops.n), stream, x + box.x_offset, y + box.y_offset, box.loops);
}

template <class T>
void run_one(const Box& box, cudaStream_t stream, const OpArgs& args) {
  launch_box(box, stream, args.in<T>(0), args.out<T>(0));
}

template <class T>
void run_concat(const std::vector<Box>& parts, cudaStream_t stream, const OpArgs& args) {
  for (std::size_t i = 0; i < parts.size(); ++i) launch_box(parts[i], stream, args.in<T>(i), args.out<T>(0));
}

// One input of QUANTIZED_CONCAT: its runs of bytes go to places `row` bytes apart.
__global__ void place_runs(const uint8_t* x, uint8_t* y, int64_t n, int64_t run, int64_t row) {
  const int64_t i = thread_index();
  if (i < n) y[i / run * row + i % run] = x[i];
}

void run_byte_concat(const ByteConcat& concat, cudaStream_t stream, const OpArgs& args) {
  auto* y = args.out<uint8_t>(0);
  for (std::size_t i = 0; i < concat.runs.size(); ++i) {
    const int64_t run = concat.runs[i], n = concat.rows * run;
    if (n > 0) launch(place_runs, thread_each(n), stream, args.in<uint8_t>(i), y, n, run, concat.row);
    y += run;
  }
}

template <class T>
void run_pad(const Pad& pad, cudaStream_t stream, const OpArgs& args) {
  launch(pad_with_zeros<T>, thread_each(pad.n), stream, args.in<T>(0), args.out<T>(0), pad);
}

}  // namespace

void add_shape_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_PAD, "pad", pad_of, each_floating([](auto x) { return run_pad<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_SLICE, "slice", slice_of, each_floating([](auto x) { return run_one<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_CONCAT, "concat", concat_of, each_floating([](auto x) { return run_concat<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_QUANTIZED_CONCAT, "quantized_concat", byte_concat_of, run_byte_concat, Dtypes::f32,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_TRANSPOSE, "transpose", transpose_of,
         each_floating([](auto x) { return run_one<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
