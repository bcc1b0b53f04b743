#include "cli/terminal/terminal.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "common/escape.hpp"

namespace gpunn::cli {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = environment(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

Terminal terminal_of(int descriptor) {
  Terminal terminal;
  const std::string kind = environment("TERM");
  terminal.interactive = ::isatty(descriptor) == 1 && !kind.empty() && kind != "dumb";
  terminal.colour = terminal.interactive && environment("NO_COLOR").empty();
  terminal.utf8 = locale_is_utf8();
  return terminal;
}

std::size_t columns_of(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      ++width;
    }
  }
  return width;
}

std::string coloured(const std::string& text, Colour colour, bool enabled) {
  if (!enabled) return text;
  const char* code = "1";
  switch (colour) {
    case Colour::bold:
      code = "1";
      break;
    case Colour::red:
      code = "31";
      break;
    case Colour::green:
      code = "32";
      break;
    case Colour::yellow:
      code = "33";
      break;
    case Colour::dim:
      code = "2";
      break;
  }
  return "\x1b[" + std::string(code) + "m" + text + "\x1b[0m";
}

std::string printable(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace gpunn::cli
