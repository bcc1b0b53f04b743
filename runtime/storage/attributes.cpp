#include "storage/attributes.hpp"

#include <algorithm>
#include <type_traits>

#include "storage/format.hpp"

namespace gpunn::storage {

namespace {

// `type` is H5T_STD_I64LE or H5T_IEEE_F64LE, which are the host's own.
template <typename T>
T number_attribute(hid_t object, const std::string& name, hid_t type) {
  const std::string doing = "read the attribute '" + name + "'";
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, doing);
  const Handle stored(H5Aget_type(attribute), H5Tclose, doing);
  const Handle space(H5Aget_space(attribute), H5Sclose, doing);
  if (H5Tequal(stored, type) <= 0 || H5Sget_simple_extent_type(space) != H5S_SCALAR) {
    throw Hdf5Failure("the attribute '" + name + "' is not one little-endian 64-bit " +
                      (std::is_integral_v<T> ? "integer" : "floating-point number"));
  }
  T value{};
  check_call(H5Aread(attribute, type, &value), doing);
  return value;
}

template <typename T>
std::map<std::string, T> number_attributes(hid_t group, hid_t type) {
  const std::string doing = "list the attributes";
  H5O_info_t info{};
  check_call(H5Oget_info2(group, &info, H5O_INFO_NUM_ATTRS), doing);
  if (info.num_attrs > format::kMaxEntries)
    throw Hdf5Failure("a group has " + std::to_string(info.num_attrs) + " attributes");
  std::map<std::string, T> result;
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Handle attribute(H5Aopen_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose, doing);
    const ssize_t length = H5Aget_name(attribute, 0, nullptr);
    if (length <= 0 || static_cast<std::size_t>(length) > format::kMaxNameBytes) {
      throw Hdf5Failure("an attribute's name is empty or longer than " + std::to_string(format::kMaxNameBytes) +
                        " bytes");
    }
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    H5Aget_name(attribute, name.size(), name.data());
    name.pop_back();
    result[name] = number_attribute<T>(group, name, type);
  }
  return result;
}

}  // namespace

std::string text_attribute(hid_t object, const std::string& name) {
  const std::string doing = "read the attribute '" + name + "'";
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, doing);
  const Handle type(H5Aget_type(attribute), H5Tclose, doing);
  const Handle space(H5Aget_space(attribute), H5Sclose, doing);
  const std::size_t bytes = H5Tget_size(type);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
      H5Sget_simple_extent_type(space) != H5S_SCALAR || bytes == 0 || bytes > format::kMaxAttributeBytes) {
    throw Hdf5Failure("the attribute '" + name + "' is not one string of a fixed length of at most " +
                      std::to_string(format::kMaxAttributeBytes) + " bytes");
  }
  std::string text(bytes, '\0');
  check_call(H5Aread(attribute, type, text.data()), doing);
  text.resize(std::min(text.find('\0'), bytes));
  return text;
}

int64_t integer_attribute(hid_t object, const std::string& name) {
  return number_attribute<int64_t>(object, name, H5T_STD_I64LE);
}

std::map<std::string, int64_t> integer_attributes(hid_t object) {
  return number_attributes<int64_t>(object, H5T_STD_I64LE);
}

std::map<std::string, double> double_attributes(hid_t object) {
  return number_attributes<double>(object, H5T_IEEE_F64LE);
}

}  // namespace gpunn::storage
