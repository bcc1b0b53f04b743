#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string in_quotes(std::string_view text);   // in single quotes, escaped
std::string shell_word(std::string_view text);  // as a shell reads it: in single quotes if it needs them
std::string human_bytes(uint64_t bytes);        // "1.5 MiB"
// "7 images have no annotation: a.jpg, b.jpg, c.jpg, ..."
std::string named_count(const std::vector<std::string>& names, const std::string& one, const std::string& several);

}  // namespace gpunn
