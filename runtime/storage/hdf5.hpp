#pragma once

#include <gpunn/tensor_type.hpp>

#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include <hdf5.h>

namespace gpunn::storage {

// A mistake inside a checkpoint file; save_checkpoint and load_checkpoint put the file's name in front.
class Hdf5Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// HDF5's message about its last error, the most specific one; empty if it has none.
std::string hdf5_error_text();

// Throws Hdf5Failure "cannot <doing>: <HDF5's own words>".
[[noreturn]] void fail_in_hdf5(const std::string& doing);

inline void check_call(herr_t status, const std::string& doing) {
  if (status < 0) fail_in_hdf5(doing);
}

// An HDF5 identifier, closed by the function that fits its kind.
class Handle {
 public:
  using Closer = herr_t (*)(hid_t);

  Handle(hid_t id, Closer closer, const std::string& doing) : id_(id), closer_(closer) {
    if (id_ < 0) fail_in_hdf5(doing);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  // Implicit, so that a Handle goes wherever the C library takes a hid_t.
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)

 private:
  hid_t id_;
  Closer closer_;
};

// While one lives, this thread has HDF5 (whose usual build is not thread-safe) for itself, and HDF5 prints nothing.
class Hdf5Session {
 public:
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// The type of a dataset in the file, which is also the one it is read and written with: little-endian, no conversion.
Handle file_type(DType type);
// UTF-8 of exactly `bytes` bytes, padded with NUL.
Handle string_type(std::size_t bytes);

}  // namespace gpunn::storage
