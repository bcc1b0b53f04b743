// conv:depthwise:general: depthwise convolutions with any filter, stride, padding, dilation and number of filters a
// channel, in either layout. One thread computes one element of y or dx, in the order of memory, and reads its inputs
// through the caches. For the weight gradient a thread block sums one tap of some filters over a share of the images.
#include <algorithm>

#include "conv/depthwise/depthwise.hpp"
#include "conv/depthwise/dispatch.cuh"
#include "conv/depthwise/join.cuh"
#include "cuda_common/launch.hpp"
#include "divider.cuh"

namespace gpunn::cuda_tiled::depthwise {

using backends::ConvolutionAxis;
using backends::ConvolutionPass;
using backends::ConvolutionShape;
using cuda::divide_up;

namespace {

constexpr int kBlock = 256;

struct Pixel {
  int image, channel, row, column;
};

// Images in memory.
struct View {
  int channels, rows, columns;
  bool channels_last;
  Divider by_channels, by_rows, by_columns;

  View(int64_t of_channels, int64_t of_rows, int64_t of_columns, bool last)
      : channels(static_cast<int>(of_channels)),
        rows(static_cast<int>(of_rows)),
        columns(static_cast<int>(of_columns)),
        channels_last(last),
        by_channels(of_channels),
        by_rows(of_rows),
        by_columns(of_columns) {}

  __device__ __forceinline__ int64_t place(int image, int channel, int row, int column) const {
    if (channels_last) return ((int64_t{image} * rows + row) * columns + column) * channels + channel;
    return ((int64_t{image} * channels + channel) * rows + row) * columns + column;
  }

  __device__ __forceinline__ Pixel pixel(int number) const {
    Divider::Result channel{number, 0};
    if (channels_last) channel = by_channels(number);
    const Divider::Result column = by_columns(channel.quotient);
    const Divider::Result row = by_rows(column.quotient);
    if (channels_last) return {row.quotient, channel.rest, row.rest, column.rest};
    const Divider::Result last = by_channels(row.quotient);
    return {last.quotient, last.rest, row.rest, column.rest};
  }
};

struct Axis {
  int taps, stride, pad, dilation;
  Divider by_stride;

  explicit Axis(const ConvolutionAxis& axis)
      : taps(static_cast<int>(axis.taps)),
        stride(static_cast<int>(axis.stride)),
        pad(static_cast<int>(axis.pad)),
        dilation(static_cast<int>(axis.dilation)),
        by_stride(axis.stride) {}

