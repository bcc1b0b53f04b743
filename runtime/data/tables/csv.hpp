#pragma once

#include <gpunn/experiment.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::data {

inline constexpr std::size_t kMostCsvBytes = std::size_t{16} << 30;

// Reads the records of a CSV file (RFC 4180: fields in double quotes may hold anything, "" is a quote; lines may end in
// LF or CR LF), one after the other. Blank lines are passed over, as are blanks around a field that is not quoted.
class CsvReader {
 public:
  CsvReader(const std::filesystem::path& file, char delimiter);

  // Reads the next record into `fields`; false at the end. Throws Error, with the line, if a quote is not closed.
  bool next(std::vector<std::string>& fields);
  // The line that the record begins at, from 1.
  int64_t line() const { return line_; }
  std::size_t bytes() const { return text_.size(); }
  std::size_t position() const { return at_; }  // of these bytes
  // Throws Error: "FILE:LINE: what".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void read_field(std::string& field);
  void read_quoted(std::string& field);

  std::filesystem::path file_;
  std::string text_;
  std::size_t at_ = 0;
  char delimiter_;
  int64_t line_ = 0, next_line_ = 1;
};

char delimiter_of(Delimiter delimiter);

}  // namespace gpunn::data
