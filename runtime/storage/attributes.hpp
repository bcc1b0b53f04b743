#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "storage/hdf5.hpp"

namespace gpunn::storage {

// Readers of one object's attributes. All throw Hdf5Failure if an attribute is missing or of another kind.

std::string text_attribute(hid_t object, const std::string& name);
int64_t integer_attribute(hid_t object, const std::string& name);
// Every attribute of the object, which must all be of the kind.
std::map<std::string, int64_t> integer_attributes(hid_t object);
std::map<std::string, double> double_attributes(hid_t object);

}  // namespace gpunn::storage
