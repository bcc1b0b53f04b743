// BATCH_NORM of channels-last images whose statistics were computed by a convolution (half/half_product.hpp). For every
// slab of rows of the matrix [pixels, channels] it gets the mean and the sum of squared differences. So the images are
// read only once. The same for its gradient, of which a data gradient has computed the sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include <vector_types.h>

#include "normalization/arguments.hpp"
#include "normalization/slab_rows.cuh"

namespace gpunn::cuda_tiled {

struct SlabPlan {
  int64_t rows = 0;  // pixels of all images
  int64_t channels = 0;
  int64_t pixels = 1;  // of an image
  SlabRows of_slab;
  int slabs = 0;
  int group = 1;  // slabs that a block puts together
  int groups = 1;

  uint64_t slab_bytes() const;
  uint64_t workspace_bytes() const;  // slabs first
  std::size_t counters() const;      // a Counters (counters.hpp) of so many
};

// Of the rows of `of_slab` where the slabs are of means.
SlabPlan slab_plan(const backends::BatchNorm& shape, int slabs, const SlabRows& of_slab = {});

// f.parts are not used. `workspace` is of workspace_bytes(), and has the slabs.
template <class T>
void run_batch_norm_of_slabs(const backends::BatchNorm& shape, const SlabPlan& slabs, const Forward<T>& f,
                             float2* workspace, unsigned* counters, cudaStream_t stream);

// The slabs have the sums of dy and of dy (x - mean). b.masked is given: it is dy, which the data gradient has written.
// b.dy, b.more_dy, b.relu_y, b.signs and b.parts are not used.
template <class T>
void run_batch_norm_backward_of_slabs(const backends::BatchNorm& shape, const SlabPlan& slabs, const Backward<T>& b,
                                      float2* workspace, unsigned* counters, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
