#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpunn::serving {

// A part of a form: its bytes lie in the body.
struct FormPart {
  std::string name, file, content_type;
  std::string_view content;
};

// The boundary of a Content-Type that is multipart/form-data; empty for another type. Throws ServiceError(400) if the
// boundary is missing or wrong.
std::string multipart_boundary(std::string_view content_type);

// The parts of a body, as browsers send forms (RFC 7578). Throws ServiceError(400) if it is damaged or has more than 64
// parts.
std::vector<FormPart> parse_multipart(std::string_view body, std::string_view boundary);

}  // namespace gpunn::serving
