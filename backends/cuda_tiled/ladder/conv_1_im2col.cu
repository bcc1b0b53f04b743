// conv:1, im2col: computes a convolution as a matrix product.
//
// A first kernel writes the matrix [channels x taps, pixels] of each image to memory (im2col). The convolution is then
// one matrix product an image:
//
//   fprop   w times the matrix
//   dgrad   the transposed w times dy; a last kernel adds the rows of this product to the pixels that they belong to
//           (col2im). Each of its threads sums all terms of one pixel, so that the order is fixed
//   wgrad   dy times the transposed matrix, summed over the images
//
// The product multiplies 64 x 64 tiles from shared memory, while cuda_naive reads two numbers for each product. But the
// matrix of a 3x3 filter is nine times as large as the image, and it is written and read. With few channels wgrad has
// only a few thread blocks for a sum over all images. conv:2 (conv/implicit_gemm.hpp) never writes the matrix.
//
// H200, 3x3, batch 128, 64 channels at 32x32 to 512 at 4x4: 4.5 to 13 TFLOP/s fprop, 4.9 to 15 dgrad, 0.6 to 13 wgrad;
// 6.6 in the geometric mean.
#include <cstdint>
#include <string>

#include "conv/convolution.hpp"
#include "cuda_common/launch.hpp"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
constexpr int kPart = 4;  // a thread's sums are 4 x 4

// A matrix of a batch of images and groups.
struct Operand {
  int64_t row;
  int64_t column;
  int64_t image;
  int64_t group;
};

// d[m, n] = sum over k of a[m, k] b[k, n], for each image and group; or with the images in the sum.
struct Product {
  int m;
  int n;
  int k;
  int groups;
  int images;
  bool sum_images;
  Operand a;
  Operand b;
  Operand d;
};

__global__ __launch_bounds__(kThreads) void multiply(const float* a, const float* b, Epilogue end, float* d,
                                                     Product product) {
  __shared__ float left[kDepth][kTile + 1];
  __shared__ float right[kDepth][kTile + 1];
  const int group = static_cast<int>(blockIdx.z) % product.groups;
  const int image = static_cast<int>(blockIdx.z) / product.groups;
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / 16 * kPart;
  const int column = thread % 16;
  const int last_image = product.sum_images ? product.images : image + 1;
  float sums[kPart][kPart] = {};
  for (int of = image; of < last_image; ++of) {
    const float* from_a = a + of * product.a.image + group * product.a.group;
    const float* from_b = b + of * product.b.image + group * product.b.group;
    for (int k = 0; k < product.k; k += kDepth) {
      for (int i = thread; i < kTile * kDepth; i += kThreads) {
        // Neighbouring threads read neighbouring numbers, whichever way the matrix lies.
        const int am = product.a.column == 1 ? i / kDepth : i % kTile;
        const int ak = product.a.column == 1 ? i % kDepth : i / kTile;
        const bool a_inside = first_row + am < product.m && k + ak < product.k;
        left[ak][am] = a_inside ? from_a[(first_row + am) * product.a.row + (k + ak) * product.a.column] : 0.0F;
        const int bn = product.b.row == 1 ? i / kDepth : i % kTile;
        const int bk = product.b.row == 1 ? i % kDepth : i / kTile;
        const bool b_inside = first_column + bn < product.n && k + bk < product.k;
        right[bk][bn] = b_inside ? from_b[(k + bk) * product.b.row + (first_column + bn) * product.b.column] : 0.0F;
      }
      __syncthreads();
#pragma unroll
      for (int step = 0; step < kDepth; ++step) {
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
#pragma unroll
          for (int j = 0; j < kPart; ++j) sums[i][j] += left[step][row + i] * right[step][column + 16 * j];
        }
      }
      __syncthreads();
    }
  }
  float* to = d + image * product.d.image + group * product.d.group;
  for (int i = 0; i < kPart; ++i) {
    if (first_row + row + i >= product.m) return;
    const float bias = end.bias != nullptr ? end.bias[group * product.m + first_row + row + i] : 0.0F;
    for (int j = 0; j < kPart; ++j) {
      if (first_column + column + 16 * j >= product.n) continue;
      to[(first_row + row + i) * product.d.row + (first_column + column + 16 * j) * product.d.column] =
          finish(end, sums[i][j], bias);
    }
  }
}

