// COPY between f32, bf16 and f16, and from u8 to u8, for two cases. In the first the copy transposes a batch of
// matrices, such as packed images x[N,C,H,W] to channels-last ones. In the second both tensors have the same layout.
//
// A thread block moves a tile of a matrix through shared memory. It reads along x's rows and writes along y's, both
// coalesced. Many matrices are flat: 3x3 filters have 9 elements a row, images 3 channels. The tile then covers the
// whole short side and more of the long one. Its elements are assigned to threads by their number in the tile, so that
// no thread is idle. If x's rows are the short side, the tile is one contiguous range of x's memory.
//
// Tensors of the same layout are copied as in each.cuh but with two dtypes: 16 bytes of the wider one for each thread
// and access.
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/copy.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "pack.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr uint32_t kSide = 64;           // of a tile, where the matrix has as many rows and columns
constexpr uint32_t kElements = 64 * 64;  // of a tile
constexpr uint32_t kSlots = 6 * 1024;    // of a tile in shared memory, with the gaps between its rows
constexpr uint32_t kBanks = 32;          // of shared memory, each 4 bytes wide
constexpr int kSteps = kElements / cuda::kThreads;

// n / by, in one multiplication: of n to kElements, by 2 to kElements.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(uint32_t by) : inverse_(static_cast<uint32_t>((uint64_t{1} << 32) / by + 1)) {}
  __device__ uint32_t quotient(uint32_t n) const { return __umulhi(n, inverse_); }

 private:
  uint32_t inverse_ = 0;
};

// y[m, j, i] = x[m, i, j], m being the number of a matrix: x has `rows` rows and `columns` columns.
struct Transpose {
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t tile_rows = 0;
  uint32_t tile_columns = 0;
  uint32_t pitch = 0;  // of a tile's rows in shared memory
  uint32_t tiles_down = 0;
  uint32_t tiles_across = 0;
  int64_t blocks = 0;
  Divisor by_tile_rows = {};
  Divisor by_tile_columns = {};
};

struct CopyPlan {
  int32_t from = 0;
  int32_t to = 0;
  int64_t alike = 0;  // elements of a copy whose two sides lie alike; 0: it is a transpose
  Transpose transpose = {};
};

template <class To, class From>
__device__ To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else {
    return static_cast<To>(static_cast<float>(value));
  }
}

// As wide as a bank, so that threads that read down a column of a tile meet different banks whatever the dtype.
template <class T>
struct alignas(4) Slot {
  T value;
};

// Of an element in a tile.
struct Place {
  uint32_t row;
  uint32_t column;
};

template <class From, class To>
__global__ void __launch_bounds__(cuda::kThreads) transpose(const From* x, To* y, Transpose z) {
  __shared__ Slot<To> tile[kSlots];
  const uint32_t across = blockIdx.x % z.tiles_across;
  const uint32_t down = blockIdx.x / z.tiles_across % z.tiles_down;
  const uint32_t matrix = blockIdx.x / z.tiles_across / z.tiles_down;
  const uint32_t first_row = down * z.tile_rows;
  const uint32_t first_column = across * z.tile_columns;
  const uint32_t rows = min(z.tile_rows, z.rows - first_row);  // that the matrix has, of the tile's
  const uint32_t columns = min(z.tile_columns, z.columns - first_column);
  const int64_t before = int64_t{matrix} * z.rows * z.columns;
  x += before + first_row * z.columns + first_column;
  y += before + first_column * z.rows + first_row;
  const auto along_x = [&](int step) {
    const uint32_t i = step * cuda::kThreads + threadIdx.x;
    const uint32_t row = z.by_tile_columns.quotient(i);
    return Place{row, i - row * z.tile_columns};
  };
  const auto along_y = [&](int step) {
    const uint32_t i = step * cuda::kThreads + threadIdx.x;
    const uint32_t column = z.by_tile_rows.quotient(i);
    return Place{i - column * z.tile_rows, column};
  };
  const auto inside = [&](Place at) { return at.row < rows && at.column < columns; };
  From values[kSteps];  // all loads are under way before the first is waited for
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Place at = along_x(step);
    if (inside(at)) values[step] = x[at.row * z.columns + at.column];
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Place at = along_x(step);
    if (inside(at)) tile[at.row * z.pitch + at.column].value = convert<To>(values[step]);
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Place at = along_y(step);
    if (inside(at)) y[at.column * z.rows + at.row] = tile[at.row * z.pitch + at.column].value;
  }
}

