// QUANTIZED_MAX_POOL2D and QUANTIZED_CONCAT. A thread handles 16 bytes where channels, or runs of bytes, are multiples
// of 16, else four. Four bytes are compared in one instruction.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "common/pooling.hpp"
#include "common/shape.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "divider.cuh"
#include "kernels.hpp"
#include "pack.cuh"
#include "pooling/channels_last.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

// --- QUANTIZED_MAX_POOL2D ---

template <int words, int kWindow>
__global__ void __launch_bounds__(kThreads)
    largest_bytes(const uint8_t* x, uint8_t* y, const __grid_constant__ pooling_last::Images z) {
  using namespace pooling_last;
  using Words = Pack<uint32_t, words>;
  constexpr int width = 4 * words;
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at(z, i, width);
  const Span rows = inputs_of(z.rows, at.row);
  const Span columns = inputs_of(z.columns, at.column);
  const auto pixels = input_pixels<const uint8_t, width>(x, z, at);
  Words most = {};  // the least that is stored
  for_window<kWindow>(rows, columns, [&](int row, int column) {
    const Words pixel = *reinterpret_cast<const Words*>(pixels.at(row, column));
#pragma unroll
    for (int k = 0; k < words; ++k) most.values[k] = __vmaxu4(most.values[k], pixel.values[k]);
  });
  *reinterpret_cast<Words*>(output_pixels<uint8_t, width>(y, z, at).at(at.row, at.column)) = most;
}

Pool byte_pool_of(const OpDesc& desc) {
  const Pool pool = max_pool_of(desc);
  require(pool.channels_last && pool.channels % 4 == 0, "is for channels-last images of a multiple of 4 channels");
  pooling_last::require_served(pool);
  return pool;
}

template <int words>
void launch_largest(const Pool& pool, cudaStream_t stream, const OpArgs& args) {
  const pooling_last::Images z(pool, 4 * words, false);
  const auto kernel = pooling_last::is_square(pool, 3)   ? largest_bytes<words, 3>
                      : pooling_last::is_square(pool, 2) ? largest_bytes<words, 2>
                                                         : largest_bytes<words, 0>;
  launch(kernel, thread_each(z.count), stream, args.in<uint8_t>(0), args.out<uint8_t>(0), z);
}

void run_largest(const Pool& pool, cudaStream_t stream, const OpArgs& args) {
  (pool.channels % 16 == 0 ? launch_largest<4> : launch_largest<1>)(pool, stream, args);
}

// --- QUANTIZED_CONCAT ---

constexpr std::size_t kMostInputs = 16;

struct ChunkConcat {
  int64_t chunk = 16;  // bytes
  int64_t count = 0;   // of chunks
  int inputs = 0;
  Divider row;                      // chunks
  int end[kMostInputs] = {};        // of an input's chunks in a row
  const void* x[kMostInputs] = {};  // at each call
};

template <class Chunk>
__global__ void __launch_bounds__(kThreads) gather_runs(const __grid_constant__ ChunkConcat z, Chunk* y) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Divider::Result at = z.row(i);
  int input = 0, begin = 0;
  while (at.rest >= z.end[input]) begin = z.end[input++];
  const int64_t from = int64_t{at.quotient} * (z.end[input] - begin) + at.rest - begin;
  y[i] = static_cast<const Chunk*>(z.x[input])[from];
}

ChunkConcat chunk_concat_of(const OpDesc& desc) {
  const ByteConcat bytes = byte_concat_of(desc);
  require(bytes.runs.size() <= kMostInputs, "is for up to 16 inputs");
  ChunkConcat z;
  for (const int64_t run : bytes.runs) z.chunk = std::gcd(z.chunk, run);
  z.chunk = z.chunk == 16 ? 16 : z.chunk >= 4 ? 4 : 1;
  z.count = bytes.rows * bytes.row / z.chunk;
  require(z.count < int64_t{1} << 31, "is for fewer than 2^31 accesses");
  z.row = Divider(bytes.row / z.chunk);
  int64_t end = 0;
  for (const int64_t run : bytes.runs) {
    end += run / z.chunk;
    z.end[z.inputs++] = static_cast<int>(end);
  }
  return z;
}

template <class Chunk>
void launch_gather(const ChunkConcat& z, cudaStream_t stream, const OpArgs& args) {
  launch(gather_runs<Chunk>, thread_each(z.count), stream, z, args.out<Chunk>(0));
}

void run_concat(const ChunkConcat& plan, cudaStream_t stream, const OpArgs& args) {
  ChunkConcat z = plan;
  for (int i = 0; i < z.inputs; ++i) z.x[i] = args.in<void>(static_cast<std::size_t>(i));
  const auto run = z.chunk == 16  ? launch_gather<uint4>
                   : z.chunk == 4 ? launch_gather<uint32_t>
                                  : launch_gather<uint8_t>;
  run(z, stream, args);
}

}  // namespace

void add_quantized_moves_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_QUANTIZED_MAX_POOL2D, "quantized_max_pool2d", byte_pool_of, run_largest, Dtypes::f32,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_QUANTIZED_CONCAT, "quantized_concat", chunk_concat_of, run_concat, Dtypes::f32,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