struct Sizes {
  int64_t inputs;        // channels of x
  int64_t input_plane;   // pixels of a channel of x
  int64_t output_plane;  // pixels of a channel of y
  int64_t taps;

  constexpr explicit Sizes(const ConvolutionShape& s)
      : inputs(s.groups * s.group_inputs),
        input_plane(s.rows.inputs * s.columns.inputs),
        output_plane(s.rows.outputs * s.columns.outputs),
        taps(s.rows.taps * s.columns.taps) {}
};

// matrix[image, channel, tap, pixel], a thread an element.
__global__ void write_matrix(const float* x, float* matrix, ConvolutionShape shape) {
  const Sizes sizes(shape);
  const int64_t i = thread_index();
  if (i >= shape.batch * sizes.inputs * sizes.taps * sizes.output_plane) return;
  const int64_t q = i % shape.columns.outputs;
  const int64_t p = i / shape.columns.outputs % shape.rows.outputs;
  const int64_t tap = i / sizes.output_plane % sizes.taps;
  const int64_t plane = i / sizes.output_plane / sizes.taps;
  const int64_t row = p * shape.rows.stride - shape.rows.pad + tap / shape.columns.taps * shape.rows.dilation;
  const int64_t column =
      q * shape.columns.stride - shape.columns.pad + tap % shape.columns.taps * shape.columns.dilation;
  const bool inside = row >= 0 && row < shape.rows.inputs && column >= 0 && column < shape.columns.inputs;
  matrix[i] = inside ? x[plane * sizes.input_plane + row * shape.columns.inputs + column] : 0.0F;
}

// The output whose tap names the input; -1 where there is none.
__device__ int64_t output_of(const ConvolutionAxis& axis, int64_t input, int64_t tap) {
  const int64_t position = input + axis.pad - tap * axis.dilation;
  if (position < 0 || position % axis.stride != 0) return -1;
  const int64_t output = position / axis.stride;
  return output < axis.outputs ? output : -1;
}

// A thread an element of dx: the sum of its places in the matrix.
__global__ void add_matrix(const float* matrix, float* dx, ConvolutionShape shape) {
  const Sizes sizes(shape);
  const int64_t i = thread_index();
  if (i >= shape.batch * sizes.inputs * sizes.input_plane) return;
  const int64_t column = i % shape.columns.inputs;
  const int64_t row = i / shape.columns.inputs % shape.rows.inputs;
  const float* lines = matrix + i / sizes.input_plane * sizes.taps * sizes.output_plane;
  float sum = 0.0F;
  for (int64_t r = 0; r < shape.rows.taps; ++r) {
    const int64_t p = output_of(shape.rows, row, r);
    if (p < 0) continue;
    for (int64_t s = 0; s < shape.columns.taps; ++s) {
      const int64_t q = output_of(shape.columns, column, s);
      if (q < 0) continue;
      sum += lines[(r * shape.columns.taps + s) * sizes.output_plane + p * shape.columns.outputs + q];
    }
  }
  dx[i] = sum;
}

// The strides of the matrix, of dy or y, and of the filters, whose images are all the same.
struct Operands {
  Operand matrix;
  Operand results;
  Operand filters;

  explicit Operands(const ConvolutionShape& s) {
    const Sizes sizes(s);
    const int64_t lines = s.group_inputs * sizes.taps;
    matrix = {sizes.output_plane, 1, s.groups * lines * sizes.output_plane, lines * sizes.output_plane};
    results = {sizes.output_plane, 1, s.groups * s.group_outputs * sizes.output_plane,
               s.group_outputs * sizes.output_plane};
    filters = {lines, 1, 0, s.group_outputs * lines};
  }
};

Operand transposed(const Operand& operand) { return {operand.column, operand.row, operand.image, operand.group}; }

Product product_of(const ConvolutionShape& shape, int64_t m, int64_t n, int64_t k, bool sum_images) {
  return {.m = static_cast<int>(m),
          .n = static_cast<int>(n),
          .k = static_cast<int>(k),
          .groups = static_cast<int>(shape.groups),
          .images = static_cast<int>(shape.batch),
          .sum_images = sum_images,
          .a = {},
          .b = {},
          .d = {}};
}

