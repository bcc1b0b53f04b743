// ATTENTION and ATTENTION_BACKWARD.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// q[samples, queries, heads, width], k and v[samples, keys, heads, width].
struct Attention {
  int64_t samples = 0;
  int64_t queries = 0;
  int64_t keys = 0;  // at least 1
  int64_t heads = 0;
  int64_t width = 0;  // at least 1
  float scale = 0;

  // Elements from one token to the next.
  constexpr int64_t stride() const { return heads * width; }
  // Index of the first element of a head of a sample: in q and dy, and in k and v.
  constexpr int64_t queries_at(int64_t sample, int64_t head) const { return (sample * queries * heads + head) * width; }
  constexpr int64_t keys_at(int64_t sample, int64_t head) const { return (sample * keys * heads + head) * width; }
};

// `q`: index of the input that holds the queries.
inline Attention attention_with_queries(const OpDesc& desc, std::size_t q) {
  const gpunn_tensor &queries = desc.input(q), &keys = desc.input(q + 1);
  return {.samples = queries.dim[0],
          .queries = queries.dim[1],
          .keys = keys.dim[1],
          .heads = queries.dim[2],
          .width = queries.dim[3],
          .scale = desc.attrs<gpunn_attention_attrs>().scale};
}

inline Attention attention_of(const OpDesc& desc) { return attention_with_queries(desc, 0); }
inline Attention attention_backward_of(const OpDesc& desc) { return attention_with_queries(desc, 1); }

}  // namespace gpunn::backends
