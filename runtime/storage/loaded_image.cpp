#include "storage/loaded_image.hpp"

#include <cstddef>
#include <utility>

namespace gpunn::storage {

namespace {

constexpr std::size_t kUnusedIncrement = std::size_t{64} << 10;

// The library copies an image twice, from property list to file, unless its allocator hands out the same bytes again.
void* same_bytes(std::size_t /*bytes*/, H5FD_file_image_op_t /*why*/, void* image) {
  return static_cast<std::string*>(image)->data();
}
void* copy_nothing(void* to, const void* /*from*/, std::size_t /*bytes*/, H5FD_file_image_op_t /*why*/,
                   void* /*image*/) {
  return to;
}
void* never_grow(void* /*old*/, std::size_t /*bytes*/, H5FD_file_image_op_t /*why*/, void* /*image*/) {
  return nullptr;
}
herr_t free_nothing(void* /*bytes*/, H5FD_file_image_op_t /*why*/, void* /*image*/) { return 0; }
void* same_image(void* image) { return image; }
herr_t keep_image(void* /*image*/) { return 0; }

Handle open(std::string& bytes) {
  const std::string doing = "open it as HDF5; it is truncated or damaged";
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, doing);
  check_call(H5Pset_fapl_core(access, kUnusedIncrement, false), doing);
  H5FD_file_image_callbacks_t callbacks = {same_bytes, copy_nothing, never_grow, free_nothing,
                                           same_image, keep_image,   &bytes};
  check_call(H5Pset_file_image_callbacks(access, &callbacks), doing);
  check_call(H5Pset_file_image(access, bytes.data(), bytes.size()), doing);
  // The name is never used on a disk, but the library tells open files apart by it.
  const std::string name = "gpunn-loaded-" + std::to_string(reinterpret_cast<std::uintptr_t>(&bytes));
  return {H5Fopen(name.c_str(), H5F_ACC_RDONLY, access), H5Fclose, doing};
}

}  // namespace

LoadedImage::LoadedImage(std::string bytes) : bytes_(std::move(bytes)), file_(open(bytes_)) {}

}  // namespace gpunn::storage
