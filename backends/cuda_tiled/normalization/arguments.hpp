// The arguments of the kernels of BATCH_NORM and its gradient. T is float, __nv_bfloat16 or __half; statistics and
// parameters are float.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include "common/normalization.hpp"

namespace gpunn::cuda_tiled {

template <class T>
struct Forward {
  const T* x;
  const float* gamma;
  const float* beta;
  const int32_t* count;  // NULL: all rows
  const float2* parts;
  const T* residual;  // added to y; NULL: nothing is
  bool relu;          // y is max(y, 0), NaN stays NaN
  T* y;
  float* mean;
  float* rstd;
  float* running_mean;  // NULL: instance norm has none
  float* running_var;
  float epsilon;
  float momentum;
};

template <class T>
struct Backward {
  const T* dy;
  const T* more_dy;  // added to dy; NULL: nothing is
  const T* relu_y;   // of the ReLU behind: where it is not positive, dy counts as 0; NULL: there is none
  T* masked;         // what of dy goes on through the ReLU, in all rows; NULL: is not wanted
  // Room for a bit for each element of channels-last images of whole eights of channels, where the first pass keeps for
  // the second which of relu_y are positive; NULL: there is none.
  uint8_t* signs;
  const T* x;
  const float* gamma;
  const float* mean;
  const float* rstd;
  const int32_t* count;  // NULL: all rows
  float2* parts;         // by share, the sums of dy and of dy (x - mean)
  T* dx;
  float* dgamma;
  float* dbeta;
};

// The size in bytes of b.parts and `parts` for channels-last images.
uint64_t parts_of_channels_last(const backends::BatchNorm& shape);
template <class T>
void batch_norm_channels_last(const backends::BatchNorm& shape, const Forward<T>& f, float2* parts,
                              cudaStream_t stream);
template <class T>
void batch_norm_backward_channels_last(const backends::BatchNorm& shape, const Backward<T>& b, cudaStream_t stream);
// The rest of the forward pass, once f.mean and f.rstd are known.
template <class T>
void normalise_channels_last(const backends::BatchNorm& shape, const Forward<T>& f, cudaStream_t stream);
// The rest of the gradient, once b.dgamma and b.dbeta are known.
template <class T>
void flow_back_channels_last(const backends::BatchNorm& shape, const Backward<T>& b, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
