// ATTENTION: one thread block computes one query of one head. In the backward pass one block computes dq of one query,
// then one block computes dk and dv of one key.
//
// A block walks over the keys in steps of as many keys as it has threads. First each thread computes the score of one
// key. The block then finds the largest score and the sum of the weights. Next each thread computes one number of the
// result: it adds up the values times their weights, and neighbouring threads read neighbouring numbers. If a later
// score exceeds all earlier ones, the sums so far are scaled down (online softmax; Milakov and Gimelshein, 2018). So no
// row of scores is ever stored in memory, for any number of keys.
//
// In the first part neighbouring threads read keys that lie one token apart, and every query reads all keys and values
// from memory again. Loads take nearly all of the time. The next version would give 64 queries to a block, so that a
// tile of keys in shared memory is used 64 times. It would also compute the scores on tensor cores (Dao, 2023).
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "block_tree.cuh"
#include "common/attention.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class T>
__device__ float dot(const T* a, const T* b, int64_t n) {
  float sum = 0.0F;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
  return sum;
}

// The row of q, and of dy, y and dq, that a block works on, and the rows of its head in k and v.
struct AttentionPlace {
  int64_t query;
  int64_t key;
  int64_t lse;

  // Of the i-th query, counted as lse lies in memory: by sample, head, token.
  static __device__ AttentionPlace of_query(const Attention& s, int64_t i) {
    const int64_t token = i % s.queries, head = i / s.queries % s.heads, sample = i / s.queries / s.heads;
    return {s.queries_at(sample, head) + token * s.stride(), s.keys_at(sample, head), i};
  }
  // Of the i-th key, counted likewise: the first query of its head.
  static __device__ AttentionPlace of_key(const Attention& s, int64_t i) {
    const int64_t token = i % s.keys, head = i / s.keys % s.heads, sample = i / s.keys / s.heads;
    return {s.queries_at(sample, head), s.keys_at(sample, head) + token * s.stride(),
            (sample * s.heads + head) * s.queries};
  }
};

template <class T>
__global__ void attention(const T* q, const T* k, const T* v, T* y, float* lse, Attention s) {
  __shared__ float weights[kThreads];
  const int64_t threads = blockDim.x, thread = threadIdx.x;
  for (int64_t i = blockIdx.x; i < s.samples * s.heads * s.queries; i += gridDim.x) {
    const AttentionPlace at = AttentionPlace::of_query(s, i);
    // Of a width beyond the threads the result comes in pieces.
    for (int64_t piece = 0; piece < s.width; piece += threads) {
      const int64_t column = piece + thread;
      float most = -INFINITY;
      float sum = 0.0F;
      float mixed = 0.0F;
      for (int64_t first = 0; first < s.keys; first += threads) {
        const int64_t key = first + thread;
        const bool there = key < s.keys;
        const float score = there ? s.scale * dot(q + at.query, k + at.key + key * s.stride(), s.width) : -INFINITY;
        const float largest = fmaxf(most, block_tree(score, [](float a, float b) { return fmaxf(a, b); }));
        const float from = largest == -INFINITY ? 0.0F : largest;
        const float weight = there ? expf(score - from) : 0.0F;
        const float shrink = expf(most - from);
        most = largest;
        weights[thread] = weight;
        sum = sum * shrink + block_sum(weight);  // all weights are there behind it
        mixed *= shrink;
        for (int64_t j = 0; j < threads && first + j < s.keys && column < s.width; ++j) {
          mixed += weights[j] * static_cast<float>(v[at.key + (first + j) * s.stride() + column]);
        }
      }
      if (column < s.width) y[at.query + column] = static_cast<T>(mixed / sum);
      if (column == 0) lse[at.lse] = most + logf(sum);
    }
  }
}

template <class T>
struct SavedAttention {
  const T* dy;
  const T* q;
  const T* k;
  const T* v;
  const T* y;
  const float* lse;
};

// A weight is 1 at most, whatever the roundings of its score and of lse.
__device__ float weight_of(float score, float lse) {
  const float exponent = score - lse;
  return expf(exponent > 0.0F ? 0.0F : exponent);
}

