#pragma once

#include <gpunn/model.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpunn::inference {

// What the numbers of rows are decoded to.
struct DecodeOptions {
  int64_t top = 1;                 // answers of a row, at most
  bool map_probabilities = false;  // those of label maps, too
};

// Decodes rows of a model's output of meanings, its last: `bytes` are packed numbers of the type that the output has.
std::vector<Decoded> decoded_rows(const ModelInfo& info, const TensorType& row, std::span<const std::byte> bytes,
                                  const DecodeOptions& options);

}  // namespace gpunn::inference
