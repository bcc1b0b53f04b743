#pragma once

#include <string>

#include "report/contents.hpp"

namespace gpunn::reports {

// The whole report: one HTML document without scripts, whose images are within it. Texts are escaped.
std::string page(const Contents& contents);

}  // namespace gpunn::reports
