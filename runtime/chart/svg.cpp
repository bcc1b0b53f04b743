#include "chart/svg.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "common/escape.hpp"

namespace gpunn::chart {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character that text begins with; 0: it is none that XML allows.
std::size_t character(std::string_view text) {
  const char first = text.front();
  const bool control = (first >= 0 && first < ' ' && first != '\n' && first != '\t') || first == '\x7F';
  // U+FFFE and U+FFFF
  const bool no_character = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
  return control || no_character ? 0 : utf8_bytes(text);
}

std::string_view name_of(SvgWriter::Anchor anchor) {
  switch (anchor) {
    case SvgWriter::Anchor::start:
      return "start";
    case SvgWriter::Anchor::middle:
      return "middle";
    case SvgWriter::Anchor::end:
      return "end";
  }
  return "start";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t size = character(text);
    const std::string_view one = size > 0 ? text.substr(0, size) : kReplacement;
    if (one == "&") {
      result += "&amp;";
    } else if (one == "<") {
      result += "&lt;";
    } else if (one == ">") {
      result += "&gt;";
    } else if (one == "\"") {
      result += "&quot;";
    } else if (one == "'") {
      result += "&#39;";
    } else {
      result += one;
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return result;
}

SvgWriter::SvgWriter(double width, double height, std::string_view title, std::string_view description,
                     std::string_view ground) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n<desc>{3}</desc>\n",
      width, height, escaped(title), escaped(description));
  if (ground == "none") return;
  out_ += "<style>\n" + dark_style() + "</style>\n";
  rectangle(0, 0, width, height, ground);
}

void SvgWriter::rectangle(double x, double y, double width, double height, std::string_view fill) {
  out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                      height, fill);
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
  out_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", x1, y1,
      x2, y2, stroke, width);
}

void SvgWriter::circle(double x, double y, double radius, std::string_view fill) {
  out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y, radius, fill);
}

void SvgWriter::text(double x, double y, std::string_view text, const TextStyle& style) {
  const std::string turned = style.upwards ? fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y) : "";
  out_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:g}\" text-anchor=\"{}\"{} fill=\"{}\"{}>{}</text>\n", x, y,
      style.size, name_of(style.anchor), style.bold ? " font-weight=\"bold\"" : "", style.fill, turned, escaped(text));
}

void SvgWriter::path(std::string_view data, std::string_view stroke, double width) {
  out_ += fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" stroke-linejoin=\"round\" "
      "stroke-linecap=\"round\"/>\n",
      data, stroke, width);
}

std::string SvgWriter::finish() { return out_ + "</svg>\n"; }

}  // namespace gpunn::chart
