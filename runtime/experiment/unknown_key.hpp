#pragma once

#include <string>

namespace gpunn::config {

// The end of a message about a key that `section` ("" at the top) lacks: the nearest key in any section, or an
// explanation. `value` is the key's value, empty if that is not a scalar.
std::string key_advice(const std::string& section, const std::string& name, const std::string& value);

// "epochs, seed": the keys of a section, or the command that lists them if there are many.
std::string keys_text(const std::string& section);

}  // namespace gpunn::config