template <class From, class To, int width, int steps>
__global__ void __launch_bounds__(cuda::kThreads) convert_each(const From* x, To* y, int64_t n) {
  const int64_t first = (int64_t{blockIdx.x} * steps * cuda::kThreads + threadIdx.x) * width;
  constexpr int64_t kStep = int64_t{cuda::kThreads} * width;
  const int64_t end = n / width * width;
  Pack<From, width> in[steps];
#pragma unroll
  for (int s = 0; s < steps; ++s) {
    const int64_t i = first + s * kStep;
    if (i < end) in[s] = *reinterpret_cast<const Pack<From, width>*>(x + i);
  }
#pragma unroll
  for (int s = 0; s < steps; ++s) {
    const int64_t i = first + s * kStep;
    if (i >= end) break;
    Pack<To, width> out;
#pragma unroll
    for (int k = 0; k < width; ++k) out.values[k] = convert<To>(in[s].values[k]);
    *reinterpret_cast<Pack<To, width>*>(y + i) = out;
  }
  if (blockIdx.x == 0 && end + threadIdx.x < n) y[end + threadIdx.x] = convert<To>(x[end + threadIdx.x]);  // the last
}

template <class From, class To, int width, int steps>
void launch_each(const From* x, To* y, int64_t n, cudaStream_t stream) {
  const int64_t blocks = divide_up(n, int64_t{cuda::kThreads} * width * steps);
  launch(convert_each<From, To, width, steps>, block_each(blocks), stream, x, y, n);
}

template <class From, class To>
void run_alike(const From* x, To* y, int64_t n, cudaStream_t stream) {
  constexpr int kWidth = 16 / std::max(sizeof(From), sizeof(To));
  constexpr int kMostSteps = 16 / kWidth;      // as many elements a thread, whatever their size
  constexpr int64_t kMany = int64_t{1} << 22;  // elements from which on fewer, fuller threads fill the GPU
  const bool aligned = are_aligned({x, y}, 16);
  if (aligned && n >= kMany) {
    launch_each<From, To, kWidth, kMostSteps>(x, y, n, stream);
  } else if (aligned) {
    launch_each<From, To, kWidth, 1>(x, y, n, stream);
  } else {
    launch_each<From, To, 1, 4>(x, y, n, stream);
  }
}

template <class From, class To>
void run_pair(const CopyPlan& plan, cudaStream_t stream, const OpArgs& args) {
  const From* x = args.in<From>(0);
  To* y = args.out<To>(0);
  if (plan.alike > 0) return run_alike(x, y, plan.alike, stream);
  launch(transpose<From, To>, block_each(plan.transpose.blocks), stream, x, y, plan.transpose);
}

template <class From>
void run_from(const CopyPlan& plan, cudaStream_t stream, const OpArgs& args) {
  switch (plan.to) {
    case GPUNN_BF16:
      return run_pair<From, __nv_bfloat16>(plan, stream, args);
    case GPUNN_F16:
      return run_pair<From, __half>(plan, stream, args);
    default:
      return run_pair<From, float>(plan, stream, args);
  }
}

void run_copy(const CopyPlan& plan, cudaStream_t stream, const OpArgs& args) {
  switch (plan.from) {
    case GPUNN_BF16:
      return run_from<__nv_bfloat16>(plan, stream, args);
    case GPUNN_F16:
      return run_from<__half>(plan, stream, args);
    case GPUNN_U8:
      return run_pair<uint8_t, uint8_t>(plan, stream, args);
    default:
      return run_from<float>(plan, stream, args);
  }
}

