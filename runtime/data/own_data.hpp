#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <string>

namespace gpunn::data {

// The test part of a set that has none: data.test_fraction of its training samples, which lose them; no rows where that
// is 0. Throws Error where the set has a test part as well.
void take_test_share(Dataset& set, const DataConfig& config);

// Takes data.validation_fraction of the training samples of any set. A set with a validation part of its own keeps
// that, where the fraction is 0; where it is not, that part is the test part. Throws Error where the set has a test
// part too.
void take_validation_share(Dataset& set, const DataConfig& config);

// Throws Error where samples of so many bytes don't fit into the memory that is free. `what` says whose, `advice` what
// to do about it.
void require_memory(uint64_t bytes, const std::string& what, const std::string& advice);

}  // namespace gpunn::data