  // The output that reads `input` at `tap`, of `outputs`; -1: none.
  __device__ __forceinline__ int output_of(int input, int tap, int outputs) const {
    const int at = input + pad - tap * dilation;
    if (at < 0) return -1;
    const Divider::Result found = by_stride(at);
    return found.rest == 0 && found.quotient < outputs ? found.quotient : -1;
  }
};

struct General {
  View x, y;
  Axis rows, columns;
  int filters;  // a channel
  Divider by_filters;
  int splits = 1;
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    forward_general(const T* __restrict__ x, const T* __restrict__ w, Epilogue epilogue, T* __restrict__ y,
                    int64_t size, General z) {
  const int64_t number = cuda::thread_index();
  if (number >= size) return;
  const Pixel at = z.y.pixel(static_cast<int>(number));
  const int channel = z.by_filters(at.channel).quotient;
  const T* const filter = w + int64_t{at.channel} * z.rows.taps * z.columns.taps;
  float sum = 0.0F;
  for (int r = 0; r < z.rows.taps; ++r) {
    const int row = at.row * z.rows.stride - z.rows.pad + r * z.rows.dilation;
    if (row < 0 || row >= z.x.rows) continue;
    for (int s = 0; s < z.columns.taps; ++s) {
      const int column = at.column * z.columns.stride - z.columns.pad + s * z.columns.dilation;
      if (column < 0 || column >= z.x.columns) continue;
      sum += static_cast<float>(filter[r * z.columns.taps + s]) *
             static_cast<float>(x[z.x.place(at.image, channel, row, column)]);
    }
  }
  y[number] = static_cast<T>(finish_at(epilogue, sum, at.channel));
}

template <class T>
__global__ void __launch_bounds__(kBlock) data_gradient_general(const T* __restrict__ dy, const T* __restrict__ w,
                                                                T* __restrict__ dx, int64_t size, General z) {
  const int64_t number = cuda::thread_index();
  if (number >= size) return;
  const Pixel at = z.x.pixel(static_cast<int>(number));
  const int taps = z.rows.taps * z.columns.taps;
  const T* const filters = w + int64_t{at.channel} * z.filters * taps;
  float sum = 0.0F;
  for (int r = 0; r < z.rows.taps; ++r) {
    const int row = z.rows.output_of(at.row, r, z.y.rows);
    if (row < 0) continue;
    for (int s = 0; s < z.columns.taps; ++s) {
      const int column = z.columns.output_of(at.column, s, z.y.columns);
      if (column < 0) continue;
      for (int m = 0; m < z.filters; ++m) {
        sum += static_cast<float>(filters[m * taps + r * z.columns.taps + s]) *
               static_cast<float>(dy[z.y.place(at.image, at.channel * z.filters + m, row, column)]);
      }
    }
  }
  dx[number] = static_cast<T>(sum);
}

// parts[split][filter][tap]. Threads side by side have `lanes` filters side by side, and the block one tap.
template <class T>
__global__ void __launch_bounds__(kBlock)
    weight_gradient_general(const T* __restrict__ dy, const T* __restrict__ x, float* __restrict__ parts, int images,
                            int lanes, General z) {
  __shared__ float shared[kBlock];
  const int taps = z.rows.taps * z.columns.taps;
  const int tap = static_cast<int>(blockIdx.x) % taps;
  const int lane = static_cast<int>(threadIdx.x) % lanes, deep = static_cast<int>(threadIdx.x) / lanes;
  const int depth = kBlock / lanes;
  const int filter = static_cast<int>(blockIdx.x) / taps * lanes + lane;
  const int channel = z.by_filters(filter).quotient;
  const int up = tap / z.columns.taps * z.rows.dilation - z.rows.pad;
  const int left = tap % z.columns.taps * z.columns.dilation - z.columns.pad;
  const int pixels = images * z.y.rows * z.y.columns;
  float sum = 0.0F;
  if (filter < z.y.channels) {
    for (int64_t i = int64_t{blockIdx.y} * depth + deep; i < pixels; i += int64_t{z.splits} * depth) {
      const Divider::Result to_column = z.y.by_columns(static_cast<int>(i));
      const Divider::Result to_row = z.y.by_rows(to_column.quotient);
      const int row = to_row.rest * z.rows.stride + up, column = to_column.rest * z.columns.stride + left;
      if (row < 0 || row >= z.x.rows || column < 0 || column >= z.x.columns) continue;
      sum += static_cast<float>(dy[z.y.place(to_row.quotient, filter, to_row.rest, to_column.rest)]) *
             static_cast<float>(x[z.x.place(to_row.quotient, channel, row, column)]);
    }
  }
  shared[threadIdx.x] = sum;
  for (int h = depth / 2; h > 0; h /= 2) {
    __syncthreads();
    if (deep < h) shared[threadIdx.x] += shared[threadIdx.x + h * lanes];
  }
  if (deep == 0 && filter < z.y.channels) {
    parts[(int64_t{blockIdx.y} * z.y.channels + filter) * taps + tap] = shared[threadIdx.x];
  }
}

// Filters side by side in memory.
int lanes_of(const DepthwiseProblem& problem) { return problem.channels_last ? 32 : 1; }

int64_t blocks_of(const DepthwiseProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  return divide_up(s.groups * s.group_outputs, int64_t{lanes_of(problem)}) * s.rows.taps * s.columns.taps;
}

int splits_of(const DepthwiseProblem& problem) {
  constexpr int64_t kBlocksEach = 8;
  constexpr int64_t kLeastPixels = 8;  // of a thread
  const ConvolutionShape& s = problem.shape;
  const int64_t pixels = s.batch * s.rows.outputs * s.columns.outputs;
  const int64_t most = divide_up(pixels, kBlock / lanes_of(problem) * kLeastPixels);
  const int64_t wanted = divide_up(problem.multiprocessors * kBlocksEach, blocks_of(problem));
  return static_cast<int>(std::max<int64_t>(1, std::min(wanted, most)));
}

int64_t pixels_of_x(const ConvolutionShape& s) { return s.batch * s.rows.inputs * s.columns.inputs; }
int64_t pixels_of_y(const ConvolutionShape& s) { return s.batch * s.rows.outputs * s.columns.outputs; }

General general_of(const DepthwiseProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  return {.x = View(s.groups, s.rows.inputs, s.columns.inputs, problem.channels_last),
          .y = View(s.groups * s.group_outputs, s.rows.outputs, s.columns.outputs, problem.channels_last),
          .rows = Axis(s.rows),
          .columns = Axis(s.columns),
          .filters = static_cast<int>(s.group_outputs),
          .by_filters = Divider(s.group_outputs),
          .splits = splits_of(problem)};
}

}  // namespace

std::string general_refuses(const DepthwiseProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  if (pixels_of_x(s) * s.groups > INT32_MAX || pixels_of_y(s) * s.groups * s.group_outputs > INT32_MAX) {
    return "counts the elements of a tensor in 31 bits";
  }
  return blocks_of(problem) > INT32_MAX ? "has more blocks than a grid" : "";
}

uint64_t general_workspace_bytes(const DepthwiseProblem& problem) {
  if (problem.pass != ConvolutionPass::backward_filter) return 0;
  const ConvolutionShape& s = problem.shape;
  return static_cast<uint64_t>(splits_of(problem) * s.groups * s.group_outputs * s.rows.taps * s.columns.taps) *
         sizeof(float);
}

void run_general(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  const ConvolutionShape& s = problem.shape;
  const General z = general_of(problem);
  with_type(problem, [&](auto type) {
    using T = decltype(type);
    const auto* const x = static_cast<const T*>(at.x);
    const auto* const w = static_cast<const T*>(at.w);
    const auto* const y = static_cast<const T*>(at.y);
    T* const out = static_cast<T*>(at.out);
    if (problem.pass == ConvolutionPass::forward) {
      const int64_t size = pixels_of_y(s) * s.groups * s.group_outputs;
      return cuda::launch(forward_general<T>, cuda::thread_each(size), stream, x, w, at.epilogue, out, size, z);
    }
    if (problem.pass == ConvolutionPass::backward_data) {
      const int64_t size = pixels_of_x(s) * s.groups;
      return cuda::launch(data_gradient_general<T>, cuda::thread_each(size), stream, y, w, out, size, z);
    }
    const cuda::Launch blocks{dim3(static_cast<unsigned>(blocks_of(problem)), static_cast<unsigned>(z.splits)),
                              dim3(kBlock)};
    cuda::launch(weight_gradient_general<T>, blocks, stream, y, x, at.workspace, static_cast<int>(s.batch),
                 lanes_of(problem), z);
    join(at.workspace, out, s.groups * s.group_outputs * s.rows.taps * s.columns.taps, z.splits, stream);
  });
}

}  // namespace gpunn::cuda_tiled::depthwise
