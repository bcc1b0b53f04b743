#pragma once

#include <string>

namespace gpunn::config {

// The end of a message about a key that `section` ("" at the top) doesn't have: the nearest one, in whichever section
// it is, or what the key asks for. `value` is what it was given, empty where that is no scalar.
std::string key_advice(const std::string& section, const std::string& name, const std::string& value);

// "epochs, seed", the keys of a section, or where they are many the command that lists them.
std::string keys_text(const std::string& section);

}  // namespace gpunn::config
