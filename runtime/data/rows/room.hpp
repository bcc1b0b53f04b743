#pragma once

#include <gpunn/data.hpp>

#include "common/host_memory.hpp"

namespace gpunn::data {

// Allocates memory for the split's samples, whose type is known. Throws Error(missing) if there is too little.
inline void make_room(Split& split) {
  const uint64_t bytes = split.samples.bytes();
  require_host_memory(bytes, "a part of the data set of " + std::to_string(split.rows()) + " samples, each " +
                                 to_string(Shape(split.samples.shape.begin() + 1, split.samples.shape.end())) + ",");
  split.values.resize(bytes);
}

}  // namespace gpunn::data
