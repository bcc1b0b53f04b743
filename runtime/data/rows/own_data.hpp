#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <string>

namespace gpunn::data {

// Makes the test part of a set that has none: data.test_fraction of its training samples, which lose them; no rows if
// the fraction is 0. Throws Error if the set has a test part as well.
void take_test_share(Dataset& set, const DataConfig& config);

// Takes data.validation_fraction of the training samples of any set. A set with its own validation part keeps it if the
// fraction is 0; otherwise that part becomes the test part. Throws Error if the set has a test part too.
void take_validation_share(Dataset& set, const DataConfig& config);

// Throws Error if samples of this many bytes don't fit into free memory. `what` names the samples, `advice` the remedy.
void require_memory(uint64_t bytes, const std::string& what, const std::string& advice);

}  // namespace gpunn::data
