#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "chart/axis.hpp"
#include "chart/chart.hpp"
#include "chart/palette.hpp"
#include "chart/svg.hpp"

namespace gpunn::chart {

namespace {

using Anchor = SvgWriter::Anchor;

constexpr double kLeft = 76, kRight = 24, kBottom = 58;
constexpr double kLegendRow = 20, kLegendGap = 26, kSwatch = 26;
constexpr double kScattered = 2.2;       // radius
constexpr std::size_t kMostMarked = 40;  // points of a line that get a mark each
// Above this ratio of the largest to the smallest value.
constexpr double kLogarithmicFrom = 10;

// From thick to thin, since the later ones lie on top.
double stroke(std::size_t series, std::size_t count) {
  constexpr double kThin = 1.6, kMost = 6;
  return std::min(kThin + 1.6 * static_cast<double>(count - 1 - series), kMost);
}

double text_width(std::string_view text, double size) { return 0.56 * size * static_cast<double>(text.size()); }

bool shown(const Panel& panel, const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (panel.y_scale == Scale::linear || point.y > 0);
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

struct LegendEntry {
  std::string name;
  double x = 0, y = 0;
  bool scattered = false;
};

class LineDrawing {
 public:
  explicit LineDrawing(const Chart& chart)
      : chart_(chart),
        palette_(chart.colours == Colours::of_page ? kOfPage : kOnLight),
        width_(chart.panel_width * static_cast<double>(std::max<std::size_t>(chart.panels.size(), 1))) {
    for (const Panel& panel : chart.panels) count_ = std::max(count_, panel.series.size());
    lay_out_legend();
  }

  std::string draw() {
    std::string names;
    for (const LegendEntry& entry : legend_) names += (names.empty() ? "" : ", ") + entry.name;
    const double height = top_ + chart_.plot_height + kBottom;
    SvgWriter svg(width_, height, chart_.title, chart_.subtitle + (names.empty() ? "" : "; lines: " + names),
                  palette_.ground);
    svg.text(kLeft, 30, chart_.title, {.size = 18, .bold = true, .fill = palette_.ink});
    svg.text(kLeft, 50, chart_.subtitle, {.size = 12, .fill = palette_.quiet});
    for (std::size_t i = 0; i < legend_.size(); ++i) {
      const LegendEntry& entry = legend_[i];
      if (!entry.scattered) {
        svg.line(entry.x, entry.y - 4, entry.x + kSwatch, entry.y - 4, palette_.line(i), stroke(i, count_));
      }
      svg.circle(entry.x + kSwatch / 2, entry.y - 4, marker(i), palette_.line(i));
      svg.text(entry.x + kSwatch + 6, entry.y, entry.name, {.size = 13, .fill = palette_.ink});
    }
    for (std::size_t i = 0; i < chart_.panels.size(); ++i) {
      draw_panel(svg, chart_.panels[i], chart_.panel_width * static_cast<double>(i) + kLeft);
    }
    return svg.finish();
  }

 private:
  double marker(std::size_t series) const { return stroke(series, count_) / 2 + 1.6; }

  // Entries from left to right, in as many rows as they need.
  void lay_out_legend() {
    double x = kLeft, y = 74;
    for (std::size_t i = 0; i < count_; ++i) {
      std::string name;
      bool scattered = false;
      for (const Panel& panel : chart_.panels) {
        if (!name.empty() || i >= panel.series.size()) continue;
        name = panel.series[i].name;
        scattered = panel.series[i].scattered;
      }
      const double room = kSwatch + 6 + text_width(name, 13);
      if (x > kLeft && x + room > width_ - kRight) {
        x = kLeft;
        y += kLegendRow;
      }
      legend_.push_back({std::move(name), x, y, scattered});
      x += room + kLegendGap;
    }
    top_ = y + 18;
  }

  void draw_panel(SvgWriter& svg, const Panel& panel, double left) const {
    const double right = left + chart_.panel_width - kLeft - kRight, bottom = top_ + chart_.plot_height;
    Range x_range, y_range;
    for (const Series& series : panel.series) {
      for (const Point& point : series.points) {
        if (!shown(panel, point)) continue;
        x_range.add(point.x);
        y_range.add(point.y);
      }
    }
    svg.text((left + right) / 2, bottom + 40, panel.x_label,
             {.size = 13, .anchor = Anchor::middle, .fill = palette_.ink});
    svg.text(left - 54, (top_ + bottom) / 2, panel.y_label,
             {.size = 13, .anchor = Anchor::middle, .fill = palette_.ink, .upwards = true});
    if (x_range.empty()) {
      svg.text((left + right) / 2, (top_ + bottom) / 2, "no data", {.anchor = Anchor::middle, .fill = palette_.quiet});
      return;
    }
    const Axis x = make_axis(Scale::linear, x_range.low, x_range.high, 6, panel.whole_x);
    const Axis y = make_axis(panel.y_scale, y_range.low, y_range.high, 6);
    const auto place_x = [&](double value) { return left + x.share(value) * (right - left); };
    const auto place_y = [&](double value) { return bottom - y.share(value) * (bottom - top_); };
    for (const Tick& tick : y.ticks) {
      svg.line(left, place_y(tick.value), right, place_y(tick.value), palette_.grid, 1);
      svg.text(left - 8, place_y(tick.value) + 4, tick.label, {.anchor = Anchor::end, .fill = palette_.ink});
    }
    for (const Tick& tick : x.ticks) {
      svg.line(place_x(tick.value), bottom, place_x(tick.value), bottom + 5, palette_.frame, 1);
      svg.text(place_x(tick.value), bottom + 19, tick.label, {.anchor = Anchor::middle, .fill = palette_.ink});
    }
    svg.line(left, bottom, right, bottom, palette_.frame, 1);
    svg.line(left, top_, left, bottom, palette_.frame, 1);
    for (std::size_t i = 0; i < panel.series.size(); ++i) draw_series(svg, panel, i, place_x, place_y);
  }

  template <class PlaceX, class PlaceY>
  void draw_series(SvgWriter& svg, const Panel& panel, std::size_t index, PlaceX place_x, PlaceY place_y) const {
    const std::vector<Point>& points = panel.series[index].points;
    if (panel.series[index].scattered) {
      for (const Point& point : points) {
        if (shown(panel, point)) svg.circle(place_x(point.x), place_y(point.y), kScattered, palette_.line(index));
      }
      return;
    }
    std::string data;
    bool pen_down = false;
    for (const Point& point : points) {
      if (!shown(panel, point)) {
        pen_down = false;
        continue;
      }
      data += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", place_x(point.x), place_y(point.y));
      pen_down = true;
    }
    if (!data.empty()) svg.path(data, palette_.line(index), stroke(index, count_));
    if (points.size() > kMostMarked) return;
    for (const Point& point : points) {
      if (shown(panel, point)) svg.circle(place_x(point.x), place_y(point.y), marker(index), palette_.line(index));
    }
  }

  const Chart& chart_;
  const Palette& palette_;
  double width_;
  std::size_t count_ = 0;  // of series
  std::vector<LegendEntry> legend_;
  double top_ = 0;  // of the plots
};

}  // namespace

std::string svg(const Chart& chart) { return LineDrawing(chart).draw(); }

Scale fitting_scale(const std::vector<Series>& series) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Series& one : series) {
    for (const Point& point : one.points) {
      if (!std::isfinite(point.y)) continue;
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  return low > 0 && high > kLogarithmicFrom * low ? Scale::logarithmic : Scale::linear;
}

}  // namespace gpunn::chart
