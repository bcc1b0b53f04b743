#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <span>

#include "data/variation/sample_variation.hpp"

namespace gpunn::data {

// Writes the sample of a row as this epoch of a training sees it, wherever the split has it. Without a variation it is
// what sample_of() gives. A split with a variation has samples u8[rows, C, H, W] of 1 or 3 channels.
void read_sample(const Split& split, int64_t row, const SampleVariation* variation, uint64_t epoch,
                 std::span<std::byte> sample);

}  // namespace gpunn::data
