// Dense layers of a fused training step, for the images of a cluster. A block has `slice` rows of w in shared memory
// (an eighth of them, or all) and computes their outputs for all images.
//
// Forward: y[image][row] = x[image] . w[row]. A warp has 16 rows and a share of the length; a thread has one image and
// 4 rows. 8 threads read one row by 16 bytes (a broadcast), and 4 threads one image: 5 accesses without a conflict for
// 16 multiplications a thread. The warps that share a length leave their sums in scratch, to be added in order.
//
// Backward needs the columns of w, but the block only has its rows. So it computes from its own rows' dy a share of
// every image's dx and sends each share to the block that needs it, which adds the eight in order. w is stored once.
#pragma once

#include "subgraphs/step/shared.cuh"
#include "subgraphs/step/sync.cuh"

namespace gpunn::cuda_tiled {

// Both x and w hold zeros from `inputs` to the next multiple of 4. Leaves [split][row][image].
template <class B>
__device__ __forceinline__ void dense_product(int layer, int rows) {
  const DensePlan& dense = shared_plan().dense[layer];
  float* shared = shared_floats();
  float* sums = shared + shared_plan().scratch;
  constexpr int kGroups = 32 / B::kImages;
  constexpr int kTile = dense_tile(B::kImages);
  const int tiles = rows > 0 ? (rows + kTile - 1) / kTile : 0;
  const int splits = dense.splits;
  const int fours = (dense.inputs + 3) / 4;
  const int pitch = dense.x_pitch;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int image = lane % B::kImages;
  const int group = lane / B::kImages;
  const float4* x4 = reinterpret_cast<const float4*>(shared + dense.x + image * pitch);
#pragma unroll 1
  for (int item = static_cast<int>(threadIdx.x / 32); item < tiles * splits; item += B::kThreads / 32) {
    const int tile = divide(item, dense.by_splits);
    const int split = item - tile * splits;
    const int from = tile * kTile + group;
    const int end = min(fours, (split + 1) * dense.share);
    const float4* w4[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      w4[j] = reinterpret_cast<const float4*>(shared + dense.w + min(from + j * kGroups, rows - 1) * pitch);
    }
    float sum[4] = {};
#pragma unroll 2
    for (int i = split * dense.share; i < end; ++i) {
      const float4 a = x4[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 b = w4[j][i];
        sum[j] = fmaf(a.x, b.x, sum[j]);
        sum[j] = fmaf(a.y, b.y, sum[j]);
        sum[j] = fmaf(a.z, b.z, sum[j]);
        sum[j] = fmaf(a.w, b.w, sum[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = from + j * kGroups;
      if (row < rows) sums[(split * rows + row) * B::kImages + image] = sum[j];
    }
  }
}

// The splits and bias of one output.
template <class B>
__device__ __forceinline__ float dense_sum(const DensePlan& dense, int rows, int row, int image) {
  const float* sum = shared_floats() + shared_plan().scratch + row * B::kImages + image;
  float value = 0.0F;
#pragma unroll 8
  for (int split = 0; split < dense.splits; ++split) value += sum[split * rows * B::kImages];
  return value + shared_floats()[dense.bias + row];
}

// Adds up the splits, bias, ReLU; a sliced layer's outputs go to every block of the cluster. y[image][pitch]. Four
// neighbouring threads have neighbouring rows of an image: what they send they send as one, zeros behind the last row.
// Kernels with norms or other finishes have value(row, image) instead.
template <class B, class Value>
__device__ __forceinline__ void dense_finish(int layer, int rows, int from, float* y, int pitch, Value of) {
  const DensePlan& dense = shared_plan().dense[layer];
  const float* shared = shared_floats();
  const float* sums = shared + shared_plan().scratch;
  const float* bias = shared + dense.bias;
  const int splits = dense.splits;
  const bool relu = dense.relu != 0;
  const bool sliced = dense.sliced != 0;
  uint64_t& arrived = shared_arrivals().forward[layer];
  const int thread = static_cast<int>(threadIdx.x);
  const int items = (rows + 3) / 4 * 4 * B::kImages;
  // Whole warps, for the shuffles.
  for (int i = thread; i - thread % 32 < items; i += B::kThreads) {
    const int row = i / (4 * B::kImages) * 4 + i % 4;
    const int image = i / 4 % B::kImages;
    float value = 0.0F;
    if (row < rows) {
      if constexpr (B::kNorms || B::kFinishes) {
        value = of(row, image);
      } else {
        const float* sum = sums + row * B::kImages + image;
#pragma unroll 8
        for (int split = 0; split < splits; ++split) value += sum[split * rows * B::kImages];
        value += bias[row];
        if (relu && value < 0.0F) value = 0.0F;
      }
    }
    float* to = y + image * pitch + from + row;
    if (sliced) {
      float4 four;
      four.x = __shfl_sync(0xFFFFFFFFU, value, 0, 4);
      four.y = __shfl_sync(0xFFFFFFFFU, value, 1, 4);
      four.z = __shfl_sync(0xFFFFFFFFU, value, 2, 4);
      four.w = __shfl_sync(0xFFFFFFFFU, value, 3, 4);
      if (i < items) {
#pragma unroll
        for (int rank = i % 4; rank < B::kImages; rank += 4) store_remote(to - i % 4, rank, four, arrived);
      }
    } else if (row < rows) {
      *to = value;
    }
  }
}

// A sliced layer's shares of dx, to whom they concern: the images' blocks where convolutions lie below, else the blocks
// that have the layer below's outputs. A cluster makes kStepShares of each dx, whatever its size.
template <class B>
__device__ __forceinline__ void dense_scatter(int layer, int rows, int rank) {
  constexpr int kShares = kStepShares / B::kImages;       // of this block
  constexpr int kSome = B::kImages < 4 ? B::kImages : 4;  // images of a thread
  static_assert(kSome == 2 || kSome == 4);
  const DensePlan& dense = shared_plan().dense[layer];
  float* shared = shared_floats();
  const int fours = (dense.inputs + 3) / 4;
  uint64_t& arrived = shared_arrivals().backward[layer];
  for (int item = static_cast<int>(threadIdx.x); item < fours * kShares * (B::kImages / kSome); item += B::kThreads) {
    const int part = divide(item, dense.by_fours);
    const int i = item - part * fours;
    const int first_image = part % (B::kImages / kSome) * kSome;
    const int share = part / (B::kImages / kSome);
    const int end = rows * (share + 1) / kShares;
    const float4* w = reinterpret_cast<const float4*>(shared + dense.w) + i;
    const float* d = shared + dense.dy + first_image;
    float sum[4][kSome] = {};
#pragma unroll 2
    for (int row = rows * share / kShares; row < end; ++row) {
      const float4 a = w[row * (dense.x_pitch / 4)];
      const float weight[4] = {a.x, a.y, a.z, a.w};
      float gradient[kSome];
#pragma unroll
      for (int m = 0; m < kSome; ++m) gradient[m] = d[row * B::kImages + m];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int m = 0; m < kSome; ++m) sum[k][m] = fmaf(weight[k], gradient[m], sum[k][m]);
      }
    }
    const int source = rank * kShares + share;
    if (layer == 0) {
      float* to = shared + dense.received + source * dense.x_pitch + 4 * i;
#pragma unroll
      for (int m = 0; m < kSome; ++m) {
        store_remote(to, first_image + m, make_float4(sum[0][m], sum[1][m], sum[2][m], sum[3][m]), arrived);
      }
      continue;
    }
    const DensePlan& below = shared_plan().dense[layer - 1];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int input = 4 * i + k;
      if (input >= dense.inputs) continue;
      const int owner = divide(input, below.by_slice);
      float* to =
          shared + dense.received + (source * below.slice + input - owner * below.slice) * B::kImages + first_image;
      if constexpr (kSome == 4) {
        store_remote(to, owner, make_float4(sum[k][0], sum[k][1], sum[k][2], sum[k][3]), arrived);
      } else {
        store_remote(to, owner, make_float2(sum[k][0], sum[k][1]), arrived);
      }
    }
  }
}

// dx of a layer that every block has whole, for `count` inputs from `from` on: image by image to put(input, image,
// value).
template <class B, class Put>
__device__ __forceinline__ void dense_back(int layer, int from, int count, Put put) {
  const DensePlan& dense = shared_plan().dense[layer];
  const float* shared = shared_floats();
  for (int i = static_cast<int>(threadIdx.x); i < count * B::kImages; i += B::kThreads) {
    const float* w = shared + dense.w + from + i / B::kImages;
    const float* d = shared + dense.dy + i % B::kImages;
    float sum = 0.0F;
#pragma unroll 4
    for (int output = 0; output < dense.outputs; ++output)
      sum = fmaf(w[output * dense.x_pitch], d[output * B::kImages], sum);
    put(i / B::kImages, i % B::kImages, sum);
  }
}

}  // namespace gpunn::cuda_tiled
