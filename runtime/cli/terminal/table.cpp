#include "cli/terminal/table.hpp"

#include <algorithm>

#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(bool colour) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  std::string result;
  const auto append = [&](std::size_t column, const std::string& cell, const std::string& shown) {
    const std::string padding(widths[column] - display_width(cell), ' ');
    const bool last = column + 1 == columns_.size();
    if (columns_[column].align == Align::right) {
      result += padding + shown;
    } else {
      result += shown;
      if (!last) result += padding;
    }
    result += last ? "\n" : "  ";
  };
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    append(i, columns_[i].title, coloured(columns_[i].title, Colour::bold, colour));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < columns_.size(); ++i) append(i, row[i], row[i]);
  }
  return result;
}

namespace {

// A bar would end the cell.
std::string markdown_cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

}  // namespace

std::string Table::markdown() const {
  std::string titles = "|", rule = "|", result;
  for (const Column& column : columns_) {
    titles += " " + markdown_cell(column.title) + " |";
    rule += column.align == Align::right ? "---:|" : "---|";
  }
  result = titles + "\n" + rule + "\n";
  for (const auto& row : rows_) {
    result += "|";
    for (const std::string& cell : row) result += " " + markdown_cell(cell) + " |";
    result += "\n";
  }
  return result;
}

}  // namespace gpunn::cli