void multiply_all(const Product& product, const float* a, const float* b, const Epilogue& end, float* d,
                  cudaStream_t stream) {
  const int count = product.groups * (product.sum_images ? 1 : product.images);
  launch(multiply,
         {dim3(grid_size(product.n, kTile), grid_size(product.m, kTile), static_cast<unsigned>(count)), dim3(kThreads)},
         stream, a, b, end, d, product);
}

int64_t matrix_size(const ConvolutionShape& shape) {
  const Sizes sizes(shape);
  return shape.batch * sizes.inputs * sizes.taps * sizes.output_plane;
}

void fprop(const ConvolutionShape& shape, const float* x, const float* w, const Epilogue& epilogue, float* y,
           float* matrix, cudaStream_t stream) {
  const Sizes sizes(shape);
  const Operands operands(shape);
  Product product = product_of(shape, shape.group_outputs, sizes.output_plane, shape.group_inputs * sizes.taps, false);
  product.a = operands.filters;
  product.b = operands.matrix;
  product.d = operands.results;
  launch(write_matrix, thread_each(matrix_size(shape)), stream, x, matrix, shape);
  multiply_all(product, w, matrix, epilogue, y, stream);
}

void dgrad(const ConvolutionShape& shape, const float* dy, const float* w, float* dx, float* matrix,
           cudaStream_t stream) {
  const Sizes sizes(shape);
  const Operands operands(shape);
  Product product = product_of(shape, shape.group_inputs * sizes.taps, sizes.output_plane, shape.group_outputs, false);
  product.a = transposed(operands.filters);
  product.b = operands.results;
  product.d = operands.matrix;
  multiply_all(product, w, dy, {}, matrix, stream);
  launch(add_matrix, thread_each(shape.batch * sizes.inputs * sizes.input_plane), stream, matrix, dx, shape);
}

void wgrad(const ConvolutionShape& shape, const float* dy, const float* x, float* dw, float* matrix,
           cudaStream_t stream) {
  const Sizes sizes(shape);
  const Operands operands(shape);
  Product product = product_of(shape, shape.group_outputs, shape.group_inputs * sizes.taps, sizes.output_plane, true);
  product.a = operands.results;
  product.b = transposed(operands.matrix);
  product.d = operands.filters;
  launch(write_matrix, thread_each(matrix_size(shape)), stream, x, matrix, shape);
  multiply_all(product, dy, matrix, {}, dw, stream);
}

std::string refuses(const ConvolutionProblem& problem) {
  const ConvolutionShape& shape = problem.shape;
  const double elements = static_cast<double>(shape.batch) * static_cast<double>(shape.groups * shape.group_inputs) *
                          static_cast<double>(shape.rows.taps * shape.columns.taps) *
                          static_cast<double>(shape.rows.outputs * shape.columns.outputs);
  if (elements * sizeof(float) > static_cast<double>(kMostConvolutionWorkspace)) return kTooMuchWorkspace;
  constexpr int64_t kMostGridDimension = 65535;
  if (shape.batch * shape.groups > kMostGridDimension) return "too many images";
  if (shape.group_outputs > (1 << 21) || shape.group_inputs * shape.rows.taps * shape.columns.taps > (1 << 21)) {
    return "too many channels";
  }
  return "";
}

uint64_t workspace_bytes(const ConvolutionProblem& problem) {
  return sizeof(float) * static_cast<uint64_t>(matrix_size(problem.shape));
}

void run(const ConvolutionProblem& problem, cudaStream_t stream, const OpArgs& args) {
  const auto* first = args.in<float>(0);
  const auto* second = args.in<float>(1);
  auto* out = args.out<float>(0);
  auto* matrix = args.workspace<float>();
  switch (problem.pass) {
    case ConvolutionPass::forward:
      return fprop(problem.shape, first, second, problem.epilogue(args), out, matrix, stream);
    case ConvolutionPass::backward_data:
      return dgrad(problem.shape, first, second, out, matrix, stream);
    case ConvolutionPass::backward_filter:
      return wgrad(problem.shape, first, second, out, matrix, stream);
  }
}

}  // namespace

ConvolutionVariant im2col_variant() {
  return {.name = "conv:1", .refuses = refuses, .workspace_bytes = workspace_bytes, .run = run, .candidate = false};
}

}  // namespace gpunn::cuda_tiled
