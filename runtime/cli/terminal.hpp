#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn::cli {

// What the terminal on a file descriptor can do.
struct Terminal {
  bool interactive = false;  // a terminal, and not a dumb one
  bool colour = false;       // interactive, and NO_COLOR is not set
  bool utf8 = false;         // the locale's character set
};
Terminal terminal_of(int descriptor);

// Columns now; 80 where that is not known.
std::size_t columns_of(int descriptor);

// Characters that the text takes up, if each of its code points takes one column and escape sequences none.
std::size_t display_width(std::string_view text);

enum class Colour { bold, red, green, yellow, dim };
// The text in colour, or as it is.
std::string coloured(const std::string& text, Colour colour, bool enabled);

// Text from outside, its control characters escaped, so that a file's name can't drive the terminal.
std::string printable(std::string_view text);

}  // namespace gpunn::cli
