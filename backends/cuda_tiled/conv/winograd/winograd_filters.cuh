// The filters of a Winograd convolution, transformed once a call.
#pragma once

#include "conv/winograd/winograd.hpp"

namespace gpunn::cuda_tiled::winograd {

inline constexpr int kFilterLanes = 32;
inline constexpr int kFilterInputs = 8;
inline constexpr int kFilterThreads = kFilterLanes * kFilterInputs;

// w[group][output][input][3][3], or turned w[group][input][output][3][3] with the taps in reverse, to what Transform
// makes of each filter, at the place that Layout gives. A block takes 32 outputs x 8 inputs, which in w are rows of
// neighbouring numbers: by output, or, turned, by input.
template <class Transform, class Layout, bool turned>
__device__ __forceinline__ void transform_filter_block(const float* w, float* to, const Convolution& shape,
                                                       const Layout& layout, const dim3& block) {
  constexpr int kLines = turned ? kFilterInputs : kFilterLanes;
  constexpr int kLine = (turned ? kFilterLanes : kFilterInputs) * 9;
  __shared__ float lines[kLines][kLine + 1 - kLine % 2];
  const int first_output = static_cast<int>(block.x) * kFilterLanes;
  const int first_input = static_cast<int>(block.y) * kFilterInputs;
  const int group = static_cast<int>(block.z);
  const int line_count = turned ? shape.inputs : shape.outputs;
  const int line_length = (turned ? shape.outputs : shape.inputs) * 9;
  const int first_line = turned ? first_input : first_output;
  const int first_place = (turned ? first_output : first_input) * 9;
  for (int i = static_cast<int>(threadIdx.x); i < kLines * kLine; i += kFilterThreads) {
    const int line = i / kLine;
    const int place = i % kLine;
    const bool inside = first_line + line < line_count && first_place + place < line_length;
    lines[line][place] =
        inside ? w[static_cast<int64_t>(group * line_count + first_line + line) * line_length + first_place + place]
               : 0.0F;
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kFilterLanes;
  const int input = static_cast<int>(threadIdx.x) / kFilterLanes;
  if (!layout.holds(first_output + lane, first_input + input)) return;
  float g[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    g[i] = turned ? lines[input % kLines][lane * 9 + 8 - i] : lines[lane % kLines][input * 9 + i];
  }
  float points[Transform::kPoints];
  Transform::apply(g, points);
  to += layout.at(group, first_output + lane, first_input + input);
#pragma unroll
  for (int p = 0; p < Transform::kPoints; ++p) to[static_cast<int64_t>(p) * layout.point_stride] = points[p];
}

}  // namespace gpunn::cuda_tiled::winograd
