#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// Whether `text` is `pattern`, in which '*' stands for any characters and '?' for one.
bool matches(std::string_view pattern, std::string_view text);
// Whether one of the patterns matches.
bool any_matches(const std::vector<std::string>& patterns, std::string_view text);

}  // namespace gpunn
