#include "storage/hdf5.hpp"

#include <algorithm>

#include <pthread.h>

#include "common/escape.hpp"

namespace gpunn::storage {

namespace {

herr_t keep_first_description(unsigned /*position*/, const H5E_error2_t* error, void* text) {
  auto& result = *static_cast<std::string*>(text);
  if (result.empty() && error->desc != nullptr) result = error->desc;
  return 0;
}

// Free in a child process, whatever thread held it in the parent. Never destroyed: other static objects may use it.
std::mutex& library_mutex() {
  static std::mutex* const mutex = [] {
    pthread_atfork([] { library_mutex().lock(); }, [] { library_mutex().unlock(); }, [] { library_mutex().unlock(); });
    return new std::mutex;
  }();
  return *mutex;
}

// A floating-point number of two bytes: one sign bit, then the exponent, then the mantissa.
Handle half_type(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  const std::string doing = "describe a 16-bit floating-point type";
  Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, doing);
  check_call(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), doing);
  check_call(H5Tset_size(type, 2), doing);
  check_call(H5Tset_ebias(type, bias), doing);
  return type;
}

Handle copy_of(hid_t type) { return {H5Tcopy(type), H5Tclose, "copy a data type"}; }

}  // namespace

std::string hdf5_error_text() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first_description, &text);
  return text;
}

void fail_in_hdf5(const std::string& doing) {
  const std::string text = hdf5_error_text();
  throw Hdf5Failure("cannot " + doing + (text.empty() ? "" : " (HDF5: " + escaped(text) + ")"));
}

Hdf5Session::Hdf5Session() : lock_(library_mutex()) {
  // A damaged file can leave something open inside the library that it then fails, loudly, to close at exit. Nothing of
  // ours is open by then.
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

Handle file_type(DType type) {
  switch (type) {
    case DType::f32:
      return copy_of(H5T_IEEE_F32LE);
    case DType::bf16:
      return half_type(8, 7, 127);
    case DType::f16:
      return half_type(5, 10, 15);
    case DType::f64:
      return copy_of(H5T_IEEE_F64LE);
    case DType::i32:
      return copy_of(H5T_STD_I32LE);
    case DType::i64:
      return copy_of(H5T_STD_I64LE);
    case DType::u8:
      return copy_of(H5T_STD_U8LE);
  }
  throw Hdf5Failure("has no HDF5 type for dtype number " + std::to_string(static_cast<int>(type)));
}

Handle string_type(std::size_t bytes) {
  const std::string doing = "describe a string";
  Handle type = copy_of(H5T_C_S1);
  check_call(H5Tset_size(type, std::max<std::size_t>(bytes, 1)), doing);
  check_call(H5Tset_strpad(type, H5T_STR_NULLPAD), doing);
  check_call(H5Tset_cset(type, H5T_CSET_UTF8), doing);
  return type;
}

}  // namespace gpunn::storage
