#include "serving/protocol/multipart.hpp"

#include <algorithm>
#include <utility>

#include "serving/protocol/header_text.hpp"
#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

constexpr std::size_t kMostParts = 64, kMostHeaderBytes = 8192, kMostBoundary = 70;

[[noreturn]] void refuse_form(const std::string& why) { throw ServiceError(400, "the form can't be read: " + why); }

// A header's value and its parameters: `form-data; name="x"; filename="a b.png"`. A backslash quotes in quotes.
std::string parameter_of(std::string_view value, std::string_view wanted) {
  std::size_t at = value.find(';');
  while (at < value.size()) {
    ++at;
    const std::size_t equals = value.find_first_of("=;", at);
    if (equals == std::string_view::npos) break;
    const std::string_view name = trimmed(value.substr(at, equals - at));
    at = equals;
    if (value[equals] == ';') continue;
    std::string text;
    ++at;
    while (at < value.size() && (value[at] == ' ' || value[at] == '\t')) ++at;
    if (at < value.size() && value[at] == '"') {
      for (++at; at < value.size() && value[at] != '"'; ++at) {
        if (value[at] == '\\' && at + 1 < value.size() && (value[at + 1] == '"' || value[at + 1] == '\\')) ++at;
        text += value[at];
      }
      at = value.find(';', at);
    } else {
      const std::size_t end = std::min(value.find(';', at), value.size());
      text = trimmed(value.substr(at, end - at));
      at = end;
    }
    if (is_same_word(name, wanted)) return text;
  }
  return {};
}

FormPart part_of(std::string_view head, std::string_view content) {
  FormPart part;
  part.content = content;
  bool has_disposition = false;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) refuse_form("a part has a header without ':'");
    const std::string_view name = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (is_same_word(name, "Content-Disposition")) {
      has_disposition = true;
      part.name = parameter_of(value, "name");
      part.file = parameter_of(value, "filename");
    } else if (is_same_word(name, "Content-Type")) {
      part.content_type = lower(trimmed(value.substr(0, value.find(';'))));
    }
  }
  if (!has_disposition) refuse_form("a part has no Content-Disposition");
  return part;
}

}  // namespace

std::string multipart_boundary(std::string_view content_type) {
  if (!is_same_word(trimmed(content_type.substr(0, content_type.find(';'))), "multipart/form-data")) return {};
  std::string boundary = parameter_of(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kMostBoundary) {
    refuse_form("its Content-Type names no boundary of 1 to 70 characters");
  }
  return boundary;
}

std::vector<FormPart> parse_multipart(std::string_view body, std::string_view boundary) {
  const std::string delimiter = "\r\n--" + std::string(boundary);
  std::vector<FormPart> parts;
  // The first delimiter may be the first line; what stands before it means nothing.
  std::size_t at = 0;
  if (body.starts_with(std::string_view(delimiter).substr(2))) {
    at = delimiter.size() - 2;
  } else {
    at = body.find(delimiter);
    if (at == std::string_view::npos) refuse_form("its boundary is nowhere in the body");
    at += delimiter.size();
  }
  for (;;) {
    if (body.substr(at).starts_with("--")) return parts;
    while (at < body.size() && (body[at] == ' ' || body[at] == '\t')) ++at;
    if (!body.substr(at).starts_with("\r\n")) refuse_form("a boundary is not followed by a line break");
    const std::string_view rest = body.substr(at + 2);
    const std::size_t end = rest.find(delimiter);
    if (end == std::string_view::npos) refuse_form("it ends within a part");
    const std::string_view part = rest.substr(0, end);
    const std::size_t blank = part.starts_with("\r\n") ? 0 : part.find("\r\n\r\n");
    if (blank == std::string_view::npos) refuse_form("a part has no empty line behind its headers");
    if (blank > kMostHeaderBytes) refuse_form("the headers of a part are longer than 8192 bytes");
    if (parts.size() == kMostParts) refuse_form("it has more than 64 parts");
    const std::size_t content = blank == 0 && part.starts_with("\r\n") ? 2 : blank + 4;
    parts.push_back(part_of(part.substr(0, blank), part.substr(std::min(content, part.size()))));
    at += 2 + end + delimiter.size();
  }
}

}  // namespace gpunn::serving
