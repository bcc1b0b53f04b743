// Batch norm, for its ops and for subgraphs that fuse it with the sum and the ReLU around it.
//
// Rows are taken in parts of a fixed number, each small enough for the cache where a row is: a part's mean and the
// squares of the differences from it are two passes over the part, of which memory sees one. The parts are then put
// together in f64, in their order (Chan, Golub and LeVeque, 1983). Neither the parts nor their order know of the
// threads.
#pragma once

#include <cstdint>

#include "common/normalization.hpp"
#include "simd/normalization.hpp"

namespace gpunn::cpu {

struct BatchNormPlan {
  backends::BatchNorm shape{};  // channels-last: a row is a pixel
  int64_t rows_in_image = 1;
  int64_t rows_per_part = 1;
  int64_t parts = 0;
  ChannelShape strip{};  // what is computed at a time where it is made f32 first: rows, or channels of one row
  int threads = 1;
  const NormalizationKernels* kernels = nullptr;
  // The loops take the tensors as they are; otherwise strips of them are made f32 first.
  bool direct = true;
  // Where they are rows, too: ReLU's mask is kept as bits between the passes of a gradient.
  bool bits = false;
  uint64_t workspace_bytes = 0;

  int64_t row() const { return shape.channels * shape.size; }
  int64_t vectors() const { return (shape.channels + kernels->lanes - 1) / kernels->lanes; }
};

// `fused`: with a sum or a ReLU.
BatchNormPlan plan_batch_norm(const backends::BatchNorm& shape, int32_t dtype, bool fused, int threads);

// y = batch norm of x, plus `other`, through ReLU. T is float, BFloat16 or Half.
template <class T>
struct BatchNormForward {
  const T* x;
  const float* gamma;
  const float* beta;
  const int32_t* count;  // null: all rows enter the statistics
  const T* other;        // null: nothing is added
  bool relu;
  T* y;
  float* mean;
  float* rstd;
  float* running_mean;
  float* running_var;
  void* workspace;
};

// The gradient of batch norm's result is dy + more_dy where relu_y is positive, elsewhere 0.
template <class T>
struct BatchNormBackward {
  const T* dy;
  const T* more_dy;  // null: nothing is added
  const T* relu_y;   // null: there is no ReLU, and no more_dy
  T* masked;         // where that gradient goes; null: nowhere
  const T* x;
  const float* gamma;
  const float* mean;
  const float* rstd;
  const int32_t* count;
  T* dx;
  float* dgamma;
  float* dbeta;
  void* workspace;
};

template <class T>
void run_batch_norm(const BatchNormPlan& plan, const BatchNormForward<T>& op);
template <class T>
void run_batch_norm_backward(const BatchNormPlan& plan, const BatchNormBackward<T>& op);
// `variance` in place of statistics.
template <class T>
void run_batch_norm_inference(const BatchNormPlan& plan, const T* x, const float* gamma, const float* beta,
                              const float* mean, const float* variance, T* y, void* workspace);

}  // namespace gpunn::cpu
