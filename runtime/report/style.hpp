#pragma once

#include <string_view>

namespace gpunn::reports {

// The style sheet of a report: light or dark as the reader's system is, one column on a phone.
std::string_view style_sheet();

}  // namespace gpunn::reports
