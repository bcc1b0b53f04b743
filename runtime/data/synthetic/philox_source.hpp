#pragma once

#include <gpunn/random.h>

#include <cstdint>

namespace gpunn::data {

// The random words of one Philox stream, drawn in order from a given block. Each row of a synthetic set begins at its
// own block, so that any number of threads can make rows in any order.
class PhiloxSource {
 public:
  PhiloxSource(uint64_t seed, uint64_t stream, uint64_t first_block)
      : seed_(seed), stream_(stream), block_(first_block) {}

  uint32_t word() {
    if (used_ == 4) {
      words_ = gpunn_philox(seed_, stream_, block_++);
      used_ = 0;
    }
    return words_.word[used_++];
  }
  // In [low, high), on a grid of 2^-24 of the width.
  double uniform(double low, double high) { return low + (high - low) * gpunn_random_unit(word()); }
  // 0 to count-1.
  uint32_t below(uint32_t count) { return static_cast<uint32_t>((uint64_t{word()} * count) >> 32); }

 private:
  uint64_t seed_, stream_, block_;
  gpunn_random_words words_ = {};
  int used_ = 4;
};

// The streams of the synthetic sets and of the random shares of rows. They only have to differ.
enum : uint64_t {
  kDigitsTrainStream = 0x6469676974730000,
  kDigitsTestStream = 0x6469676974730001,
  kTwoDigitsTrainStream = 0x64696769747a0000,
  kTwoDigitsTestStream = 0x64696769747a0001,
  kLimitTrainStream = 0x6c696d6974730000,
  kLimitTestStream = 0x6c696d6974730001,
  kPointsTrainStream = 0x706f696e74730000,
  kPointsTestStream = 0x706f696e74730001,
  kPointsLineStream = 0x706f696e74730002,
  kTestShareStream = 0x7368617265730000,
  kValidationShareStream = 0x7368617265730001,
  kPatchStream = 0x7061746368000000,
  kPatchImageStream = 0x7061746368000001,
  kStyleNoiseStream = 0x7374796c65000000,
  kBoxStream = 0x626f786573000000,
  kBoxOrderStream = 0x626f786573000001,
  kCanvasTrainStream = 0x626f786573000002,
  kCanvasTestStream = 0x626f786573000003,
  kDrawnTrainStream = 0x70686f746f730000,
  kDrawnTestStream = 0x70686f746f730001,
  kShapesTrainStream = 0x7368617065730000,
  kShapesTestStream = 0x7368617065730001,
  kVariationStream = 0x7661726965640000,
};

}  // namespace gpunn::data
