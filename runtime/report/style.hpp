#pragma once

#include <string>

namespace gpunn::reports {

// The style sheet of a report: light or dark as the reader's system is, one column on a phone.
std::string style_sheet();

}  // namespace gpunn::reports
