// A backend with one kernel: the matrix product on an NVIDIA GPU, with tiles in shared memory. The base, "cuda_naive",
// runs all other ops, on the same memory and the same stream.
#include <gpunn/plugin.hpp>
#include <gpunn/plugin_cuda.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace {

using namespace gpunn::plugin;

// y[m,n] = op(a) op(b), with k terms in a sum.
struct Product {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
};

constexpr int kTile = 64;             // rows and columns of y that a block computes
constexpr int kDepth = 16;            // terms of its sums that lie in shared memory at a time
constexpr int kSide = 16;             // a block is 16 x 16 threads, and each computes
constexpr int kEach = kTile / kSide;  // 4 x 4 numbers, for which it reads 8 from shared memory, not 32
constexpr int kThreads = kSide * kSide;
constexpr int kPad = 2;  // keeps the threads of a warp on different banks where they store a row as a column

// Thread (tx, ty) computes rows ty, ty + 16, ... and columns tx, tx + 16, ...: neighbouring threads then read
// neighbouring words of tile_b and write neighbouring words of y.
template <bool TransposeA, bool TransposeB>
__global__ void __launch_bounds__(kThreads)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ y, Product p) {
  __shared__ float tile_a[kDepth][kTile + kPad];
  __shared__ float tile_b[kDepth][kTile + kPad];
  const int64_t blocks_across = (p.n + kTile - 1) / kTile;
  const int64_t first_row = blockIdx.x / blocks_across * kTile;
  const int64_t first_column = blockIdx.x % blocks_across * kTile;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;

  float sum[kEach][kEach] = {};
  for (int64_t depth = 0; depth < p.k; depth += kDepth) {
    for (int i = threadIdx.x; i < kDepth * kTile; i += kThreads) {
      // Whichever way a matrix lies, neighbouring threads read neighbouring words of it. Beyond its edge all is 0.
      const int da = TransposeA ? i / kTile : i % kDepth, row = TransposeA ? i % kTile : i / kDepth;
      const int db = TransposeB ? i % kDepth : i / kTile, column = TransposeB ? i / kDepth : i % kTile;
      const bool has_a = depth + da < p.k && first_row + row < p.m;
      const bool has_b = depth + db < p.k && first_column + column < p.n;
      const int64_t at_a = TransposeA ? (depth + da) * p.m + first_row + row : (first_row + row) * p.k + depth + da;
      const int64_t at_b =
          TransposeB ? (first_column + column) * p.k + depth + db : (depth + db) * p.n + first_column + column;
      tile_a[da][row] = has_a ? a[at_a] : 0.0F;
      tile_b[db][column] = has_b ? b[at_b] : 0.0F;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) sum[i][j] += tile_a[d][ty + i * kSide] * tile_b[d][tx + j * kSide];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = first_row + ty + i * kSide, column = first_column + tx + j * kSide;
      if (row < p.m && column < p.n) y[row * p.n + column] = sum[i][j];
    }
  }
}

int64_t blocks_of(const Product& p) { return ((p.m + kTile - 1) / kTile) * ((p.n + kTile - 1) / kTile); }

Product product_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_matmul_attrs>();
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  return {.transpose_a = ta,
          .transpose_b = tb,
          .m = desc.input(0).dim[ta ? 1 : 0],
          .n = desc.input(1).dim[tb ? 0 : 1],
          .k = desc.input(0).dim[ta ? 0 : 1]};
}

// Whether the op is served at these sizes. That tensors and attributes fit the op, gpunn has checked. What is refused
// goes to the base, so only say yes to what the kernel gets right.
Support query_matmul(const OpDesc& desc) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const Product p = product_of(desc);
  if (std::max({p.m, p.n, p.k}) > most) return Support::no("sizes up to " + std::to_string(most) + " only");
  if (blocks_of(p) > most) return Support::no("up to 2^31 - 1 tiles of 64 x 64 only");
  return Support::yes();  // the same bits each time, and nothing that a graph could not capture
}

std::unique_ptr<Kernel> create_matmul(const OpDesc& desc) {
  return make_kernel([p = product_of(desc)](Stream& stream, const OpArgs& args) {
    const auto blocks = static_cast<unsigned>(blocks_of(p));
    if (blocks == 0) return;
    const auto kernel = p.transpose_a ? (p.transpose_b ? multiply<true, true> : multiply<true, false>)
                                      : (p.transpose_b ? multiply<false, true> : multiply<false, false>);
    kernel<<<blocks, kThreads, 0, cuda_stream(stream)>>>(args.in<float>(0), args.in<float>(1), args.out<float>(0), p);
    check_cuda(cudaGetLastError(), "launching the product");
  });
}

// CudaDevice brings memory, streams and events; what is left to add is the kernel.
class TiledDevice final : public CudaDevice {
 public:
  explicit TiledDevice(const gpunn_device_options& options) : CudaDevice(options) {
    add(GPUNN_OP_MATMUL, {.query = query_matmul, .create = create_matmul});
  }
};

class TiledBackend final : public Backend {
 public:
  const char* name() const override { return "tiled_matmul"; }
  const char* version() const override { return "1.0.0"; }
  const char* build() const override { return "CUDA architectures " ARCHITECTURES; }
  const char* base() const override { return "cuda_naive"; }
  bool concurrent_streams() const override { return true; }  // kernels keep nothing between or beside launches
  int probe() override { return probe_cuda(reinterpret_cast<const void*>(multiply<false, false>), ARCHITECTURES); }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    return std::make_unique<TiledDevice>(options);
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<TiledBackend>(major, minor);
}