template <class T>
__global__ void attention_dq(SavedAttention<T> in, T* dq, Attention s) {
  __shared__ float slopes[kThreads];
  const int64_t threads = blockDim.x, thread = threadIdx.x;
  for (int64_t i = blockIdx.x; i < s.samples * s.heads * s.queries; i += gridDim.x) {
    const AttentionPlace at = AttentionPlace::of_query(s, i);
    const T *q = in.q + at.query, *dy = in.dy + at.query;
    const float along = dot(dy, in.y + at.query, s.width);
    for (int64_t piece = 0; piece < s.width; piece += threads) {
      const int64_t column = piece + thread;
      float sum = 0.0F;
      for (int64_t first = 0; first < s.keys; first += threads) {
        const int64_t key = first + thread;
        __syncthreads();  // all have read the slopes before
        if (key < s.keys) {
          const int64_t row = at.key + key * s.stride();
          const float weight = weight_of(s.scale * dot(q, in.k + row, s.width), in.lse[at.lse]);
          slopes[thread] = weight * (dot(dy, in.v + row, s.width) - along);
        }
        __syncthreads();
        for (int64_t j = 0; j < threads && first + j < s.keys && column < s.width; ++j) {
          sum += slopes[j] * static_cast<float>(in.k[at.key + (first + j) * s.stride() + column]);
        }
      }
      if (column < s.width) dq[at.query + column] = static_cast<T>(s.scale * sum);
    }
  }
}

template <class T>
__global__ void attention_dk_dv(SavedAttention<T> in, T* dk, T* dv, Attention s) {
  __shared__ float weights[kThreads];
  __shared__ float slopes[kThreads];
  const int64_t threads = blockDim.x, thread = threadIdx.x;
  for (int64_t i = blockIdx.x; i < s.samples * s.heads * s.keys; i += gridDim.x) {
    const AttentionPlace at = AttentionPlace::of_key(s, i);
    const T *k = in.k + at.key, *v = in.v + at.key;
    for (int64_t piece = 0; piece < s.width; piece += threads) {
      const int64_t column = piece + thread;
      float sum_k = 0.0F;
      float sum_v = 0.0F;
      for (int64_t first = 0; first < s.queries; first += threads) {
        const int64_t query = first + thread;
        __syncthreads();  // all have read the weights and slopes before
        if (query < s.queries) {
          const int64_t row = at.query + query * s.stride();
          const T* dy = in.dy + row;
          weights[thread] = weight_of(s.scale * dot(in.q + row, k, s.width), in.lse[at.lse + query]);
          slopes[thread] = weights[thread] * (dot(dy, v, s.width) - dot(dy, in.y + row, s.width));
        }
        __syncthreads();
        for (int64_t j = 0; j < threads && first + j < s.queries && column < s.width; ++j) {
          const int64_t element = at.query + (first + j) * s.stride() + column;
          sum_k += slopes[j] * static_cast<float>(in.q[element]);
          sum_v += weights[j] * static_cast<float>(in.dy[element]);
        }
      }
      if (column < s.width) {
        dk[at.key + column] = static_cast<T>(s.scale * sum_k);
        dv[at.key + column] = static_cast<T>(sum_v);
      }
    }
  }
}

// A block for each of n rows, whose threads are tokens first and numbers of a row then.
Launch rows_of(const Attention& s, int64_t tokens, int64_t others) {
  return tree_each(s.samples * s.heads * tokens, std::max(others, s.width));
}

template <class T>
void run_attention(const Attention& s, cudaStream_t stream, const OpArgs& args) {
  launch(attention<T>, rows_of(s, s.queries, s.keys), stream, args.in<T>(0), args.in<T>(1), args.in<T>(2),
         args.out<T>(0), args.out<float>(1), s);
}

template <class T>
void run_attention_backward(const Attention& s, cudaStream_t stream, const OpArgs& args) {
  const SavedAttention<T> in{.dy = args.in<T>(0),
                             .q = args.in<T>(1),
                             .k = args.in<T>(2),
                             .v = args.in<T>(3),
                             .y = args.in<T>(4),
                             .lse = args.in<float>(5)};
  launch(attention_dq<T>, rows_of(s, s.queries, s.keys), stream, in, args.out<T>(0), s);
  launch(attention_dk_dv<T>, rows_of(s, s.keys, s.queries), stream, in, args.out<T>(1), args.out<T>(2), s);
}

}  // namespace

void add_attention_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ATTENTION, "attention", attention_of,
         each_floating([](auto x) { return run_attention<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_ATTENTION_BACKWARD, "attention_backward", attention_backward_of,
         each_floating([](auto x) { return run_attention_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
