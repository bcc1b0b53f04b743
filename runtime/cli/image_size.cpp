#include "cli/image_size.hpp"

#include <gpunn/error.hpp>

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace gpunn::cli {

FrameSize image_size(const char* option, const std::string& text) {
  const std::size_t cross = text.find('x');
  const auto number = [](std::string_view digits, int64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0;
  };
  FrameSize size;
  if (cross != std::string::npos && number(std::string_view(text).substr(0, cross), size.width) &&
      number(std::string_view(text).substr(cross + 1), size.height)) {
    return size;
  }
  throw Error(std::string(option) + ": expected WIDTHxHEIGHT, as 1920x1080, found '" + text + "'", ExitCode::usage);
}

}  // namespace gpunn::cli
