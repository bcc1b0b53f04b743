#include "cli/options/image_size.hpp"

#include <gpunn/error.hpp>

#include <cstddef>
#include <string_view>

#include "common/parse_number.hpp"

namespace gpunn::cli {

FrameSize image_size(const char* option, const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross != std::string::npos) {
    const auto width = parse_number<int64_t>(std::string_view(text).substr(0, cross));
    const auto height = parse_number<int64_t>(std::string_view(text).substr(cross + 1));
    if (width && height && *width > 0 && *height > 0) return {.width = *width, .height = *height};
  }
  throw Error(std::string(option) + ": expected WIDTHxHEIGHT, as 1920x1080, found '" + text + "'", ExitCode::usage);
}

}  // namespace gpunn::cli
