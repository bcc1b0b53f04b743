#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace gpunn::data {

// The IDX format of MNIST: bytes 0 and 1 are 0, byte 2 the element's type (8: unsigned byte), byte 3 the number of
// dimensions, then each dimension as a big-endian 32-bit number, then the elements, the last dimension fastest.
struct IdxArray {
  TensorType type;
  std::vector<std::byte> values;
};

inline constexpr uint64_t kMaxIdxBytes = uint64_t{4} << 30;

// Reads an IDX file of unsigned bytes with `rank` dimensions, plain or gzip. The header is not trusted: it allocates no
// more than the file can hold or than `limit`, and the file must hold exactly what the header promises. Throws Error
// with the file, the byte, the expected and the found value.
IdxArray read_idx(const std::filesystem::path& file, int rank, uint64_t limit = kMaxIdxBytes);

}  // namespace gpunn::data
