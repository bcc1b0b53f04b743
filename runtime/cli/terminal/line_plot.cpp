#include "cli/terminal/line_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace gpunn::cli {

namespace {

constexpr std::size_t kRows = 12;
constexpr std::size_t kLabel = 10;  // characters in front of the axis

// Dots, several to a character.
class Canvas {
 public:
  Canvas(std::size_t columns, bool braille)
      : columns_(columns), across_(braille ? 2 : 1), down_(braille ? 4 : 1), cells_(columns * kRows) {}

  std::size_t width() const { return columns_ * across_; }
  std::size_t height() const { return kRows * down_; }

  // y counts from the bottom.
  void set(std::size_t x, std::size_t y) {
    // The bits of a Braille pattern: three rows of two, then the fourth.
    constexpr std::array<std::array<uint8_t, 2>, 4> kBits = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    const std::size_t from_top = height() - 1 - y;
    cells_[from_top / down_ * columns_ + x / across_] |= kBits[from_top % down_][x % across_];
  }

  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t column = 0; column < columns_; ++column) {
      const uint8_t cell = cells_[row * columns_ + column];
      if (cell == 0) {
        text += ' ';
      } else if (across_ == 1) {
        text += '*';
      } else {  // U+2800 and the pattern, in UTF-8
        text += {'\xe2', static_cast<char>(0xa0 + (cell >> 6)), static_cast<char>(0x80 + (cell & 0x3f))};
      }
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  std::size_t columns_, across_, down_;
  std::vector<uint8_t> cells_;
};

// Of the values that share a column, and the one before them, so that the line is never broken.
void draw(Canvas& canvas, const std::vector<float>& values, double low, double high, bool logarithmic) {
  const auto place = [&](double value) {
    const double share = high <= low   ? 0.5
                         : logarithmic ? std::log(value / low) / std::log(high / low)
                                       : (value - low) / (high - low);
    return static_cast<std::size_t>(
        std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(canvas.height() - 1)));
  };
  std::size_t before = 0;  // the first value of the column before
  for (std::size_t x = 0; x < canvas.width(); ++x) {
    const std::size_t first = x * values.size() / canvas.width();
    const std::size_t end = std::max((x + 1) * values.size() / canvas.width(), first + 1);
    const std::size_t begin = first == before ? first : first - 1;
    before = first;
    const auto [least, most] = std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                                   values.begin() + static_cast<std::ptrdiff_t>(end));
    for (std::size_t y = place(*least); y <= place(*most); ++y) canvas.set(x, y);
  }
}

}  // namespace

std::string drawing(const LinePlot& plot, std::size_t columns, bool utf8) {
  if (plot.values.empty() || columns < kLabel + 3) return "";
  const auto [least, most] = std::ranges::minmax(plot.values);
  const double low = plot.logarithmic ? least : std::min(least, 0.0F);
  const double high = most;
  Canvas canvas(columns - kLabel - 2, utf8);
  draw(canvas, plot.values, low, high, plot.logarithmic);
  std::string text;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::string label = row == 0           ? fmt::format("{:.4g}", high)
                              : row == kRows - 1 ? fmt::format("{:.4g}", low)
                                                 : "";
    text += fmt::format("{:>{}} {}{}\n", label, kLabel, utf8 ? "│" : "|", canvas.row(row));
  }
  std::string axis;
  for (std::size_t i = 0; i < columns - kLabel - 2; ++i) axis += utf8 ? "─" : "-";
  text += fmt::format("{:>{}} {}{}\n", "", kLabel, utf8 ? "└" : "+", axis);
  const std::string end = fmt::format("{:.6g}", plot.x_end);
  const std::size_t room = columns - kLabel - 2 > end.size() + 1 ? columns - kLabel - 3 - end.size() : 0;
  text += fmt::format("{:>{}}  0{:^{}}{}\n", "", kLabel, plot.x_label, room, end);
  return text;
}

}  // namespace gpunn::cli
