// The gradient of max pooling for channels-last images. A thread block has a tile of an image's pixels, at some packs
// of channels. It finds the maximum of each window that overlaps the tile and keeps its pixel and the window's gradient
// in shared memory. Then each pixel of the tile adds the gradients of the windows whose maximum it is. The images are
// read once, except for windows that extend beyond the tile. No two threads write the same place, so the order of the
// sums is fixed.
#include <gpunn/abi.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cuda_common/launch.hpp"
#include "pooling/channels_last.cuh"
#include "pooling/maximum.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::pooling_last {
namespace {

// Of a window, at a pack of channels.
template <class T, int width>
struct Won {
  int pixel[width];  // of the image, numbered row by row
  Pack<T, width> gradient;
};

struct Tiling {
  int rows = 0, columns = 0;  // pixels of a tile
  int packs = 0;              // of a tile
  int windows = 0;            // that hold a pixel of a tile, at most
  int64_t tiles = 0;
  Divider by_groups, by_columns, by_rows;  // groups of packs, columns and rows of tiles
  Divider by_packs, by_tile_columns;       // within a tile
};

template <class T, int width, int kWindow>
__global__ void __launch_bounds__(cuda::kThreads)
    maximum_backward(const T* dy, const T* x, T* dx, Images z, Tiling tiling) {
  extern __shared__ float4 shared_memory[];
  auto* const won = reinterpret_cast<Won<T, width>*>(shared_memory);
  const auto [tile, group] = tiling.by_groups(static_cast<int>(blockIdx.x));
  const auto [line, tile_column] = tiling.by_columns(tile);
  const auto [image, tile_row] = tiling.by_rows(line);
  const int first_row = tile_row * tiling.rows, first_column = tile_column * tiling.columns;
  const int end_row = min(first_row + tiling.rows, z.rows.inputs);
  const int end_column = min(first_column + tiling.columns, z.columns.inputs);
  const Span p = {outputs_of(z.rows, first_row).begin, outputs_of(z.rows, end_row - 1).end};
  const Span q = {outputs_of(z.columns, first_column).begin, outputs_of(z.columns, end_column - 1).end};
  const int window_columns = q.end - q.begin;
  const int windows = max(p.end - p.begin, 0) * max(window_columns, 0);
  const int first_pack = group * tiling.packs;
  const auto channel_of = [&](int pack) { return (first_pack + pack) * width; };

  for (int i = static_cast<int>(threadIdx.x); i < windows * tiling.packs; i += cuda::kThreads) {
    const auto [window, pack] = tiling.by_packs(i);
    if (first_pack + pack >= z.packs) continue;
    const Place at(image, p.begin + window / window_columns, q.begin + window % window_columns, channel_of(pack));
    const Span rows = inputs_of(z.rows, at.row);
    const Span columns = inputs_of(z.columns, at.column);
    const auto pixels = input_pixels<const T, width>(x, z, at);
    Won<T, width>& mine = won[i];
    float most[width];
    int pixel[width];
    const auto first = pixels.read(rows.begin, columns.begin);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      most[k] = static_cast<float>(first.values[k]);
      pixel[k] = rows.begin * z.columns.inputs + columns.begin;
    }
    for_window<kWindow>(rows, columns, [&](int row, int column) {
      const auto values = pixels.read(row, column);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const auto value = static_cast<float>(values.values[k]);
        if (!beats(value, most[k])) continue;
        most[k] = value;
        pixel[k] = row * z.columns.inputs + column;
      }
    });
#pragma unroll
    for (int k = 0; k < width; ++k) mine.pixel[k] = pixel[k];
    mine.gradient = output_pixels<const T, width>(dy, z, at).read(at.row, at.column);
  }
  __syncthreads();

  const int pixels_of_tile = tiling.rows * tiling.columns;
  for (int i = static_cast<int>(threadIdx.x); i < pixels_of_tile * tiling.packs; i += cuda::kThreads) {
    const auto [of_tile, pack] = tiling.by_packs(i);
    const auto [row_of_tile, column_of_tile] = tiling.by_tile_columns(of_tile);
    const Place at(image, first_row + row_of_tile, first_column + column_of_tile, channel_of(pack));
    if (at.row >= end_row || at.column >= end_column || first_pack + pack >= z.packs) continue;
    const Span mine_p = outputs_of(z.rows, at.row);
    const Span mine_q = outputs_of(z.columns, at.column);
    const int pixel = at.row * z.columns.inputs + at.column;
    float sum[width] = {};
    for (int row = mine_p.begin; row < mine_p.end; ++row) {
      for (int column = mine_q.begin; column < mine_q.end; ++column) {
        const Won<T, width>& window = won[((row - p.begin) * window_columns + column - q.begin) * tiling.packs + pack];
#pragma unroll
        for (int k = 0; k < width; ++k) {
          if (window.pixel[k] == pixel) sum[k] += static_cast<float>(window.gradient.values[k]);
        }
      }
    }
    store<T, width>(input_pixels<T, width>(dx, z, at).at(at.row, at.column), sum);
  }
}

