#pragma once

#include <cstddef>
#include <string_view>

#include "storage/hdf5.hpp"

namespace gpunn::storage {

// An HDF5 file that is made in memory. The library then meets no disk at all while it writes: after a failed flush it
// keeps the broken file open, which would spoil the next save once there is space again.
class FileImage {
 public:
  explicit FileImage(std::size_t expected_bytes);
  ~FileImage();
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;

  hid_t file() const { return file_; }
  // Closes the file; every handle to something in it must be gone. The bytes live as long as the image.
  std::string_view finish();

 private:
  static void* resize(void* old, std::size_t bytes, H5FD_file_image_op_t why, void* self);
  static herr_t release(void* buffer, H5FD_file_image_op_t why, void* self);

  void* buffer_ = nullptr;
  std::size_t bytes_ = 0;
  hid_t file_ = -1;
};

}  // namespace gpunn::storage
