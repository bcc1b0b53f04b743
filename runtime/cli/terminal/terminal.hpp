#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn::cli {

// The abilities of the terminal on a file descriptor.
struct Terminal {
  bool interactive = false;  // a terminal, and not a dumb one
  bool colour = false;       // interactive, and NO_COLOR is not set
  bool utf8 = false;         // the locale's character set
};
Terminal terminal_of(int descriptor);

// Present number of columns; 80 if unknown.
std::size_t columns_of(int descriptor);

// Columns of the text, if each code point takes one column and escape sequences take none.
std::size_t display_width(std::string_view text);

enum class Colour { bold, red, green, yellow, dim };
// Colours the text, if the terminal has colours.
std::string coloured(const std::string& text, Colour colour, bool enabled);

// Text from outside with its control characters escaped, so that a file's name cannot control the terminal.
std::string printable(std::string_view text);

}  // namespace gpunn::cli