// Windows that hold one of so many neighbouring pixels, at most.
int64_t windows_of(const PoolAxis& axis, int64_t pixels) {
  return std::min(axis.outputs, (pixels + axis.window - 2) / axis.stride + 1);
}

constexpr int64_t kTilePixels = 16;         // of a side
constexpr int64_t kTilePacks = 8;           // 128 bytes of a pixel
constexpr int64_t kUsualShared = 40 << 10;  // bytes: several blocks a multiprocessor
constexpr int64_t kMostShared = 200 << 10;
constexpr int64_t kBytesOfWon = 48;  // at the widest pack of any dtype, at least

// The largest tile that is small enough. Nothing where windows are so large that there is none.
std::optional<Tiling> tiling_of(const Pool& pool, int64_t packs) {
  int64_t side = kTilePixels, packs_of_tile = std::min(packs, kTilePacks);
  const auto rows = [&] { return std::min(side, pool.rows.inputs); };
  const auto columns = [&] { return std::min(side, pool.columns.inputs); };
  const auto windows = [&] { return windows_of(pool.rows, rows()) * windows_of(pool.columns, columns()); };
  const auto bytes = [&] { return windows() * packs_of_tile * kBytesOfWon; };
  while (bytes() > kUsualShared && (packs_of_tile > 1 || side > 1)) {
    // Small tiles look at most windows several times, few packs leave sectors of memory half read.
    if (packs_of_tile > 2 || side == 1) {
      packs_of_tile = cuda::divide_up(packs_of_tile, 2);
    } else {
      side /= 2;
    }
  }
  if (bytes() > kMostShared) return std::nullopt;
  const int64_t groups = cuda::divide_up(packs, packs_of_tile);
  const int64_t tile_columns = cuda::divide_up(pool.columns.inputs, columns());
  const int64_t tile_rows = cuda::divide_up(pool.rows.inputs, rows());
  const int64_t images = pool.planes / pool.channels;
  return Tiling{.rows = static_cast<int>(rows()),
                .columns = static_cast<int>(columns()),
                .packs = static_cast<int>(packs_of_tile),
                .windows = static_cast<int>(windows()),
                .tiles = images * tile_rows * tile_columns * groups,
                .by_groups = Divider(groups),
                .by_columns = Divider(tile_columns),
                .by_rows = Divider(tile_rows),
                .by_packs = Divider(packs_of_tile),
                .by_tile_columns = Divider(columns())};
}

}  // namespace

void require_gradient_served(const Pool& pool) {
  require_served(pool);
  backends::require(tiling_of(pool, 1).has_value(), "a pixel is in too many windows for shared memory");
}

void run_maximum_backward(const Pool& pool, int32_t dtype, const void* dy, const void* x, void* dx,
                          cudaStream_t stream) {
  with_packs(pool, dtype, [&](auto type, auto number) {
    using T = decltype(type);
    constexpr int width = decltype(number)::value;
    static_assert(sizeof(Won<T, width>) <= kBytesOfWon);
    const Images z(pool, width, true);
    const Tiling tiling = *tiling_of(pool, z.packs);
    const auto kernel = is_square(pool, 3)   ? maximum_backward<T, width, 3>
                        : is_square(pool, 2) ? maximum_backward<T, width, 2>
                                             : maximum_backward<T, width, 0>;
    cuda::Launch launch = cuda::block_each(tiling.tiles);
    launch.shared_bytes = static_cast<unsigned>(tiling.windows * tiling.packs * sizeof(Won<T, width>));
    allow_shared_memory(kernel, launch.shared_bytes);
    cuda::launch(kernel, launch, stream, static_cast<const T*>(dy), static_cast<const T*>(x), static_cast<T*>(dx), z,
                 tiling);
  });
}

}  // namespace gpunn::cuda_tiled::pooling_last
