#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn {

// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0: it is none. Overlong forms, surrogates
// and what is beyond Unicode are none.
std::size_t utf8_bytes(std::string_view text);

// Text from a file or a name, fit for a message: control characters except those `kept`, and bytes that are no UTF-8,
// become "\n", "\0", "\x9b". So nothing in a file can end a message early, add lines to it, or drive a terminal.
std::string escaped(std::string_view text, std::string_view kept = "");

}  // namespace gpunn