// The size of tiles of at most `most` that share out n evenly; large ones begin at multiples of 32 bytes of half
// precision, where n is one.
uint32_t even_share(uint32_t n, uint32_t most) {
  constexpr uint32_t kAlign = 16;
  if (n <= most) return n;
  if (most >= kAlign) most = most / kAlign * kAlign;
  const uint32_t share = divide_up(n, divide_up(n, most));
  return most >= kAlign ? divide_up(share, kAlign) * kAlign : share;
}

Transpose cut(uint32_t rows, uint32_t columns) {
  Transpose z{.rows = rows, .columns = columns};
  z.tile_rows = even_share(rows, columns < kSide ? kElements / columns : kSide);
  z.tile_columns = even_share(columns, rows < kSide ? kElements / rows : kSide);
  // Threads that read the tile go down its columns, from bank to bank by the pitch; where a column is shorter than the
  // banks are many, the next column goes on with the banks between.
  const uint32_t step = divide_up(kBanks, z.tile_rows);
  z.pitch = step == 1 ? z.tile_columns | 1U : z.tile_columns + (kBanks + step - z.tile_columns % kBanks) % kBanks;
  z.tiles_down = divide_up(rows, z.tile_rows);
  z.tiles_across = divide_up(columns, z.tile_columns);
  z.by_tile_rows = Divisor(z.tile_rows);
  z.by_tile_columns = Divisor(z.tile_columns);
  return z;
}

Transpose transpose_plan_of(const Copy& loops) {
  constexpr int64_t kMost = INT32_MAX;
  constexpr int64_t kFew = 128;
  require(loops.rank == 2 || loops.rank == 3, "neither one matrix nor a row of them");
  const int32_t last = loops.rank - 1;
  const int64_t rows = loops.dim[last];  // y's memory runs along them
  const int64_t columns = loops.dim[last - 1];
  require(loops.y_stride[last] == 1 && loops.y_stride[last - 1] == rows, "y's rows have gaps");
  require(loops.x_stride[last - 1] == 1 && loops.x_stride[last] == columns, "x is not y transposed");
  require(rows < kMost && columns < kMost && rows * columns < kMost, "a matrix has more than 2^31 elements");
  require(rows * columns >= kFew, "a block would be mostly idle");
  int64_t matrices = 1;
  if (loops.rank == 3) {
    const int64_t size = rows * columns;
    require(loops.x_stride[0] == size && loops.y_stride[0] == size, "there are gaps between the matrices");
    matrices = loops.dim[0];
  }
  Transpose z = cut(static_cast<uint32_t>(rows), static_cast<uint32_t>(columns));
  const int64_t tiles = int64_t{z.tiles_down} * z.tiles_across;
  require(matrices <= kMost / tiles, "more tiles than a grid has");
  z.blocks = matrices * tiles;
  return z;
}

CopyPlan plan_copy(const OpDesc& desc) {
  const Copy loops = copy_of(desc);
  const bool bytes = loops.from == GPUNN_U8 && loops.to == GPUNN_U8;
  require(bytes || (ops::is_floating(loops.from) && ops::is_floating(loops.to)),
          "only floating dtypes and u8 gain here");
  require(loops.n > 0, "there is nothing to move");
  CopyPlan plan{.from = loops.from, .to = loops.to};
  const bool f32 = loops.from == GPUNN_F32 && loops.to == GPUNN_F32;
  if (loops.rank == 1 && loops.x_stride[0] == 1 && loops.y_stride[0] == 1) {
    require(!f32, "elementwise/shape.cu copies these");
    plan.alike = loops.n;
    return plan;
  }
  plan.transpose = transpose_plan_of(loops);
  require(!f32 || plan.transpose.rows < kSide || plan.transpose.columns < kSide, "elementwise/shape.cu copies these");
  return plan;
}

}  // namespace

// Registered before those of elementwise/shape.cu, of which it thus takes the flat matrices of f32.
void add_copy_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_COPY, "copy", plan_copy, run_copy, Dtypes::floating);
}

}  // namespace gpunn::cuda_tiled
