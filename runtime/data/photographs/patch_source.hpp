#pragma once

#include <gpunn/batch_source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image.hpp"
#include "data/photographs/image_pairs.hpp"

namespace gpunn::data {

struct PatchSettings {
  int64_t channels = 1;
  int64_t input_size = 16;  // rows and columns of a patch of what the model gets
  int64_t ratio = 3;        // how many times larger the target's are
  bool turns = true;
  uint64_t seed = 1;

  int64_t rows_in(std::span<const std::byte> samples) const;
};

// Where patches of the input can lie in an image of this size.
uint64_t places_in(ImageSides image, int64_t input_size);
// Cuts the patch at a place, counted row by row, into a row of both arrays. `position` has in its three lowest bits how
// it is mirrored and turned, where the settings want that.
void cut_patch(const ImagePair& pair, uint64_t place, uint32_t position, const PatchSettings& settings, int64_t row,
               std::span<std::byte> samples, std::span<std::byte> targets);
// Throws Error(usage): all images are smaller than a patch.
[[noreturn]] void refuse_patch_size(const PatchSettings& settings);

// Patches at random places of some pairs, each in one of eight positions. All are functions of the step and the row, so
// a resumed training gets what an uninterrupted one does.
class PatchSource : public BatchSource {
 public:
  // Pairs that are smaller than a patch are left out. Throws Error(usage) where all are.
  PatchSource(std::vector<ImagePair> pairs, const PatchSettings& settings);

  // Fills both arrays, f32 [rows, C, size, size] each.
  int64_t read(int64_t step, const BatchRoom& room) override;
  bool always_full() const override { return true; }
  uint32_t digest() const override { return digest_; }

  int64_t left_out() const { return left_out_; }  // pairs

 private:
  std::vector<ImagePair> pairs_;
  PatchSettings settings_;
  std::vector<uint64_t> places_;  // patches in the pairs so far, up to each
  int64_t left_out_ = 0;
  uint32_t digest_ = 0;
};

}  // namespace gpunn::data
