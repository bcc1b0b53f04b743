#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn {

// Number of bytes of the UTF-8 character at the start of `text`, which is not empty; 0: there is no valid one. Overlong
// forms, surrogates and numbers beyond Unicode are invalid.
std::size_t utf8_bytes(std::string_view text);

// Makes text from a file or a name fit for a message: control characters except those in `kept`, and bytes that are not
// UTF-8, become "\n", "\0", "\x9b". So a file cannot end a message early, add lines to it, or control a terminal.
std::string escaped(std::string_view text, std::string_view kept = "");

}  // namespace gpunn
