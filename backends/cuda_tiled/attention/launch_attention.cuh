// Launches the attention kernels with one kind of tiles.
#pragma once

#include <cstdint>
#include <type_traits>

#include "attention/attention.hpp"
#include "attention/backward_kernels.cuh"
#include "attention/fma_tile.cuh"
#include "attention/forward_kernel.cuh"
#include "attention/mma_tile.cuh"
#include "cuda_common/alignment.hpp"
#include "cuda_common/launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {

// Columns of a tile of scores, so that two blocks or more have room on a multiprocessor: the forward keeps one result
// in registers, the backward two.
struct FmaTiles {
  using Element = float;
  template <int width>
  using Forward = FmaTile<width, width == 128 ? 32 : 64>;
  template <int width>
  using Backward = FmaTile<width, 32>;
};

template <class Input>
struct MmaTiles {
  using Element = typename AttentionTile<Input, 32, 32>::Element;
  static constexpr bool kHalf = AttentionTile<Input, 32, 32>::kHalf;
  template <int width>
  using Forward = AttentionTile<Input, width, width == 128 && !kHalf ? 32 : 64>;
  template <int width>
  using Backward = AttentionTile<Input, width, width == 32 || (width == 64 && kHalf) ? 64 : 32>;
};

// action(std::integral_constant) for the least width of a tile that has room for the head's.
template <class Action>
auto with_tile_width(int64_t width, const Action& action) {
  if (width <= 32) return action(std::integral_constant<int, 32>());
  if (width <= 64) return action(std::integral_constant<int, 64>());
  return action(std::integral_constant<int, kMostAttentionWidth>());
}

template <class Tiles>
int attention_shared_bytes(const AttentionProblem& problem) {
  return with_tile_width(problem.shape.width, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    return problem.backward ? BackwardShared<typename Tiles::template Backward<kWidth>>::kBytes
                            : ForwardShared<typename Tiles::template Forward<kWidth>>::kBytes;
  });
}

// Whether rows begin at 16 bytes and have whole pieces of 16.
inline bool has_vectors(const backends::Attention& shape, int64_t vector, std::initializer_list<const void*> tensors) {
  return shape.width % vector == 0 && cuda::are_aligned(tensors, 16);
}

template <class Tile, class Arguments>
void launch_attention(void (*kernel)(Arguments), int64_t heads, int64_t rows, int bytes, cudaStream_t stream,
                      const Arguments& arguments) {
  allow_shared_memory(kernel, static_cast<std::size_t>(bytes));
  cuda::Launch shape = cuda::block_each(heads * cuda::divide_up(rows, Tile::kRows), Tile::kThreads);
  shape.shared_bytes = static_cast<unsigned>(bytes);
  cuda::launch(kernel, shape, stream, arguments);
}

template <class Tile>
void run_attention_forward(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  using Element = typename Tile::Element;
  const auto *q = args.in<Element>(0), *k = args.in<Element>(1), *v = args.in<Element>(2);
  const AttentionForward<Element> arguments{.q = q,
                                            .k = k,
                                            .v = v,
                                            .y = args.out<Element>(0),
                                            .lse = args.out<float>(1),
                                            .shape = problem.shape,
                                            .vectors = has_vectors(problem.shape, Tile::kVector, {q, k, v})};
  launch_attention<Tile>(attention_forward<Tile>, problem.heads(), problem.shape.queries, ForwardShared<Tile>::kBytes,
                         stream, arguments);
}

template <class Tile>
void run_attention_backward(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  using Element = typename Tile::Element;
  const auto *dy = args.in<Element>(0), *q = args.in<Element>(1), *k = args.in<Element>(2), *v = args.in<Element>(3);
  auto* along = args.workspace<float>();
  const backends::Attention& shape = problem.shape;
  cuda::launch(attention_along<Element>,
               cuda::block_each(cuda::divide_up(problem.heads() * shape.queries, kAlongRows), kAlongThreads), stream,
               dy, args.in<Element>(4), along, shape);
  const AttentionBackward<Element> arguments{.dy = dy,
                                             .q = q,
                                             .k = k,
                                             .v = v,
                                             .lse = args.in<float>(5),
                                             .along = along,
                                             .dq = args.out<Element>(0),
                                             .dk = args.out<Element>(1),
                                             .dv = args.out<Element>(2),
                                             .shape = shape,
                                             .vectors = has_vectors(shape, Tile::kVector, {dy, q, k, v})};
  constexpr int kBytes = BackwardShared<Tile>::kBytes;
  launch_attention<Tile>(attention_dk_dv<Tile>, problem.heads(), shape.keys, kBytes, stream, arguments);
  launch_attention<Tile>(attention_dq<Tile>, problem.heads(), shape.queries, kBytes, stream, arguments);
}

template <class Tiles>
void run_attention(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  with_tile_width(problem.shape.width, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if (problem.backward) {
      run_attention_backward<typename Tiles::template Backward<kWidth>>(problem, stream, args);
    } else {
      run_attention_forward<typename Tiles::template Forward<kWidth>>(problem, stream, args);
    }
  });
}

}  // namespace gpunn::cuda_tiled
