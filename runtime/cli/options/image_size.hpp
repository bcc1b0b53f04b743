#pragma once

#include <gpunn/upscale.hpp>

#include <string>

namespace gpunn::cli {

// Of "1920x1080", width in front. Throws Error(usage), naming the option, where the text is another.
FrameSize image_size(const char* option, const std::string& text);

}  // namespace gpunn::cli
