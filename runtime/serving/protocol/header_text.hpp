#pragma once

#include <string>
#include <string_view>

namespace gpunn::serving {

// Words of HTTP's headers, which are ASCII.
std::string_view trimmed(std::string_view text);            // of spaces and tabs
bool is_same_word(std::string_view a, std::string_view b);  // upper and lower case alike
std::string lower(std::string_view text);

}  // namespace gpunn::serving
