#include "chart/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "chart/axis.hpp"
#include "chart/palette.hpp"
#include "chart/svg.hpp"

namespace gpunn::chart {

namespace {

using Anchor = SvgWriter::Anchor;

constexpr double kWidth = 1000, kHeight = 480, kRooflineLeft = 84, kRooflineRight = 30, kTop = 112,
                 kRooflineBottom = 58;
constexpr double kListRow = 17, kListColumns = 3;

bool shown(const RooflinePoint& point) { return point.flops > 0 && point.bytes > 0 && point.seconds > 0; }
bool shown(const RooflineCeiling& ceiling) { return ceiling.bytes_per_second > 0 || ceiling.flops_per_second > 0; }

double intensity(const RooflinePoint& point) { return point.flops / point.bytes; }
double teraflops(const RooflinePoint& point) { return point.flops / point.seconds * 1e-12; }

// Teraflops that the ceiling leaves at an intensity.
double best(const RooflineCeiling& ceiling, double at) {
  const double moving =
      ceiling.bytes_per_second > 0 ? ceiling.bytes_per_second * at : std::numeric_limits<double>::infinity();
  const double computing =
      ceiling.flops_per_second > 0 ? ceiling.flops_per_second : std::numeric_limits<double>::infinity();
  return std::min(moving, computing) * 1e-12;
}

std::size_t place_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

class RooflineDrawing {
 public:
  explicit RooflineDrawing(const Roofline& roofline) : roofline_(roofline) {
    for (const RooflinePoint& point : roofline.points) {
      if (!shown(point)) continue;
      place_of(names_, point.name);
      place_of(series_, point.series);
      x_low_ = std::min(x_low_, intensity(point));
      x_high_ = std::max(x_high_, intensity(point));
      y_low_ = std::min(y_low_, teraflops(point));
      y_high_ = std::max(y_high_, teraflops(point));
    }
    // The bends of the roofs belong in the picture.
    for (const RooflineCeiling& ceiling : roofline.ceilings) {
      if (ceiling.bytes_per_second <= 0 || ceiling.flops_per_second <= 0) continue;
      x_low_ = std::min(x_low_, ceiling.flops_per_second / ceiling.bytes_per_second / 2);
      x_high_ = std::max(x_high_, ceiling.flops_per_second / ceiling.bytes_per_second * 2);
      y_high_ = std::max(y_high_, ceiling.flops_per_second * 1e-12);
    }
    if (names_.empty()) return;
    x_ = make_axis(Scale::logarithmic, x_low_, x_high_, 8);
    y_ = make_axis(Scale::logarithmic, y_low_, y_high_, 8);
  }

  std::string draw() {
    const auto rows = std::ceil(static_cast<double>(names_.size()) / kListColumns);
    SvgWriter svg(kWidth, kHeight + 20 + rows * kListRow + 16, roofline_.title, description());
    svg.text(kRooflineLeft, 30, roofline_.title, {.size = 18, .bold = true, .fill = kOnLight.ink});
    svg.text(kRooflineLeft, 50, roofline_.subtitle, {.size = 12, .fill = kOnLight.quiet});
    if (names_.empty()) {
      svg.text(kWidth / 2, kHeight / 2, "no data", {.anchor = Anchor::middle, .fill = kOnLight.quiet});
      return svg.finish();
    }
    draw_legend(svg);
    draw_axes(svg);
    draw_ceilings(svg);
    draw_points(svg);
    draw_list(svg);
    return svg.finish();
  }

 private:
  static constexpr double kPlotRight = kWidth - kRooflineRight, kPlotBottom = kHeight - kRooflineBottom;

  double place_x(double value) const { return kRooflineLeft + x_.share(value) * (kPlotRight - kRooflineLeft); }
  double place_y(double value) const { return kPlotBottom - y_.share(value) * (kPlotBottom - kTop); }

  std::string description() const {
    std::string text = roofline_.subtitle;
    for (const RooflineCeiling& ceiling : roofline_.ceilings) {
      text += fmt::format("; {}: {:.3g} GB/s, {:.3g} TFLOP/s", ceiling.name, ceiling.bytes_per_second * 1e-9,
                          ceiling.flops_per_second * 1e-12);
    }
    return text;
  }

  void draw_legend(SvgWriter& svg) const {
    double x = kRooflineLeft, y = 76;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const double room = 24 + 7.5 * static_cast<double>(series_[i].size());
      if (x > kRooflineLeft && x + room > kPlotRight) {
        x = kRooflineLeft;
        y += 18;
      }
      svg.circle(x + 5, y - 4, 4.5, kOnLight.line(i));
      svg.text(x + 15, y, series_[i], {.size = 13, .fill = kOnLight.ink});
      x += room;
    }
  }

