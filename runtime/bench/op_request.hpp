#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/case.hpp"

namespace gpunn::bench {

// The op and types that `gpunn bench op NAME SHAPE` means. Throws Error(usage) with the form that the op expects.
ops::Case parse_request(const std::string& op, const std::string& shape);

// The same with tensors of half precision where the op's row has `float`, and with channels-last images. Throws
// Error(usage) if the op has none.
ops::Case parse_request(const std::string& op, const std::string& shape, DType dtype, Layout layout);

// The inputs as they lie in memory, the same for the same seed.
std::vector<std::vector<std::byte>> inputs_of(const ops::Case& request, uint64_t seed);

// Expands "512..8192" to powers of two times its start: square matrices for an op on two matrices, lengths for others.
// Other texts are returned unchanged.
std::vector<std::string> swept(const std::string& op, const std::string& shape);

}  // namespace gpunn::bench
