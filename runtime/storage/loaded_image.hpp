#pragma once

#include <string>

#include "storage/hdf5.hpp"

namespace gpunn::storage {

// The bytes of an HDF5 file, which have been read already, as an open file. The library then meets no disk: it takes an
// interrupted call for an error, and says of a disk that fails that the file is none of its kind.
class LoadedImage {
 public:
  // Throws Hdf5Failure if the bytes are not such a file, or are damaged.
  explicit LoadedImage(std::string bytes);
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  hid_t file() const { return file_; }

 private:
  std::string bytes_;
  Handle file_;
};

}  // namespace gpunn::storage