  void draw_axes(SvgWriter& svg) const {
    for (const Tick& tick : y_.ticks) {
      svg.line(kRooflineLeft, place_y(tick.value), kPlotRight, place_y(tick.value), kOnLight.grid, 1);
      svg.text(kRooflineLeft - 8, place_y(tick.value) + 4, tick.label, {.anchor = Anchor::end, .fill = kOnLight.ink});
    }
    for (const Tick& tick : x_.ticks) {
      svg.line(place_x(tick.value), kTop, place_x(tick.value), kPlotBottom, kOnLight.grid, 1);
      svg.text(place_x(tick.value), kPlotBottom + 19, tick.label, {.anchor = Anchor::middle, .fill = kOnLight.ink});
    }
    svg.line(kRooflineLeft, kPlotBottom, kPlotRight, kPlotBottom, kOnLight.frame, 1);
    svg.line(kRooflineLeft, kTop, kRooflineLeft, kPlotBottom, kOnLight.frame, 1);
    svg.text((kRooflineLeft + kPlotRight) / 2, kPlotBottom + 42, "arithmetic intensity, operations a byte",
             {.size = 13, .anchor = Anchor::middle, .fill = kOnLight.ink});
    svg.text(kRooflineLeft - 58, (kTop + kPlotBottom) / 2, "TFLOP/s",
             {.size = 13, .anchor = Anchor::middle, .fill = kOnLight.ink, .upwards = true});
  }

  // From the left edge or the bottom, over the bend, to the right edge.
  void draw_ceilings(SvgWriter& svg) const {
    for (const RooflineCeiling& ceiling : roofline_.ceilings) {
      if (!shown(ceiling)) continue;
      const double bandwidth = ceiling.bytes_per_second * 1e-12, rate = best(ceiling, x_.high);
      double from = x_.low;
      if (bandwidth > 0) from = std::max(from, y_.low / bandwidth);
      if (from >= x_.high) continue;
      std::string data = fmt::format("M{:.1f} {:.1f}", place_x(from), place_y(best(ceiling, from)));
      const double bend = bandwidth > 0 ? rate / bandwidth : 0;
      if (bend > from && bend < x_.high) data += fmt::format("L{:.1f} {:.1f}", place_x(bend), place_y(rate));
      data += fmt::format("L{:.1f} {:.1f}", place_x(x_.high), place_y(rate));
      svg.path(data, kOnLight.frame, 1.6);
      const std::string label = fmt::format("{}: {:.3g} TFLOP/s, {:.3g} GB/s", ceiling.name,
                                            ceiling.flops_per_second * 1e-12, ceiling.bytes_per_second * 1e-9);
      svg.text(kPlotRight - 4, place_y(rate) - 5, label, {.size = 11, .anchor = Anchor::end, .fill = kOnLight.quiet});
    }
  }

  void draw_points(SvgWriter& svg) {
    for (const RooflinePoint& point : roofline_.points) {
      if (!shown(point)) continue;
      const double x = place_x(intensity(point)), y = place_y(teraflops(point));
      svg.circle(x, y, 4, kOnLight.line(place_of(series_, point.series)));
      svg.text(x + 6, y - 4, std::to_string(place_of(names_, point.name) + 1), {.size = 10, .fill = kOnLight.ink});
    }
  }

  void draw_list(SvgWriter& svg) const {
    const auto rows = static_cast<std::size_t>(std::ceil(static_cast<double>(names_.size()) / kListColumns));
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::size_t column = i / rows;
      const double x = kRooflineLeft + static_cast<double>(column) * (kPlotRight - kRooflineLeft) / kListColumns;
      const double y = kHeight + 20 + static_cast<double>(i % rows) * kListRow;
      svg.text(x, y, fmt::format("{}  {}", i + 1, names_[i]), {.size = 11, .fill = kOnLight.ink});
    }
  }

  const Roofline& roofline_;
  std::vector<std::string> names_, series_;
  double x_low_ = std::numeric_limits<double>::infinity(), x_high_ = 0;
  double y_low_ = std::numeric_limits<double>::infinity(), y_high_ = 0;
  Axis x_, y_;
};

}  // namespace

std::string svg(const Roofline& roofline) { return RooflineDrawing(roofline).draw(); }

}  // namespace gpunn::chart
