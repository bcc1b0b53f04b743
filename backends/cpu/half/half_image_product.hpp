// Convolution of channels-last bf16 images as matrix products: HalfTileKernels multiply, sums are f32. Where windows
// overlap, the images are padded (padded_pixels.hpp) and are the left factor as they are; elsewhere what each target
// sees is copied side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convolution/image_rows.hpp"
#include "half/half_tile.hpp"
#include "half/padded_pixels.hpp"

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
  // A factor of a sum; none, where a step is filled up with zeros.
  struct Term {
    int64_t tap;      // in the filter; -1: none
    int64_t channel;  // of the source
  };
  // The targets of a class. A row of the left factor is a target, or a pixel of the padded images.
  struct Part {
    TargetClass targets{};
    std::optional<PaddedPixels> padded;
    int64_t all_rows = 0;         // of all images
    int64_t line_rows = 0;        // that lie evenly apart: all, but with strides in padded images those of a line
    int64_t row_step = 0;         // numbers from one of them to the next
    int64_t padded_channels = 0;  // of a pixel
    int64_t stride = 0;           // of a pixel, or of what a target sees
    int depth = 0;                // of a step
    std::vector<int64_t> steps;   // where they begin, from a row on
    std::vector<Term> terms;      // of all steps
    int64_t block_rows = 0;       // of a task
    int64_t splits = 1;           // of the panels
    int64_t packed_filter = 0;    // where its panels begin, of the first group
    int64_t first_task = 0;
    int64_t tasks = 0;  // of a group

    bool has_gaps() const { return padded.has_value() && !targets.is_strided(); }
    // Of the line that begins at this row: its first pixel.
    int64_t line_pixel(int64_t row) const {
      const int64_t line = row / targets.columns.targets;
      return padded->pixel(targets, line / targets.rows.targets, line % targets.rows.targets, 0);
    }
    int64_t panel() const { return static_cast<int64_t>(terms.size()) * HalfTile::kColumns; }
  };

  void plan_padded(Part& part) const;
  void plan_gathered(Part& part) const;
  static int64_t pixels_read(const Part& part, int64_t first, int64_t count);
  static int64_t pointer_numbers(const Part& part);
  static int64_t scratch_numbers(const Part& part);
  void pack_filter(const BFloat16* filter, BFloat16* packed) const;
  void pack_pairs(const BFloat16* first, int64_t filter_numbers, int64_t pairs, int64_t count, BFloat16* to) const;
  void copy_left(const Part& part, const BFloat16* source, int64_t group, int64_t first, int64_t count,
                 BFloat16* to) const;
  void find_targets(const Part& part, int64_t group, int64_t first, int64_t count, BFloat16* target,
                    BFloat16** to) const;
  void multiply(const Part& part, int64_t group, int64_t task, const BFloat16* source, const BFloat16* packed,
                const float* bias, bool relu, BFloat16* target, BFloat16* scratch) const;

  const HalfTileKernels* kernels_;
  ConvolutionShape shape_;
  bool forward_;
  int threads_;
  GroupedImages source_;
  GroupedImages target_;
  int64_t panels_;
  std::vector<Part> parts_;
  int64_t tasks_ = 0;            // of a group
  int64_t scratch_numbers_ = 0;  // of a thread
  int64_t group_filter_ = 0;     // numbers of a group's packed filter
};

}  // namespace gpunn::cpu
