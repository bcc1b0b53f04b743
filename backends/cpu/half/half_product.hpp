// Convolution of channels-last bf16 images as matrix products: HalfTileKernels multiply, sums are f32. A ResNet-18
// step takes about 0.6 of its time in f32 on a processor with AMX.
#pragma once

#include <cstdint>
#include <vector>

#include "half/half_tile.hpp"
#include "image_rows.hpp"

namespace gpunn::cpu {

// Forward, and backward to the data, as ImageProduct has them in f32.
class HalfImageProduct {
 public:
  HalfImageProduct(const ConvolutionShape& shape, ConvolutionPass pass, int threads, const HalfTileKernels& kernels);

  double workspace_bytes() const;

  // bias [channels of the target] may be null.
  void run(const BFloat16* source, const BFloat16* filter, const float* bias, bool relu, BFloat16* target,
           void* workspace) const;

 private:
  struct Part {
    TargetClass targets;
    int64_t all_targets;    // of all images
    int64_t terms;          // of a sum
    int64_t depth;          // the same, up to a multiple of HalfTile::kDepth
    int64_t block_targets;  // of a task
    int64_t splits;         // of the panels
    int64_t packed_filter;  // where its panels begin, of the first group
    int64_t first_task;
    int64_t tasks;  // of a group
  };

  void pack_filter(const BFloat16* filter, BFloat16* packed) const;
  void multiply(const Part& part, int64_t group, int64_t task, const BFloat16* source, const BFloat16* packed,
                const float* bias, bool relu, BFloat16* target, BFloat16* rows) const;

  const HalfTileKernels* kernels_;
  ConvolutionShape shape_;
  bool forward_;
  int threads_;
  GroupedImages source_;
  GroupedImages target_;
  int64_t panels_;
  std::vector<Part> parts_;
  int64_t tasks_ = 0;         // of a group
  int64_t rows_numbers_ = 0;  // of scratch for a task
  int64_t group_filter_ = 0;  // numbers of a group's packed filter
};

// Backward to the filter, as ImageFilterProduct has it in f32. dy is transposed first, since sums run over pixels.
class HalfFilterProduct {
 public:
  HalfFilterProduct(const ConvolutionShape& shape, int threads, const HalfTileKernels& kernels);

  double workspace_bytes() const;
  void run(const BFloat16* dy, const BFloat16* x, BFloat16* dw, void* workspace) const;

 private:
  void transpose(const BFloat16* dy, BFloat16* to) const;
  void add_chunk(const BFloat16* dy, const BFloat16* x, int64_t group, int64_t chunk, int64_t block, float* sums,
                 BFloat16* scratch) const;
  void put_filter(const float* sums, int64_t group, int64_t block, BFloat16* dw) const;

  const HalfTileKernels* kernels_;
  ConvolutionShape shape_;
  int threads_;
  GroupedImages x_;
  GroupedImages dy_;
  TargetClass targets_;
  int64_t outputs_;     // of all images
  int64_t dy_stride_;   // of a channel's outputs, transposed
  int64_t block_taps_;  // of a task; 1 where block_channels_ are not all
  int64_t block_channels_;
  int64_t channel_blocks_;
  int64_t blocks_;
  int64_t depth_;  // outputs that are multiplied at once
  int64_t chunks_;
  int64_t rows_stride_;
  int64_t block_panels_;  // of HalfTile::kColumns columns
  int64_t panel_floats_;  // sums of all output channels of a group in a panel's columns
  int64_t block_floats_;  // of all groups
};

}  // namespace gpunn::cpu
