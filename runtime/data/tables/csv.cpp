#include "data/tables/csv.hpp"

#include <gpunn/error.hpp>

#include <cmath>
#include <string_view>

#include "common/files.hpp"
#include "common/parse_number.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

CsvReader::CsvReader(const std::filesystem::path& file, char delimiter)
    : file_(file), text_(files::read_text(file, kMostCsvBytes)), delimiter_(delimiter) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
}

void CsvReader::fail(const std::string& what) const {
  throw Error(file_.string() + ":" + std::to_string(line_) + ": " + what);
}

bool CsvReader::next(std::vector<std::string>& fields) {
  for (;;) {
    if (at_ >= text_.size()) return false;
    line_ = next_line_;
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
      if (fields.size() == count) fields.emplace_back();
      read_field(fields[count]);
      more = at_ < text_.size() && text_[at_] == delimiter_;
      if (more) ++at_;
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) ++at_;  // the line feed
    ++next_line_;
    fields.resize(count);
    if (count > 1 || !fields.front().empty()) return true;
  }
}

void CsvReader::read_field(std::string& field) {
  field.clear();
  std::size_t first = at_;
  while (first < text_.size() && is_blank(text_[first]) && text_[first] != delimiter_) ++first;
  if (first < text_.size() && text_[first] == '"') {
    at_ = first + 1;
    read_quoted(field);
    return;
  }
  std::size_t end = first;
  while (end < text_.size() && text_[end] != delimiter_ && text_[end] != '\n') ++end;
  at_ = end;
  const bool line_ends = end == text_.size() || text_[end] == '\n';
  if (line_ends && end > first && text_[end - 1] == '\r') at_ = --end;
  while (end > first && is_blank(text_[end - 1])) --end;
  field.assign(text_, first, end - first);
}

void CsvReader::read_quoted(std::string& field) {
  for (;; ++at_) {
    if (at_ >= text_.size()) fail("a field that begins with a double quote is not closed");
    const char c = text_[at_];
    if (c == '\n') ++next_line_;
    if (c != '"') {
      field += c;
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field += '"';
      ++at_;
    } else {
      break;
    }
  }
  ++at_;
  while (at_ < text_.size() && is_blank(text_[at_]) && text_[at_] != delimiter_) ++at_;
  const std::string_view rest = std::string_view(text_).substr(at_);
  const bool ends =
      rest.empty() || rest[0] == delimiter_ || rest[0] == '\n' || rest == "\r" || rest.starts_with("\r\n");
  if (!ends) fail("expected the delimiter behind a closing double quote, found '" + std::string(1, text_[at_]) + "'");
}

char delimiter_of(Delimiter delimiter) {
  switch (delimiter) {
    case Delimiter::semicolon:
      return ';';
    case Delimiter::tab:
      return '\t';
    case Delimiter::comma:
      break;
  }
  return ',';
}

}  // namespace gpunn::data
