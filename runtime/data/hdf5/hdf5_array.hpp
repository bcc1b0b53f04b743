#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "storage/hdf5.hpp"

namespace gpunn::data {

// A file opened for reading. HDF5 belongs to this thread as long as one lives.
class Hdf5File {
 public:
  // Throws Error(missing) if the file does not exist, and Error if it is not an HDF5 file.
  explicit Hdf5File(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  hid_t id() const { return file_; }
  // "images u8[100, 28, 28], labels i64[100]": the arrays in it, for errors.
  std::string contents() const;

 private:
  std::filesystem::path path_;
  storage::Hdf5Session session_;
  uint64_t bytes_ = 0;
  storage::Handle file_;
};

// An array of numbers in a file. Throws Error if there is none of this name, if it has other content, or if it claims
// more elements than its bytes can hold.
class Hdf5Array {
 public:
  Hdf5Array(const Hdf5File& file, const std::string& name);

  const Shape& shape() const { return shape_; }
  bool bytes() const { return bytes_; }        // its elements are unsigned bytes
  bool integers() const { return integers_; }  // of any size
  // The type that holds each of its numbers: u8, f32, or f64 for what f32 would round.
  DType dtype() const { return dtype_; }
  bool halves() const { return halves_; }  // its elements are f16
  std::string name() const;                // "FILE: array 'images'"

  // Reads the rows [first, first + count) converted to `type`, which is one of the library's native types.
  void read_rows(int64_t first, int64_t count, hid_t type, void* out) const;

 private:
  void require_plain() const;
  void require_content(uint64_t element_bytes) const;
  [[noreturn]] void fail(const std::string& what) const;

  const Hdf5File& file_;
  std::string array_;
  storage::Handle dataset_;
  Shape shape_;
  bool bytes_ = false, integers_ = false, halves_ = false;
  DType dtype_ = DType::f32;
};

}  // namespace gpunn::data
