#include "data/hdf5/hdf5_array.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/input_file.hpp"
#include "common/text.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using storage::Handle;

namespace {

constexpr uint64_t kBestDeflateRatio = 1032;  // that deflate packs
constexpr std::size_t kMostListed = 20;
constexpr int kMostDims = 8;

// HDF5's failures as the user's errors, with the name of the file in front.
template <class Call>
auto told(const fs::path& file, const Call& call) {
  try {
    return call();
  } catch (const storage::Hdf5Failure& failure) {
    throw Error(file.string() + ": " + failure.what());
  }
}

Handle open_file(const fs::path& path) {
  if (!is_file(path)) {
    throw Error(
        path.string() + (path_exists(path) ? " is not a regular file" : ": no such file") + "; expected an HDF5 file",
        ExitCode::missing);
  }
  if (H5Fis_hdf5(path.c_str()) <= 0) {
    throw Error(path.string() + ": it is not an HDF5 file: expected one that begins with HDF5's signature");
  }
  return told(path, [&] { return Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "open it"); });
}

Shape shape_of(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "read the shape");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > kMostDims) return {};
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  Shape shape;
  for (const hsize_t dim : dims) shape.push_back(static_cast<int64_t>(std::min<hsize_t>(dim, INT64_MAX)));
  return shape;
}

// "u8", "i64", "f32", or what else it is.
std::string type_text(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "read the type");
  const std::string bits = std::to_string(8 * H5Tget_size(type));
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return (H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "i") + bits;
    case H5T_FLOAT:
      return "f" + bits;
    case H5T_ENUM:
      return "enum" + bits;
    case H5T_STRING:
      return "text";
    default:
      return "records";
  }
}

herr_t list_array(hid_t root, const char* name, const H5O_info_t* info, void* list) {
  auto& names = *static_cast<std::vector<std::string>*>(list);
  if (info->type != H5O_TYPE_DATASET) return 0;
  if (names.size() == kMostListed) {
    names.emplace_back("...");
    return 1;
  }
  const hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT);
  if (dataset < 0) return 0;
  try {
    names.push_back(std::string(name) + " " + type_text(dataset) + to_string(shape_of(dataset)));
  } catch (const storage::Hdf5Failure&) {
    names.emplace_back(name);
  }
  H5Dclose(dataset);
  return 0;
}

// Whether each group on the way to `name` and the array itself are there.
bool is_there(hid_t file, const std::string& name) {
  for (std::size_t slash = name.find('/', 1);; slash = name.find('/', slash + 1)) {
    if (H5Lexists(file, name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) return H5Oexists_by_name(file, name.c_str(), H5P_DEFAULT) > 0;
  }
}

Handle open_array(const Hdf5File& file, const std::string& name) {
  if (name.empty() || name == "/" || !is_there(file.id(), name)) {
    throw Error(file.path().string() + ": there is no array " + in_quotes(name) + "; it has " + file.contents());
  }
  return told(file.path(), [&] {
    return Handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Dclose, "open '" + name + "' as an array");
  });
}

}  // namespace

Hdf5File::Hdf5File(const fs::path& file) : path_(file), file_(open_file(file)) {
  std::error_code ignored;
  bytes_ = fs::file_size(file, ignored);
}

std::string Hdf5File::contents() const {
  std::vector<std::string> names;
  H5Ovisit2(file_, H5_INDEX_NAME, H5_ITER_INC, list_array, &names, H5O_INFO_BASIC);
  return names.empty() ? "no arrays" : join(names, ", ");
}

Hdf5Array::Hdf5Array(const Hdf5File& file, const std::string& name)
    : file_(file), array_(name), dataset_(open_array(file, name)) {
  told(file.path(), [&] {
    shape_ = shape_of(dataset_);
    const Handle type(H5Dget_type(dataset_), H5Tclose, "read the type of '" + array_ + "'");
    // NumPy's bools are an enumeration of 0 and 1; HDF5 reads such values as integers.
    integers_ = H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_ENUM;
    bytes_ = integers_ && H5Tget_size(type) == 1 && H5Tget_sign(type) == H5T_SGN_NONE;
    constexpr std::size_t kIntegerBytesOfF32 = 2;  // f32 holds integers of 24 bits
    const std::size_t size = H5Tget_size(type);
    halves_ = !integers_ && size == 2;
    dtype_ = bytes_ ? DType::u8 : size > (integers_ ? kIntegerBytesOfF32 : sizeof(float)) ? DType::f64 : DType::f32;
    if (!integers_ && H5Tget_class(type) != H5T_FLOAT) fail("expected numbers, found " + type_text(dataset_));
    if (shape_.empty()) fail("expected an array, found a single value");
    require_plain();
    require_content(size);
  });
}

std::string Hdf5Array::name() const { return file_.path().string() + ": array " + in_quotes(array_); }

void Hdf5Array::fail(const std::string& what) const { throw Error(name() + ": " + what); }

// Its elements are in this file.
void Hdf5Array::require_plain() const {
  const Handle creation(H5Dget_create_plist(dataset_), H5Pclose, "read how '" + array_ + "' is stored");
  if (H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) > 0) {
    fail("its values are in other files; copy them into one (h5repack does)");
  }
}

void Hdf5Array::require_content(uint64_t element_bytes) const {
  uint64_t promised = element_bytes;
  for (const int64_t dim : shape_) {
    if (__builtin_mul_overflow(promised, static_cast<uint64_t>(dim), &promised)) promised = UINT64_MAX;
  }
  if (std::find(shape_.begin(), shape_.end(), 0) != shape_.end()) promised = 0;
  if (promised == 0) fail("it is empty: its shape is " + to_string(shape_));
  const uint64_t stored = std::min<uint64_t>(H5Dget_storage_size(dataset_), file_.bytes());
  if (promised / kBestDeflateRatio > stored || stored == 0) {
    fail("its shape " + to_string(shape_) + " promises " + human_bytes(promised) + "; the file has " +
         human_bytes(stored) + " of it, which can't be unpacked to that. It was not written to its end, or is damaged");
  }
}

void Hdf5Array::read_rows(int64_t first, int64_t count, hid_t type, void* out) const {
  told(file_.path(), [&] {
    const std::string doing = "read rows of '" + array_ + "'";
    std::vector<hsize_t> start(shape_.size(), 0), size(shape_.begin(), shape_.end());
    start[0] = static_cast<hsize_t>(first);
    size[0] = static_cast<hsize_t>(count);
    const Handle in_file(H5Dget_space(dataset_), H5Sclose, doing);
    storage::check_call(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr),
                        doing);
    const Handle in_memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose, doing);
    storage::check_call(H5Dread(dataset_, type, in_memory, in_file, H5P_DEFAULT, out), doing);
  });
}

}  // namespace gpunn::data
