#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn::data {

// An array of a file that numpy.savez or numpy.savez_compressed has written.
struct NpzArray {
  std::string name;
  TensorType type;  // bool and numbers of other sizes are not read
  std::vector<std::byte> values;
};

// The arrays of an .npz file, in the order of its directory: a ZIP archive of .npy files (APPNOTE 6.3, NumPy's format
// 1 to 3). Throws Error if the file is damaged or has arrays of other types, and Error(missing) if it can't be read.
std::vector<NpzArray> read_npz(const std::filesystem::path& file);

}  // namespace gpunn::data
