// TRANSPOSE, and COPY of f32, for tensors whose innermost dimensions differ. Tiles of 64 x 64 go through shared memory.
// They are read along x's rows and written along y's, so that both are coalesced. A thread has 16 loads in flight. In
// cuda_naive each thread reads 4 bytes of a separate 32-byte sector. COPY of packed tensors moves 16 bytes for each
// thread and access.
#include <cstdint>

#include "common/copy.hpp"
#include "common/shape.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "elementwise/each.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kTile = 64;
constexpr int kLanes = 32;
constexpr int kTileRows = 8;  // threads: 32 x 8
constexpr int kMostOuter = GPUNN_MAX_RANK - 2;

// y[outer..., i, j] = x[outer..., j, i] in a way: `i` runs along x's memory, `j` along y's.
struct Tiles {
  int64_t along_x = 0;  // elements
  int64_t along_y = 0;
  int64_t x_step = 0;  // of j
  int64_t y_step = 0;  // of i
  int32_t outer_rank = 0;
  int64_t outer = 1;
  int64_t dim[kMostOuter] = {};
  int64_t x_stride[kMostOuter] = {};
  int64_t y_stride[kMostOuter] = {};
  int64_t packed = 0;  // elements of a copy that is packed on both sides; then nothing of the above
};

template <class T>
__global__ void __launch_bounds__(kLanes* kTileRows) move_tiles(const T* x, T* y, Tiles z) {
  __shared__ T tile[kTile][kTile + 4 / sizeof(T)];  // rows begin a bank apart
  int64_t rest = blockIdx.z;
  for (int32_t d = z.outer_rank - 1; d >= 0; --d) {
    const int64_t position = rest % z.dim[d];
    rest /= z.dim[d];
    x += position * z.x_stride[d];
    y += position * z.y_stride[d];
  }
  const int64_t first_x = int64_t{blockIdx.x} * kTile;
  const int64_t first_y = int64_t{blockIdx.y} * kTile;
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int j = 0; j < kTile; j += kTileRows) {
#pragma unroll
    for (int i = 0; i < kTile; i += kLanes) {
      const bool there = first_y + row + j < z.along_y && first_x + lane + i < z.along_x;
      if (there) tile[row + j][lane + i] = x[(first_y + row + j) * z.x_step + first_x + lane + i];
    }
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kTile; j += kTileRows) {
#pragma unroll
    for (int i = 0; i < kTile; i += kLanes) {
      const bool there = first_x + row + j < z.along_x && first_y + lane + i < z.along_y;
      if (there) y[(first_x + row + j) * z.y_step + first_y + lane + i] = tile[lane + i][row + j];
    }
  }
}

struct Same {
  static constexpr int kReads = 1, kWrites = 1;
  __device__ void begin() {}
  __device__ void operator()(int64_t /*i*/, const float (&in)[1], float (&out)[1]) const { out[0] = in[0]; }
};

Tiles tiles_of(const Copy& loops) {
  constexpr int64_t kMostGrid = 65535;
  Tiles z;
  const int32_t last = loops.rank - 1;
  require(loops.y_stride[last] == 1, "y's innermost dimension has a stride");
  if (loops.rank == 1 && loops.x_stride[0] == 1) {
    z.packed = loops.n;
    return z;
  }
  require(loops.x_stride[last] != 1, "rows are contiguous on both sides: the base reads them as well");
  int32_t inner = -1;
  for (int32_t d = 0; d < last; ++d) {
    if (loops.x_stride[d] == 1 && loops.dim[d] > 1) inner = d;
  }
  require(inner >= 0, "no dimension of x is contiguous");
  require(loops.dim[inner] >= 8 && loops.dim[last] >= 8, "a tile would be mostly empty");
  z.along_x = loops.dim[inner];
  z.along_y = loops.dim[last];
  z.x_step = loops.x_stride[last];
  z.y_step = loops.y_stride[inner];
  for (int32_t d = 0; d < last; ++d) {
    if (d == inner) continue;
    z.dim[z.outer_rank] = loops.dim[d];
    z.x_stride[z.outer_rank] = loops.x_stride[d];
    z.y_stride[z.outer_rank] = loops.y_stride[d];
    z.outer *= loops.dim[d];
    ++z.outer_rank;
  }
  require(z.outer <= kMostGrid && cuda::divide_up(z.along_y, kTile) <= kMostGrid &&
              cuda::divide_up(z.along_x, kTile) < (int64_t{1} << 31),
          "more tiles than a grid has");
  return z;
}

Tiles transpose_tiles(const OpDesc& desc) {
  const Box box = transpose_of(desc);
  require(box.loops.n > 0, "there is nothing to move");
  return tiles_of(box.loops);
}

Tiles copy_tiles(const OpDesc& desc) {
  const Copy loops = copy_of(desc);
  require(loops.from == GPUNN_F32 && loops.to == GPUNN_F32, "only f32 gains here");
  require(loops.n > 0, "there is nothing to move");
  return tiles_of(loops);
}

template <class T>
void run_moves(const Tiles& z, cudaStream_t stream, const OpArgs& args) {
  if (z.packed > 0) return each<T>(Same{}, {{args.in<T>(0)}, {args.out<T>(0)}}, z.packed, stream);
  launch(move_tiles<T>,
         {dim3(cuda::grid_size(z.along_x, kTile), cuda::grid_size(z.along_y, kTile), static_cast<unsigned>(z.outer)),
          dim3(kLanes, kTileRows)},
         stream, args.in<T>(0), args.out<T>(0), z);
}

}  // namespace

void add_shape_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_TRANSPOSE, "transpose", transpose_tiles,
         each_floating([](auto x) { return run_moves<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_COPY, "copy", copy_tiles, run_moves<float>);
}

}  // namespace gpunn::cuda_tiled
