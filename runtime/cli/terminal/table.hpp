#pragma once

#include <string>
#include <vector>

namespace gpunn::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

// Rows of text in columns as wide as their widest cell. The last column is never padded.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // A line of titles, then a line a row, each ended by '\n'.
  std::string text(bool colour = false) const;
  // The same as a table of Markdown.
  std::string markdown() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpunn::cli
