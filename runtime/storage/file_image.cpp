#include "storage/file_image.hpp"

#include <algorithm>
#include <cstdlib>

namespace gpunn::storage {

namespace {

constexpr std::size_t kSmallestIncrement = std::size_t{64} << 10;

void* same_user_data(void* self) { return self; }
herr_t keep_user_data(void* /*self*/) { return 0; }

}  // namespace

// The library allocates the image through these two, so that the bytes outlive the closing of the file without a copy.
// It hands them back in C's allocator's terms.
void* FileImage::resize(void* old, std::size_t bytes, H5FD_file_image_op_t /*why*/, void* self) {
  void* buffer = std::realloc(old, bytes);  // NOLINT(cppcoreguidelines-no-malloc)
  if (buffer != nullptr) static_cast<FileImage*>(self)->buffer_ = buffer;
  return buffer;
}

herr_t FileImage::release(void* /*buffer*/, H5FD_file_image_op_t /*why*/, void* /*self*/) { return 0; }

FileImage::FileImage(std::size_t expected_bytes) {
  const std::string doing = "make a file in memory";
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, doing);
  const std::size_t increment = std::max(kSmallestIncrement, expected_bytes / 8);
  check_call(H5Pset_fapl_core(access, increment, false), doing);
  // The formats of HDF5 1.10 protect every structure of the file with a checksum; older ones do not.
  check_call(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), doing);
  H5FD_file_image_callbacks_t callbacks{};
  callbacks.image_realloc = resize;
  callbacks.image_free = release;
  callbacks.udata_copy = same_user_data;
  callbacks.udata_free = keep_user_data;
  callbacks.udata = this;
  check_call(H5Pset_file_image_callbacks(access, &callbacks), doing);
  // The name is never used on a disk, but the library tells open files apart by it.
  const std::string name = "gpunn-image-" + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  file_ = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (file_ < 0) fail_in_hdf5(doing);
}

FileImage::~FileImage() {
  if (file_ >= 0) H5Fclose(file_);
  std::free(buffer_);  // NOLINT(cppcoreguidelines-no-malloc)
}

std::string_view FileImage::finish() {
  const std::string doing = "finish the file in memory";
  check_call(H5Fflush(file_, H5F_SCOPE_LOCAL), doing);
  // Asked for nothing, this tells the size. Its copy would say that the file is still open for writing; ours does not.
  const ssize_t bytes = H5Fget_file_image(file_, nullptr, 0);
  if (bytes < 0) fail_in_hdf5(doing);
  bytes_ = static_cast<std::size_t>(bytes);
  check_call(H5Fclose(std::exchange(file_, -1)), doing);
  return {static_cast<const char*>(buffer_), bytes_};
}

}  // namespace gpunn::storage
